import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isClockSynchronized } from "./clock-sync.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-clock-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ["yes", true],
  ["no", false],
  ["", undefined],
])("the kernel's answer %j means %j", async (said, expected) => {
  const tool = join(folder, `says-${said}`);
  writeFileSync(tool, `#!/bin/sh\necho "${said}"\n`);
  chmodSync(tool, 0o755);
  expect(await isClockSynchronized(tool)).toBe(expected);
});

test("without the tool, or when it fails, the state is unknown", async () => {
  expect(await isClockSynchronized(join(folder, "nothing-here"))).toBe(undefined);
  expect(await isClockSynchronized("false")).toBe(undefined);
});
