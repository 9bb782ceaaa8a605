import { expect, test } from "vitest";
import { decodeRecord } from "../disk/records.js";
import { decodeNames } from "./records.js";

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const folder = [7, 0, "reports", 1];

test("a record of names is read as this version writes it", () => {
  expect(decodeNames(bytes([8, [folder, [3]], [], null]))).toMatchObject({ nextId: 8, placements: [] });
});

test.each([
  ["with a format of its own", ["names/2", 8, [folder], [], null]],
  ["with another field", [8, [folder], [], null, {}]],
  ["with more fields", [8, [folder], [], null, null, 0]],
  ["of another kind", { nextId: 8 }],
  ["with a folder that has more fields", [8, [[...folder, null, null, 0]], [], null]],
  ["with a file that has more fields", [8, [[...folder, "v", "c", 0, 1, 2, 3, null, [], 0]], [], null]],
])("a record of names of a later version is refused and not misread: %s", (_, record) => {
  expect(() => decodeNames(bytes(record))).toThrow(expect.objectContaining({ code: "VERSION_MISMATCH" }));
});

test.each([
  ["of an unknown kind", bytes(["x", 1])],
  ["that begins as none does", Buffer.of(2, 3, 4)],
])("a record of a node's index %s is refused", (_, record) => {
  expect(() => decodeRecord(record)).toThrow(expect.objectContaining({ code: "VERSION_MISMATCH" }));
});
