import { expect, test } from "vitest";
import { Draft } from "./draft.js";
import { decodeNames, encodeNames } from "./records.js";
import { find, NamesState } from "./state.js";
import type { Change, Quota } from "./types.js";
import { leftIn } from "./usage.js";

const circumstances = {
  version: () => "v",
  nowMs: 5,
  mayName: () => [],
  mayPlace: () => undefined,
  keepers: [],
};
let contents = 0;

const put = (path: string, size: number): Change => ({
  kind: "put",
  path,
  content: { id: `c${(contents += 1)}`, isLive: false, size, blockSize: 1, checksum: 0 },
  makeFolders: true,
  ifMissing: false,
  ifVersion: null,
  ifContent: null,
  sealed: [],
});

const quotaOf = (path: string, quota: Quota | null): Change => ({ kind: "quota", path, quota });
const across = { makeFolders: true, over: "anything", isDeep: true, ifVersion: null, sealed: [] } as const;
const full = expect.objectContaining({ code: "QUOTA_EXCEEDED" });

/** Names whose changes are made one at a time, or together in one record. */
class Made {
  readonly state = new NamesState();
  readonly #records: Uint8Array[] = [];

  make(...changes: readonly Change[]): void {
    const draft = new Draft(this.state);
    for (const change of changes) draft.make(change, circumstances);
    const record = encodeNames({ nextId: this.state.nextId, facts: draft.facts });
    if (record.length > draft.bytes + 32) throw new Error("a record is longer than is thought");
    this.#records.push(record);
    this.state.apply(draft.facts);
  }

  usage(path: string, state = this.state) {
    return state.usage.of(find(state, path)!.id);
  }

  replayed(): NamesState {
    const again = new NamesState();
    for (const record of this.#records) again.replay(decodeNames(record).facts);
    Array.from(again.endReplay());
    return again;
  }
}

test("a folder may have exactly what its quota says, and not a byte and not a file more", () => {
  const names = new Made();
  names.make(put("f/g/x", 4), quotaOf("f", { bytes: 10, files: 4 }));
  expect(() => names.make(put("f/y", 7))).toThrow(full);
  names.make(put("f/y", 6));
  expect(names.usage("f")).toMatchObject({ bytes: 10, files: 3 });
  // Replaced files count once, and moves within the folder do not count.
  names.make(put("f/y", 6), { kind: "move", from: "f/y", to: "f/g/y", ...across });
  expect(() => names.make(put("f/g/y", 7))).toThrow(full);
  expect(() => names.make(put("f/h/z", 0))).toThrow(full);
  names.make(put("f/z", 0));
  expect(() => names.make({ kind: "folder", path: "f/h", makeFolders: false })).toThrow(full);
  expect(() => names.make({ kind: "copy", from: "f/z", to: "f/w", ...across })).toThrow(full);
  names.make(put("out", 0));
  expect(() => names.make({ kind: "move", from: "out", to: "f/w", ...across })).toThrow(full);
  names.make({ kind: "move", from: "out", to: "f/z", ...across });
  expect(names.usage("f")).toMatchObject({ bytes: 10, files: 4 });
  expect(() => names.make(put("f/z", 0), put("f/w", 0))).toThrow(full);
  expect(leftIn(names.state, find(names.state, "f/g")!.id)).toEqual({ bytes: 0, files: 0 });
  expect(names.usage("f", names.replayed())).toMatchObject({ bytes: 10, files: 4 });
});

test("a file that is made of others in a full folder counts instead of them", () => {
  const names = new Made();
  names.make(put("f/parts/1", 6), put("f/parts/2", 4), quotaOf("f", { bytes: 10, files: 3 }));
  const compose = { folder: "f/parts", files: [["1", "v"] as const, ["2", "v"] as const] };
  names.make({ ...put("f/whole", 0), compose } as Change);
  expect(names.usage("f")).toMatchObject({ bytes: 10, files: 1 });
});

test("two puts at once of one record that fit each, and not both: the second is refused", () => {
  const names = new Made();
  names.make(put("f/x", 0), quotaOf("f", { bytes: 10, files: null }));
  const draft = new Draft(names.state);
  draft.make(put("f/a", 6), circumstances);
  expect(() => draft.make(put("f/b", 6), circumstances)).toThrow(full);
  draft.make(put("f/c", 4), circumstances);
  names.state.apply(draft.facts);
  expect(names.usage("f")).toMatchObject({ bytes: 10, files: 3 });
});

test("the smallest quota of all folders above counts; it moves with its folder, and is not copied", () => {
  const names = new Made();
  names.make(
    put("a/b/x", 1),
    quotaOf("a", { bytes: 8, files: null }),
    quotaOf("a/b", { bytes: 5, files: 9 }),
  );
  expect(leftIn(names.state, find(names.state, "a/b")!.id)).toEqual({ bytes: 4, files: 8 });
  expect(() => names.make(put("a/b/y", 5))).toThrow(/a\/b would have 6 bytes, and its quota is 5/);
  names.make({ kind: "copy", from: "a/b", to: "c", ...across });
  names.make(put("c/y", 100));
  names.make({ kind: "move", from: "a/b", to: "d", ...across });
  expect(() => names.make(put("d/y", 5))).toThrow(full);
  expect(names.usage("a")).toMatchObject({ bytes: 0, files: 0 });
  const again = names.replayed();
  expect(find(again, "d")!.entry).toMatchObject({ quota: { bytes: 5, files: 9 } });
  expect(find(again, "c")!.entry).not.toHaveProperty("quota");
});

test("a folder beyond its quota takes what makes it smaller, until the quota is removed", () => {
  const names = new Made();
  names.make(put("f/x", 10), put("f/y", 10), quotaOf("f", { bytes: 5, files: 0 }));
  names.make(put("f/x", 9));
  expect(() => names.make(put("f/x", 10))).toThrow(full);
  names.make({ kind: "remove", path: "f/y", isDeep: false, ifVersion: null, sealed: [] });
  names.make(quotaOf("f", null), put("f/y", 100));
  expect(find(names.state, "f")!.entry).not.toHaveProperty("quota.bytes");
  expect(() => names.make(quotaOf("f/x", null))).toThrow(expect.objectContaining({ code: "FILE_EXISTS" }));
  expect(() => names.make(quotaOf("no", null))).toThrow(expect.objectContaining({ code: "FILE_NOT_FOUND" }));
});

test("records without quotas are read, and those with the greatest are", () => {
  const before = new TextEncoder().encode('[3,[[1,0,"f",5],[2,0,"g",5,{"a":"b"}]],[],null]');
  expect(decodeNames(before).facts.map(([, name]) => name!.entry)).toEqual([
    { kind: "folder", modifiedMs: 5 },
    { kind: "folder", modifiedMs: 5, attributes: { a: "b" } },
  ]);
  const names = new Made();
  const quota = { bytes: Number.MAX_SAFE_INTEGER, files: Number.MAX_SAFE_INTEGER };
  names.make(put("f/x", 1), quotaOf("f", quota));
  expect(find(names.replayed(), "f")!.entry).toMatchObject({ quota });
});
