import { expect, test } from "vitest";
import { Draft, Unsealed } from "./draft.js";
import { snapshotsMax } from "./snapshots.js";
import { find, NamesState } from "./state.js";
import { type Change, type Content, emptyContent } from "./types.js";

let versions = 0;
const circumstances = {
  version: () => `v${(versions += 1)}`,
  nowMs: 9,
  mayName: () => [],
  mayPlace: () => undefined,
  keepers: [],
};
const across = { makeFolders: true, over: "anything", isDeep: true, ifVersion: null, sealed: [] } as const;
const refused = (code: string) => expect.objectContaining({ code });

function codeOf(make: () => void): string | undefined {
  try {
    make();
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

class Names {
  readonly state = new NamesState();

  make(...changes: readonly Change[]): void {
    const draft = new Draft(this.state);
    for (const change of changes) draft.make(change, circumstances);
    this.state.apply(draft.facts);
  }

  at(path: string) {
    return find(this.state, path)?.entry;
  }
}

const put = (path: string, content: Partial<Content> = {}): Change => ({
  kind: "put",
  path,
  content: { ...emptyContent, id: `c${(versions += 1)}`, size: 1, ...content },
  makeFolders: true,
  ifMissing: false,
  ifVersion: null,
  ifContent: null,
  sealed: [],
});
const snapshot = (folder: string, name: string, sealed: readonly string[] = []): Change => ({
  kind: "snapshot",
  path: `${folder === "" ? "" : `${folder}/`}.snapshots/${name}`,
  sealed,
});
const remove = (path: string, isDeep = true): Change => ({
  kind: "remove",
  path,
  isDeep,
  ifVersion: null,
  sealed: [],
});

test("a snapshot keeps what a folder has, with versions and times, whatever comes later", () => {
  const names = new Names();
  names.make(put("f/x"), put("f/g/y"), { kind: "quota", path: "f", quota: { bytes: 2, files: 3 } });
  const before = { x: names.at("f/x"), y: names.at("f/g/y") };
  names.make(snapshot("f", "s"));
  names.make(put("f/x"), remove("f/g"), put("f/z"));
  expect(names.at("f/.snapshots/s/x")).toEqual(before.x);
  expect(names.at("f/.snapshots/s/g/y")).toEqual(before.y);
  expect(names.at("f/.snapshots/s/z")).toBeUndefined();
  expect(names.at("f/.snapshots/s")).toEqual({ kind: "folder", modifiedMs: 9 });
  // The snapshot's contents still have names.
  for (const entry of [before.x, before.y])
    expect(entry?.kind === "file" && names.state.isNamed(entry.content.id)).toBe(true);
  names.make({ kind: "copy", from: "f/.snapshots/s/x", to: "f/x", ...across });
  expect(names.at("f/x")).toMatchObject({ content: { id: (before.x as { content: Content }).content.id } });
  names.make(snapshot("", "all"), { kind: "move", from: "f", to: "e", ...across });
  expect(names.at("e/.snapshots/s/x")).toEqual(before.x);
  expect(names.at(".snapshots/all/f/z")).toBeDefined();
  expect(names.at(".snapshots/all/f/.snapshots")).toBeUndefined();
});

test("nothing in a snapshot changes, and a folder with snapshots stays until they are removed", () => {
  const names = new Names();
  names.make(put("f/g/x"), put("y"), snapshot("f/g", "s"));
  const at = "f/g/.snapshots";
  for (const change of [
    put(`${at}/s/x`),
    put(`${at}/other`),
    put("f/.snapshots"),
    { kind: "folder", path: `${at}/t`, makeFolders: true },
    { kind: "touch", path: `${at}/s/x`, modifiedMs: 1, ifVersion: null, sealed: [] },
    { kind: "quota", path: `${at}/s`, quota: null },
    { kind: "move", from: `${at}/s/x`, to: "z", ...across },
    { kind: "move", from: at, to: "z", ...across },
    { kind: "move", from: "y", to: `${at}/s/x`, ...across },
    { kind: "copy", from: "y", to: `${at}/s/x`, ...across },
    remove(`${at}/s/x`),
    remove(at),
    remove(`${at}/s`, false),
    { ...put("w"), compose: { folder: `${at}/s`, files: [] } },
    snapshot(`${at}/s`, "t"),
  ] as Change[])
    expect([change, codeOf(() => names.make(change))]).toEqual([change, "UNSUPPORTED"]);
  for (const change of [
    remove("f"),
    remove("f/g"),
    { kind: "move", from: "y", to: "f", ...across },
    { kind: "copy", from: "y", to: "f/g", ...across },
    { ...put("w"), compose: { folder: "f", files: [] } },
    snapshot("f/g", "s"),
    snapshot("y", "s"),
  ] as Change[])
    expect([change, codeOf(() => names.make(change))]).toEqual([change, "FILE_EXISTS"]);
  expect(() => names.make(snapshot("no", "s"))).toThrow(refused("FILE_NOT_FOUND"));
  names.make(remove(`${at}/s`));
  expect(names.at(at)).toBeUndefined();
  names.make(remove("f"));
});

test("a folder has at most 100 snapshots of 8,000 names, whose paths are paths", () => {
  const names = new Names();
  names.make(put("f/x"));
  for (let count = 0; count < snapshotsMax; count += 1) names.make(snapshot("f", `s${count}`));
  expect(() => names.make(snapshot("f", "more"))).toThrow(refused("UNSUPPORTED"));
  names.make(remove("f/.snapshots/s0"), snapshot("f", "more"));
  const long = "n".repeat(480 - "g/.snapshots/s/".length);
  names.make(put(`g/${long}`), snapshot("g", "s"));
  expect(() => names.make(snapshot("g", "s2"))).toThrow(refused("UNSUPPORTED"));
  names.make(...Array.from({ length: 7_999 }, (_, at) => put(`h/${at}`)), snapshot("h", "s"));
  names.make(put("h/more"));
  expect(() => names.make(snapshot("h", "t"))).toThrow(refused("UNSUPPORTED"));
});

test("a file that is written in place is sealed before a snapshot shares it", () => {
  const names = new Names();
  names.make(put("f/x", { id: "live", isLive: true, size: 0 }));
  expect(() => names.make(snapshot("f", "s"))).toThrow(Unsealed);
  names.make(snapshot("f", "s", ["live"]));
  names.make(remove("f/.snapshots/s"));
});

test("what snapshots have counts for no quota", () => {
  const names = new Names();
  names.make(put("f/x"), { kind: "quota", path: "f", quota: { bytes: 2, files: 2 } }, snapshot("f", "s"));
  names.make(snapshot("f", "t"), put("f/y"));
  const usage = names.state.usage.of(find(names.state, "f")!.id);
  expect(usage).toEqual({ bytes: 2, files: 2, snapshots: 2 });
  expect(() => names.make(put("f/z"))).toThrow(refused("QUOTA_EXCEEDED"));
});
