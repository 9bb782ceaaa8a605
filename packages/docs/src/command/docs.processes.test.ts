import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { leasehold, packagesFolder } from "../../../../test/support/built.js";

test("the command prints its address, serves pages there, and ends on a signal", async () => {
  const pages = mkdtempSync(join(tmpdir(), "leasehold-docs-"));
  writeFileSync(join(pages, "index.html"), "first");
  const serve = `import { serveDocs } from ${JSON.stringify(join(packagesFolder, "docs/dist/command/serve.js"))};
process.exitCode = await serveDocs("127.0.0.1:0", ${JSON.stringify(pages)});`;
  const server = spawn(process.execPath, ["--input-type=module", "-e", serve], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [line] = (await once(server.stdout, "data")) as [Buffer];
    const [, url = ""] =
      /^the documentation is at (http:\/\/127\.0\.0\.1:\d+\/)\n$/.exec(line.toString()) ?? [];
    expect(await (await fetch(url)).text()).toBe("first");
    server.kill("SIGTERM");
    expect(await once(server, "close")).toEqual([0, null]);
  } finally {
    server.kill("SIGKILL");
    rmSync(pages, { recursive: true });
  }
});

test("requests from other machines are refused", async () => {
  const refused = await leasehold(["docs", "--address", "0.0.0.0:0"]).finished;
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("serves this machine only")]);
});
