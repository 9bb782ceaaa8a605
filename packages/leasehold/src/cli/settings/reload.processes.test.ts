import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { eventually, leasehold } from "../../../../../test/support/built.js";

/** A running server applies changes of its file, which only a signal to a real process can show. */

const folder = mkdtempSync(join(tmpdir(), "leasehold-reload-"));
const config = join(folder, "member.json");
const keyFile = join(folder, "cluster.key");
const run = (() => {
  write({});
  writeKey();
  return leasehold(["peer", "--config", config, "--log-format", "text"], {
    env: { ...process.env, LEASEHOLD_CELL_SIZE: "1" },
  });
})();
afterAll(() => {
  run.process.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

function write(more: object): void {
  const members = { a: "127.0.0.1:0" };
  writeFileSync(config, JSON.stringify({ id: "a", members, keyFile: "cluster.key", ...more }));
}

function writeKey(): void {
  writeFileSync(keyFile, randomBytes(32).toString("hex"), { mode: 0o600 });
}

/** The lines printed after a SIGHUP, up to a line with that text. */
async function reload(last: string): Promise<string> {
  const from = run.stderr().length;
  run.process.kill("SIGHUP");
  return eventually(last, () => {
    const said = run.stderr().slice(from);
    return said.includes(last) && said.endsWith("\n") ? said : undefined;
  });
}

test("SIGHUP reloads keys and quotas, names what needs a restart, and changes nothing for a faulty file", async () => {
  await eventually("it listens", () => run.stdout().includes("listens"));
  expect(await reload("has no change")).not.toContain("reread");

  writeKey();
  write({ resourcesMax: 5, ttlMax: "20s" });
  const changed = await reload("resourcesMax is now");
  expect(changed).toContain(`reread: ${keyFile}`);
  expect(changed).toContain("settings-reloaded: resourcesMax is now 5, and was 1000000\n");
  expect(changed).toContain("ttlMax is now 20s, and was 15s: this needs a restart");

  write({ resourcesmax: 6 });
  expect(await reload("settings-refused")).toContain('did you mean "resourcesMax"?');

  write({ logLevel: "debug" });
  const back = await reload("logLevel is now");
  expect(back).toContain("resourcesMax is now 1000000, and was 5\n");
  expect(back).toContain("logLevel is now debug, and was info\n");
  expect(back).not.toContain("ttlMax");

  run.process.kill("SIGTERM");
  expect((await run.finished).code).toBe(0);
});
