import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { errorCodes, LeaseholdError, LeaseLostError, lossReasons } from "./errors.js";

const documentation = readFileSync(new URL("../../../../docs/errors.md", import.meta.url), "utf8");

test("docs/errors.md lists every code in order, with its meaning, and no other", () => {
  const rows = [...documentation.matchAll(/^\| `(\w+)` \| (.+?) \| (.+?) \|$/gm)];
  expect(rows.map((row) => [row[1], row[2]])).toEqual(Object.entries(errorCodes));
  // The pattern above matches every row of the table.
  expect(documentation.split("\n").filter((line) => line.startsWith("|"))).toHaveLength(rows.length + 2);
});

test("docs/errors.md lists every reason of a loss, in order, and no other", () => {
  const reasons = [...documentation.matchAll(/^- `([\w-]+)`: (.+)$/gm)].map((row) => [row[1], row[2]]);
  expect(reasons).toEqual(Object.entries(lossReasons));
});

test("every code is in use", () => {
  const source = fileURLToPath(new URL("../../..", import.meta.url));
  const texts = readdirSync(source, { recursive: true, encoding: "utf8" })
    // The table of exit codes names every code but raises none, so it doesn't count.
    .filter((path) => path.endsWith(".ts") && !/\.test\.ts$|exit-codes\.ts$|node_modules|dist/.test(path))
    .map((path) => readFileSync(join(source, path), "utf8"));
  const unused = Object.keys(errorCodes).filter((code) => !texts.some((text) => text.includes(`"${code}"`)));
  expect(unused).toEqual([]);
});

test("an error's message is its code's meaning unless another is given", () => {
  const cause = new Error("socket");
  expect(new LeaseholdError("CLOSED")).toMatchObject({
    code: "CLOSED",
    message: errorCodes.CLOSED,
    name: "LeaseholdError",
  });
  expect(new LeaseholdError("NO_QUORUM", "1 of 3", { cause })).toMatchObject({ message: "1 of 3", cause });
});

test("a lost lease's error names the resource and the reason", () => {
  const error = new LeaseLostError("a", "clock-fault", "2 s ahead");
  expect(error).toBeInstanceOf(LeaseholdError);
  expect(error).toMatchObject({ code: "LEASE_LOST", resource: "a", reason: "clock-fault" });
  expect(error.message).toBe('lease on "a" is gone (clock-fault): 2 s ahead');
});
