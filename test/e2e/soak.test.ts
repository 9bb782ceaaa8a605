import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** A twentieth of `npm run bench -- soak`, so that a leak shows without anybody running that. */
test("waits that time out, are aborted or are granted leave nothing behind", () => {
  const script = fileURLToPath(new URL("../../bench/soak.mjs", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, ["--expose-gc", script, "0.05"], {
    encoding: "utf8",
    timeout: 120_000,
  });
  expect(stderr.split("\n").filter((line) => line.startsWith("LEAK"))).toEqual([]);
  expect(status).toBe(0);
});
