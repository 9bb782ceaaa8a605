import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open } from "leasehold";
import type { MemberOptions, OpenOptions } from "leasehold";
import { mainPath } from "../support/built.js";
import { startLocalCluster } from "../support/local-cluster.js";

/** The commands of docs/security.md are run as written there, and their results are used. */
const text = readFileSync(new URL("../../docs/security.md", import.meta.url), "utf8");
const folder = mkdtempSync(join(tmpdir(), "leasehold-docs-"));
const file = (name: string) => join(folder, name);

function run(name: string): void {
  const commands = new RegExp(`\`\`\`sh ${name}\n([^]*?)\n\`\`\``).exec(text)?.[1];
  execFileSync("sh", ["-eu", "-c", commands ?? `echo no commands ${name} >&2; exit 1`], {
    cwd: folder,
    env: { ...process.env, PATH: `${file("bin")}${delimiter}${process.env["PATH"]}` },
    stdio: ["ignore", "ignore", "pipe"],
  });
}

const tls = (name: string) => ({
  ca: file("pki/ca.pem"),
  cert: file(`pki/${name}.pem`),
  key: file(`pki/${name}.key`),
});

beforeAll(() => {
  mkdirSync(file("bin"));
  const command = `#!/bin/sh\nexec "${process.execPath}" "${mainPath}" "$@"\n`;
  writeFileSync(file("bin/leasehold"), command, { mode: 0o755 });
  for (const name of ["certificates", "one-key", "role-keys"]) run(name);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("results of the commands", () => {
  test.each<[string, (id: string) => Partial<MemberOptions>, OpenOptions, OpenOptions]>([
    ["certificates", (id) => ({ tls: tls(id) }), { tls: tls("client") }, { tls: tls("observer") }],
    [
      "one key",
      () => ({ keyFile: file("cluster.key") }),
      { keyFile: file("cluster.key") },
      { keyFile: file("cluster.key"), role: "observer" },
    ],
    [
      "a key for each role",
      () => ({ keyFile: file("cluster-members.key") }),
      { keyFile: file("cluster-client.key") },
      { keyFile: file("cluster-observer.key") },
    ],
  ])("%s: a cluster, a client with a lease, and an observer", async (_what, member, asClient, asObserver) => {
    const cluster = await startLocalCluster(member, 3, ["a", "b", "c"]);
    const client = await open(...cluster.urls, asClient);
    const observer = await open(...cluster.urls, asObserver);
    await using lease = await client.acquire("documented");
    expect(await observer.holder("documented")).toMatchObject({ state: "held", token: lease.token });
    await expect(observer.tryAcquire("other")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await Promise.all([client.close(), observer.close()]);
    await cluster.close();
  });

  test("private keys are readable by their owner only", () => {
    const modes = execFileSync("sh", ["-c", "ls -l *.key pki/*.key | cut -c1-10 | sort -u"], {
      cwd: folder,
      encoding: "utf8",
    });
    expect(modes.trim()).toBe("-rw-------");
  });
});
