import { expect, test } from "vitest";
import { Draft, partsMax } from "./draft.js";
import { decodeNames, encodeNames } from "./records.js";
import { find, NamesState } from "./state.js";
import type { Change, Content, PutChange } from "./types.js";

let versions = 0;
const circumstances = {
  version: () => `v${(versions += 1)}`,
  nowMs: 5,
  mayName: () => [],
  mayPlace: () => undefined,
  keepers: [],
};

class Written {
  readonly state = new NamesState();

  make(...changes: readonly Change[]): void {
    const draft = new Draft(this.state);
    for (const change of changes) draft.make(change, circumstances);
    const record = encodeNames(draft.record());
    // Including the number of the next name and brackets.
    if (record.length > draft.bytes + 32) throw new Error("a record is longer than is thought");
    const { facts, placements } = decodeNames(record);
    this.state.apply(facts, placements);
  }

  contentAt(path: string): Content | undefined {
    const entry = find(this.state, path)?.entry;
    return entry?.kind === "file" ? entry.content : undefined;
  }

  versionAt(path: string): string {
    const entry = find(this.state, path)?.entry;
    return entry?.kind === "file" ? entry.version : "none";
  }
}

const how = { makeFolders: true, ifMissing: false, ifVersion: null, ifContent: null, sealed: [] } as const;

const put = (path: string, id: string, size = 3): PutChange => ({
  kind: "put",
  path,
  content: { id, isLive: false, size, blockSize: 4, checksum: 1 },
  ...how,
});

const compose = (names: Written, path: string, files: readonly string[], id = "made"): PutChange => ({
  ...put(path, id, 0),
  compose: { folder: "u", files: files.map((name) => [name, names.versionAt(`u/${name}`)]) },
});

const code = (text: string) => expect.objectContaining({ code: text }) as Error;

test("a file is made of others by one change, which removes their folder", () => {
  const names = new Written();
  names.make(put("u/1", "a"), put("u/2", "b", 5), put("u/none", "", 0), put("u/more", "c"));
  names.state.apply(
    [],
    [
      ["a", ["n1"]],
      ["b", ["n1", "n2"]],
    ],
  );
  const change = compose(names, "f/x", ["2", "none", "1", "2"]);
  names.make(change);
  expect(names.contentAt("f/x")).toMatchObject({ id: "made", size: 13, isLive: false });
  expect(names.contentAt("f/x")!.parts!.map(({ id }) => id)).toEqual(["b", "a", "b"]);
  expect(find(names.state, "u")).toBeUndefined();
  expect(["a", "b", "c", "made"].map((id) => names.state.isNamed(id))).toEqual([true, true, false, false]);
  const record = names.state.recordOf([[1, find(names.state, "f/x")!]]);
  expect(decodeNames(encodeNames(record)).placements).toEqual([
    ["b", ["n1", "n2"]],
    ["a", ["n1"]],
  ]);
  const { contents } = names.state.contents("n1", "", 100, () => undefined);
  expect(contents.map(({ id }) => id)).toEqual(["b", "a", "b"]);
  // A repeated change recognizes the file that it made.
  const again = new Draft(names.state);
  expect(again.make(change, circumstances)).toMatchObject({ existed: true });
  expect(again.facts).toEqual([]);
  names.make(put("u/1", "d"));
  names.make({ kind: "move", from: "f/x", to: "u/2", over: "nothing", isDeep: true, ...how });
  names.make(compose(names, "f/y", ["1", "2"], "made2"));
  expect(names.contentAt("f/y")!.parts!.map(({ id }) => id)).toEqual(["d", "b", "a", "b"]);
  names.make({ kind: "remove", path: "f", isDeep: true, ifVersion: null, sealed: [] });
  expect(["a", "b", "d"].filter((id) => names.state.isNamed(id))).toEqual([]);
  expect(names.state.extraBytes).toBe(0);
});

test("nothing is made of files that are missing, replaced, or written in place, or against a condition", () => {
  const names = new Written();
  names.make(put("u/1", "a"), put("x", "x"));
  const change = compose(names, "x", ["1"]);
  const making = (wrong: PutChange) => () => names.make(wrong);
  expect(making(compose(names, "x", ["1", "2"]))).toThrow(code("FILE_CHANGED"));
  expect(making({ ...change, ifMissing: true })).toThrow(code("FILE_EXISTS"));
  expect(making({ ...change, ifVersion: "other" })).toThrow(code("FILE_CHANGED"));
  expect(making({ ...change, path: "u/3" })).toThrow(code("INVALID_PATH"));
  names.make(put("u/1", "b"));
  expect(making(change)).toThrow(code("FILE_CHANGED"));
  expect(making({ ...change, compose: { folder: "v", files: [] } })).toThrow(code("FILE_NOT_FOUND"));
  names.make({ ...put("u/1", "live"), content: { ...put("", "live").content, isLive: true } });
  expect(making({ ...compose(names, "x", ["1"]), sealed: ["live"] })).toThrow(code("FILE_CHANGED"));
  expect(names.contentAt("x")!.id).toBe("x");
});

test("10,000 contents make a file, which fits in a record, and one more does not", () => {
  const names = new Written();
  const long = (at: number): string => `${at}`.padStart(36, "f");
  for (let at = 0; at < partsMax; at += 500)
    names.make(
      ...Array.from({ length: 500 }, (_, more) => ({
        ...put(`u/${at + more}`, ""),
        content: {
          id: long(at + more),
          isLive: false,
          size: Math.floor(Number.MAX_SAFE_INTEGER / partsMax),
          blockSize: 2 ** 22,
          checksum: 2 ** 32 - 1,
        },
      })),
    );
  const all = Array.from({ length: partsMax }, (_, at) => `${at}`);
  const draft = new Draft(names.state);
  expect(() => draft.make(compose(names, "x", [...all, "0"]), circumstances)).toThrow(code("UNSUPPORTED"));
  names.make(compose(names, "x", all));
  expect(names.contentAt("x")!.parts).toHaveLength(partsMax);
});

test("only a folder without files is removed with its folders, and empty ones above it with it", () => {
  const names = new Written();
  const remove = { kind: "remove", isDeep: true, foldersOnly: true, ifVersion: null, sealed: [] } as const;
  names.make(put("b/c/d/e/x", "x"), { kind: "folder", path: "b/c/f", makeFolders: true });
  expect(() => names.make({ ...remove, path: "b" })).toThrow(code("FILE_EXISTS"));
  const file = { ...remove, isDeep: false, foldersOnly: false, path: "b/c/d/e/x", pruneIn: "b" };
  names.make(file);
  expect(find(names.state, "b/c/d")).toBeUndefined();
  expect(find(names.state, "b/c/f")).toBeDefined();
  names.make(put("b/c/d/e/x", "y"), {
    kind: "touch",
    path: "b/c/d",
    attributes: { marker: "" },
    ifVersion: null,
    sealed: [],
  });
  names.make(file);
  expect([find(names.state, "b/c/d/e"), find(names.state, "b/c/d")?.id]).toEqual([
    undefined,
    expect.any(Number),
  ]);
  names.make({ ...remove, path: "b" });
  expect(names.state.size).toBe(0);
  names.make(put("b/x", "z"));
  names.make({ ...file, path: "b/x" });
  expect(find(names.state, "b")).toBeDefined();
});
