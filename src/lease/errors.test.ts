import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { errorCodes, LeaseholdError, LeaseLostError } from "./errors.js";

const documentation = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");

test("docs/errors.md shows the same table: every code, in order, with its meaning, and no other", () => {
  const rows = [...documentation.matchAll(/^\| `(\w+)` \| (.+?) \| (.+?) \|$/gm)];
  expect(rows.map((row) => [row[1], row[2]])).toEqual(Object.entries(errorCodes));
  // No row of the table is written in a way that the pattern above passes over.
  expect(documentation.split("\n").filter((line) => line.startsWith("|"))).toHaveLength(rows.length + 2);
});

test("an error has its code's meaning as message unless it is given a better one", () => {
  const cause = new Error("socket");
  expect(new LeaseholdError("CLOSED")).toMatchObject({
    code: "CLOSED",
    message: errorCodes.CLOSED,
    name: "LeaseholdError",
  });
  expect(new LeaseholdError("NO_QUORUM", "1 of 3", { cause })).toMatchObject({ message: "1 of 3", cause });
});

test("a lost lease says which and why", () => {
  const error = new LeaseLostError("a", "clock-fault", "2 s ahead");
  expect(error).toBeInstanceOf(LeaseholdError);
  expect(error).toMatchObject({ code: "LEASE_LOST", resource: "a", reason: "clock-fault" });
  expect(error.message).toBe('lease on "a" is gone (clock-fault): 2 s ahead');
});
