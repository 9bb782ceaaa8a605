import { expect, test } from "vitest";
import { attributeBytesMax, attributesMax } from "./attributes.js";
import { Draft } from "./draft.js";
import { decodeNames, encodeNames } from "./records.js";
import { find, NamesState } from "./state.js";
import type { AttributeChanges, Attributes, Change } from "./types.js";

const circumstances = {
  version: () => "v",
  nowMs: 5,
  mayName: () => [],
  mayPlace: () => undefined,
  keepers: [],
};

/** Names whose changes are written, read and applied, as in a replay. */
class Written {
  readonly state = new NamesState();

  make(change: Change): void {
    const draft = new Draft(this.state);
    draft.make(change, circumstances);
    const record = encodeNames({ nextId: this.state.nextId, facts: draft.facts });
    // Including the number of the next name and brackets.
    if (record.length > draft.bytes + 32) throw new Error("a record is longer than is thought");
    this.state.apply(decodeNames(record).facts);
  }

  at(path: string): Attributes | undefined {
    return find(this.state, path)!.entry.attributes;
  }
}

let contents = 0;
const put = (path: string, attributes?: AttributeChanges, isLive = false): Change => ({
  kind: "put",
  path,
  content: { id: `c${(contents += 1)}`, isLive, size: 1, blockSize: 1, checksum: 0 },
  makeFolders: true,
  ifMissing: false,
  ifVersion: null,
  ifContent: null,
  sealed: [],
  attributes,
});

const contentIn = (change: Change): string => (change.kind === "put" ? change.content.id : "");

const touch = (path: string, attributes: AttributeChanges, ifVersion: string | null = null): Change => ({
  kind: "touch",
  path,
  attributes,
  ifVersion,
  sealed: [],
});

const across = (
  kind: "move" | "copy",
  from: string,
  to: string,
  attributes?: AttributeChanges,
): Change & { readonly kind: "move" | "copy" } => ({
  kind,
  from,
  to,
  makeFolders: true,
  over: "anything",
  isDeep: true,
  ifVersion: null,
  sealed: [],
  attributes,
});

test("attributes are moved and copied with their names, and change with them", () => {
  const names = new Written();
  names.make({ kind: "folder", path: "f", makeFolders: false, attributes: { color: "red" } });
  names.make(put("f/x", { "content.type": "text/plain", tag: "1" }));
  names.make(across("move", "f", "g", { size: "big" }));
  expect(names.at("g")).toEqual({ color: "red", size: "big" });
  expect(names.at("g/x")).toEqual({ "content.type": "text/plain", tag: "1" });
  names.make(across("copy", "g", "h", { color: null, size: null }));
  expect(names.at("h")).toBeUndefined();
  expect(names.at("h/x")).toEqual({ "content.type": "text/plain", tag: "1" });
  names.make(across("copy", "g/x", "g/x", { tag: "2" }));
  expect(names.at("g/x")).toEqual({ "content.type": "text/plain", tag: "2" });
});

test("attributes of the content end with it, and the others stay", () => {
  const names = new Written();
  names.make(put("x", { "content.etag": "1", "content.type": "a", tag: "1" }));
  names.make(touch("x", { "content.type": "b" }));
  expect(names.at("x")).toEqual({ "content.etag": "1", "content.type": "b", tag: "1" });
  names.make(put("x", { "content.etag": "2" }));
  expect(names.at("x")).toEqual({ "content.etag": "2", tag: "1" });
  const live = put("x", {}, true);
  names.make(live);
  expect(names.at("x")).toEqual({ tag: "1" });
  names.make({ kind: "remove", path: "x", isDeep: false, ifVersion: null, sealed: [contentIn(live)] });
  expect(names.state.extraBytes).toBe(0);
});

test("a change of attributes has a condition, and leaves version and time", () => {
  const names = new Written();
  names.make(put("x"));
  expect(() => names.make(touch("x", { a: "1" }, "other"))).toThrow(
    expect.objectContaining({ code: "FILE_CHANGED" }),
  );
  const before = find(names.state, "x")!.entry;
  names.make(touch("x", { a: "1" }, "v"));
  expect(find(names.state, "x")!.entry).toEqual({ ...before, attributes: { a: "1" } });
  names.make(touch("x", { ["__proto__"]: "2" }));
  expect(Object.entries(names.at("x")!)).toEqual([
    ["a", "1"],
    ["__proto__", "2"],
  ]);
});

test("a name has at most 64 attributes of 8,192 bytes, after each change", () => {
  const names = new Written();
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}`, ""]));
  const refused = expect.objectContaining({ code: "INVALID_RANGE" });
  names.make(put("x", many(attributesMax)));
  expect(() => names.make(put("x", many(attributesMax + 1)))).toThrow(refused);
  expect(() => names.make(touch("x", { more: "" }))).toThrow(refused);
  names.make(touch("x", { more: "", "0": null }));
  for (const filling of ["a", "\u0001", '"', "€", "\u{1f600}"]) {
    const bytes = Buffer.byteLength(filling);
    const value = filling.repeat((attributeBytesMax - 2) / bytes);
    const rest = "-".repeat(attributeBytesMax - 1 - Buffer.byteLength(value));
    names.make(put("y", { n: value + rest }));
    expect(() => names.make(put("y", { n: `${value}${rest}-` }))).toThrow(refused);
    expect(names.at("y")).toEqual({ n: value + rest });
  }
  for (const wrong of [1, undefined, {}])
    expect(() => names.make(touch("y", { n: wrong as never }))).toThrow(refused);
});
