import { LeaseholdError, Xorshift } from "leasehold/common";
import { expect, test } from "vitest";
import { Draft, Unsealed } from "./draft.js";
import type { NodeList } from "./nodes.js";
import { decodeNames, encodeNames } from "./records.js";
import { filesBelow, find, NamesState, rootId } from "./state.js";
import {
  type Change,
  type NameChange,
  type Content,
  emptyContent,
  type Fact,
  type Found,
  type Quota,
  type Usage,
} from "./types.js";

/** A file system as the simplest possible map of paths. Each file has one byte. */
class Model {
  readonly entries = new Map<string, string>();
  quotas = new Map<string, Quota>();

  /** Returns false if the change is refused. */
  make(change: NameChange): boolean {
    const before = { entries: new Map(this.entries), quotas: new Map(this.quotas) };
    const usage = new Map([...this.quotas.keys()].map((path) => [path, this.usageOf(path)]));
    if (!this.#make(change)) return false;
    // A quota from before the change (wherever its folder is now), and what the folder contained then.
    const isMoved = (path: string): string =>
      change.kind === "move" && (path === change.from || path.startsWith(`${change.from}/`))
        ? change.to + path.slice(change.from.length)
        : path;
    const isReplaced = (path: string): boolean =>
      change.kind === "move" &&
      change.from !== change.to &&
      (path === change.to || path.startsWith(`${change.to}/`));
    const fits = [...before.quotas].every(([path, quota]) => {
      if (isReplaced(path)) return true;
      if (!this.quotas.has(isMoved(path)) || change.kind === "quota") return true;
      const [had, has] = [usage.get(path)!, this.usageOf(isMoved(path))];
      return (["bytes", "files"] as const).every(
        (what) => has[what] <= had[what] || has[what] <= (quota[what] ?? Infinity),
      );
    });
    if (fits) return true;
    this.entries.clear();
    for (const [path, entry] of before.entries) this.entries.set(path, entry);
    this.quotas = before.quotas;
    return false;
  }

  usageOf(path: string): Usage {
    const all = path === "" ? [...this.entries.keys()] : this.#below(path);
    const below = all.filter((each) => !isHidden(each.slice(path.length)));
    const bytes = below.filter((each) => this.entries.get(each) !== "folder").length;
    return { bytes, files: below.length, snapshots: all.filter(isSnapshot).length };
  }

  #make(change: NameChange): boolean {
    const paths =
      "to" in change ? [change.to, ...(change.kind === "move" ? [change.from] : [])] : [change.path];
    const mayBe = change.kind === "snapshot" || (change.kind === "remove" && change.isDeep);
    if (paths.some((path) => isHidden(path) && !(mayBe && isSnapshot(path)))) return false;
    switch (change.kind) {
      case "put":
        return this.#put(change);
      case "folder":
        if (this.entries.has(change.path) || !this.#hasFolder(change.path, change.makeFolders)) return false;
        this.entries.set(change.path, "folder");
        return true;
      case "remove":
        return this.#remove(change.path, change.isDeep);
      case "snapshot": {
        const folder = change.path.split("/.snapshots/")[0]!;
        if (this.entries.get(folder) !== "folder" || this.entries.has(change.path)) return false;
        this.entries.set(`${folder}/.snapshots`, "folder");
        this.entries.set(change.path, "folder");
        for (const path of this.#below(folder)) {
          const rest = path.slice(folder.length);
          if (!isHidden(rest)) this.entries.set(change.path + rest, this.entries.get(path)!);
        }
        return true;
      }
      case "quota":
        if (this.entries.get(change.path) !== "folder") return false;
        if (change.quota === null) this.quotas.delete(change.path);
        else this.quotas.set(change.path, change.quota);
        return true;
      case "touch":
        return (this.entries.get(change.path) ?? "folder") !== "folder";
      case "move":
      case "copy":
        return this.#move(change);
    }
  }

  #put({ path, content, makeFolders, ifMissing }: Change & { kind: "put" }): boolean {
    const there = this.entries.get(path);
    if (there === "folder" || (ifMissing && there !== undefined)) return false;
    if (!this.#hasFolder(path, makeFolders)) return false;
    this.entries.set(path, content.id);
    return true;
  }

  #remove(path: string, isDeep: boolean): boolean {
    const below = this.#below(path);
    if (!this.entries.has(path) || (below.length > 0 && !isDeep)) return false;
    if (!isSnapshot(path) && this.usageOf(path).snapshots > 0) return false;
    for (const each of [path, ...below]) {
      this.entries.delete(each);
      this.quotas.delete(each);
    }
    const all = path.slice(0, path.lastIndexOf("/"));
    if (isSnapshot(path) && this.#below(all).length === 0) this.entries.delete(all);
    return true;
  }

  #move({ kind, from, to, over, makeFolders, isDeep }: Change & { kind: "move" | "copy" }): boolean {
    if (!this.entries.has(from)) return false;
    if (to.startsWith(`${from}/`) || from.startsWith(`${to}/`)) return false;
    if (from === to) return true;
    const there = this.entries.get(to);
    if (there !== undefined && (over === "nothing" || (there === "folder" && over === "file"))) return false;
    if (there !== undefined && this.usageOf(to).snapshots > 0) return false;
    if (!this.#hasFolder(to, makeFolders)) return false;
    const moved = [from, ...(kind === "move" || isDeep ? this.#below(from) : [])]
      .filter((path) => kind === "move" || !isHidden(path.slice(from.length)))
      .map((path) => [to + path.slice(from.length), this.entries.get(path)!] as const);
    const quotas =
      kind === "move"
        ? [...this.quotas].filter(
            ([path]) =>
              moved.some(([at]) => at === to + path.slice(from.length)) &&
              (path === from || path.startsWith(`${from}/`)),
          )
        : [];
    if (there !== undefined) this.#remove(to, true);
    if (kind === "move") for (const path of [from, ...this.#below(from)]) this.entries.delete(path);
    if (kind === "move") for (const [path] of quotas) this.quotas.delete(path);
    for (const [path, quota] of quotas) this.quotas.set(to + path.slice(from.length), quota);
    for (const [path, entry] of moved) this.entries.set(path, entry);
    return true;
  }

  #below(path: string): string[] {
    return [...this.entries.keys()].filter((each) => each.startsWith(`${path}/`));
  }

  #hasFolder(path: string, makeFolders: boolean): boolean {
    const parts = path.split("/").slice(0, -1);
    const above = parts.map((_, index) => parts.slice(0, index + 1).join("/"));
    if (above.some((each) => (this.entries.get(each) ?? "folder") !== "folder")) return false;
    if (!makeFolders && above.some((each) => !this.entries.has(each))) return false;
    for (const each of above) this.entries.set(each, "folder");
    return true;
  }
}

const isHidden = (path: string): boolean => path.split("/").includes(".snapshots");
const isSnapshot = (path: string): boolean =>
  /^(?!.*\.snapshots.*\.snapshots).*\.snapshots\/[^/]+$/.test(path);

const names = ["a", "a-b", "b", "a b"];

function drawChange(random: Xorshift, content: string): NameChange {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random.next() * all.length)]!;
  const isSo = (): boolean => random.next() < 0.5;
  const path = (): string =>
    Array.from({ length: 1 + Math.floor(random.next() * 3) }, () => pick(names)).join("/");
  const makeFolders = isSo();
  const at = random.next();
  const file: Content = { ...emptyContent, id: content, size: 1 };
  const unconditional = { ifVersion: null, sealed: [] } as const;
  if (at < 0.4)
    return {
      kind: "put",
      path: path(),
      content: file,
      makeFolders,
      ifMissing: random.next() < 0.2,
      ifContent: null,
      ...unconditional,
    };
  if (at > 0.9 && at < 0.94) {
    const snapshot = `${path()}/.snapshots/${pick(["s", "t"])}`;
    const which = random.next();
    if (which < 0.6) return { kind: "snapshot", path: snapshot, sealed: [] };
    if (which < 0.8) return { kind: "remove", path: snapshot, isDeep: true, ...unconditional };
    if (which < 0.9) return { kind: "folder", path: `${snapshot}/${path()}`, makeFolders };
    const how = { makeFolders, over: "anything", isDeep: true, ...unconditional } as const;
    return { kind: "copy", from: `${snapshot}/${pick(names)}`, to: path(), ...how };
  }
  if (at > 0.94) {
    const limit = (): number | null => (isSo() ? null : Math.floor(random.next() * 5));
    const quota = random.next() < 0.2 ? null : { bytes: limit(), files: limit() };
    return { kind: "quota", path: path(), quota };
  }
  if (at < 0.45) return { kind: "touch", path: path(), modifiedMs: 1, ifVersion: null, sealed: [] };
  if (at < 0.55) return { kind: "folder", path: path(), makeFolders };
  if (at < 0.7) return { kind: "remove", path: path(), isDeep: isSo(), ...unconditional };
  const over = pick(["nothing", "file", "anything"] as const);
  const kind = isSo() ? "move" : "copy";
  return { kind, from: path(), to: path(), makeFolders, over, isDeep: isSo(), ...unconditional };
}

const contentOf = ({ entry }: Found): string => (entry.kind === "file" ? entry.content.id : "folder");

function allOf(state: NamesState): Map<string, string> {
  const all = new Map<string, string>();
  const walk = (id: number, path: string): void => {
    for (const child of state.children(id, "")) {
      all.set(path + child.name, contentOf({ path: "", entry: child.entry }));
      if (child.entry.kind === "folder") walk(child.id, `${path}${child.name}/`);
    }
  };
  walk(rootId, "");
  return all;
}

/** The use of each folder, and its quota. */
function usesOf(state: NamesState): string[] {
  const uses: string[] = [];
  const walk = (id: number, path: string): void => {
    for (const { id: child, name, entry } of state.children(id, "")) {
      if (entry.kind === "file") continue;
      uses.push(JSON.stringify([path + name, state.usage.of(child), entry.quota ?? null]));
      walk(child, `${path}${name}/`);
    }
  };
  uses.push(JSON.stringify(["", state.usage.of(rootId), null]));
  walk(rootId, "");
  return uses.sort();
}

const modelUses = (model: Model): string[] =>
  ["", ...model.entries.keys()]
    .filter((path) => path === "" || model.entries.get(path) === "folder")
    .map((path) => JSON.stringify([path, model.usageOf(path), model.quotas.get(path) ?? null]))
    .sort();

const sorted = (all: ReadonlyMap<string, string>): string[] =>
  [...all].map(([path, content]) => `${path}: ${content}`).sort();

let versions = 0;
const circumstances = {
  version: () => `v${(versions += 1)}`,
  nowMs: 0,
  mayName: () => [],
  mayPlace: () => undefined,
  keepers: [],
};

function isMade(draft: Draft, change: Change): boolean {
  try {
    draft.make(change, circumstances);
    return true;
  } catch (error) {
    if (error instanceof LeaseholdError) return false;
    throw error;
  }
}

test.each(Array.from({ length: 60 }, (_, seed) => seed + 1))(
  "names are those of a file system, live, replayed, and from a snapshot made beside changes: %i",
  (seed) => {
    const random = new Xorshift(seed);
    const model = new Model();
    const state = new NamesState();
    const journal: Uint8Array[] = [];
    let snapshotFrom: number | undefined;
    let pieces: IterableIterator<unknown> | undefined;
    const append = (facts: readonly Fact[]): void => {
      journal.push(encodeNames({ nextId: state.nextId, facts }));
    };
    for (let batch = 0; batch < 60; batch += 1) {
      const draft = new Draft(state);
      for (let count = 0; count < 1 + random.next() * 4; count += 1) {
        const change = drawChange(random, `c${batch}-${count}`);
        expect([change, isMade(draft, change)]).toEqual([change, model.make(change)]);
      }
      append(draft.facts);
      state.apply(draft.facts);
      expect(sorted(allOf(state))).toEqual(sorted(model.entries));
      expect(usesOf(state)).toEqual(modelUses(model));
      if (batch === 20) {
        snapshotFrom = journal.length;
        pieces = (state.all() as MapIterator<never>)[Symbol.iterator]();
      }
      for (let count = 0; count < 2 && pieces !== undefined; count += 1) {
        const next = pieces.next();
        const name = next.value as Fact[1];
        if (next.done === true) pieces = undefined;
        else if (name !== null && name.id !== rootId) append([[name.id, name]]);
      }
    }
    const replay = (records: readonly Uint8Array[]): NamesState => {
      const again = new NamesState();
      for (const record of records) again.replay(decodeNames(record).facts);
      Array.from(again.endReplay());
      return again;
    };
    expect(sorted(allOf(replay(journal)))).toEqual(sorted(model.entries));
    expect(usesOf(replay(journal))).toEqual(modelUses(model));
    // Replay doesn't begin at an unfinished snapshot.
    const from = pieces === undefined ? snapshotFrom : 0;
    expect(sorted(allOf(replay(journal.slice(from))))).toEqual(sorted(model.entries));
    expect(usesOf(replay(journal.slice(from)))).toEqual(modelUses(model));
    const files = new Set([...model.entries.values()].filter((content) => content !== "folder"));
    for (let batch = 0; batch < 60; batch += 1)
      for (let count = 0; count < 5; count += 1) {
        const content = `c${batch}-${count}`;
        expect([content, state.isNamed(content)]).toEqual([content, files.has(content)]);
      }
    const paths = [...model.entries].filter(([, content]) => content !== "folder").map(([path]) => path);
    for (const prefix of ["", "a", "a/", "a/a-", "b/a/", "c", "a/.snapshots/s/", "b/.snapshots/t/a"])
      for (const after of ["", "a", "a/a", "a-b", ...paths.slice(0, 3)])
        expect([prefix, after, [...filesBelow(state, prefix, after)].map(({ path }) => path)]).toEqual([
          prefix,
          after,
          paths
            .filter((path) => path.startsWith(prefix) && path > after && !isHidden(path.slice(prefix.length)))
            .sort(),
        ]);
  },
);

const live: Content = { ...emptyContent, id: "live", isLive: true };
const change = { makeFolders: true, ifMissing: false, ifVersion: null, ifContent: null } as const;

function stateWith(path: string, content: Content): NamesState {
  const state = new NamesState();
  const draft = new Draft(state);
  draft.make({ kind: "put", path, content, sealed: [], ...change }, circumstances);
  state.apply(draft.facts);
  return state;
}

const across = { makeFolders: true, over: "anything", isDeep: true, ifVersion: null } as const;

test.each<Change>([
  { kind: "put", path: "f/x", content: emptyContent, sealed: [], ...change },
  { kind: "remove", path: "f", isDeep: true, ifVersion: null, sealed: [] },
  { kind: "move", from: "f", to: "g", sealed: [], ...across },
  { kind: "move", from: "y", to: "f", sealed: [], ...across },
  { kind: "copy", from: "f", to: "g", sealed: [], ...across },
])("a live content is not moved, shared or dropped before it is sealed: $kind", (wanted) => {
  const state = stateWith("f/x", live);
  const other = new Draft(state);
  other.make(
    { kind: "put", path: "y", content: { ...live, isLive: false, id: "y" }, sealed: [], ...change },
    circumstances,
  );
  state.apply(other.facts);
  const draft = new Draft(state);
  expect(() => draft.make(wanted, circumstances)).toThrow(Unsealed);
  expect(draft.facts).toEqual([]);
  draft.make({ ...wanted, sealed: ["live"] } as Change, circumstances);
  expect(draft.facts.length).toBeGreaterThan(0);
});

test("a content that was not announced is not named, and one that has the name already is named again", () => {
  const state = stateWith("x", { ...live, isLive: false, id: "one" });
  const draft = new Draft(state);
  const put = { kind: "put", path: "x", sealed: [], ...change } as const;
  const mayName = (): never => {
    throw new LeaseholdError("STORE_FORGOTTEN");
  };
  const nothing = { ...circumstances, mayName };
  const two = { ...put, content: { ...emptyContent, id: "two" } };
  expect(() => draft.make(two, nothing)).toThrow(expect.objectContaining({ code: "STORE_FORGOTTEN" }));
  const one = { ...put, content: { ...emptyContent, id: "one" } };
  expect(draft.make(one, nothing)).toMatchObject({ existed: true });
  expect(draft.facts).toEqual([]);
});

const nodesOf = (disks: Readonly<Record<string, string>>): NodeList => ({
  version: 1,
  copies: 3,
  nodes: Object.entries(disks).map(([id, disk]) => ({ id, disk, address: "", zone: "", state: "serving" })),
});

test("a content is named when most of its nodes have it, on disks that count", () => {
  const state = new NamesState();
  state.apply([], [], nodesOf({ a: "1", b: "2", c: "3" }));
  const draft = new Draft(state);
  const placed = { ...circumstances, mayName: () => ["a", "b", "c"] };
  const content = { ...emptyContent, id: "one" };
  const put = { kind: "put", path: "x", sealed: [], ...change, content } as const;
  const held = (disks: Readonly<Record<string, string>>) =>
    draft.make({ ...put, holders: Object.entries(disks).map(([node, disk]) => ({ node, disk })) }, placed);
  for (const disks of [{}, { a: "1" }, { a: "1", b: "old" }, { a: "1", d: "2" }])
    expect(() => held(disks)).toThrow(expect.objectContaining({ code: "STORE_FORGOTTEN" }));
  expect(draft.isEmpty).toBe(true);
  held({ a: "1", c: "3" });
  const { facts, placements, list } = decodeNames(encodeNames(draft.record()));
  state.apply(facts, placements, list);
  expect(state.placementOf("one")).toEqual(["a", "b", "c"]);
  expect([state.placedOn("a"), state.placedOn("d")]).toEqual([1, 0]);
  // Moving or copying a name keeps the content's placement; removing its last name removes the placement.
  for (const wanted of [
    { kind: "move", from: "x", to: "y", sealed: [], ...across },
    { kind: "copy", from: "y", to: "z", sealed: [], ...across },
    { kind: "remove", path: "y", isDeep: true, ifVersion: null, sealed: [] },
  ] as const) {
    const next = new Draft(state);
    next.make(wanted, circumstances);
    const record = next.record();
    state.apply(record.facts, record.placements);
    expect(state.placementOf("one")).toEqual(["a", "b", "c"]);
  }
  const last = new Draft(state);
  last.make({ kind: "remove", path: "z", isDeep: true, ifVersion: null, sealed: [] }, circumstances);
  state.apply(last.facts);
  expect([state.placementOf("one"), state.placedOn("a")]).toEqual([[], 0]);
});

test("a folder of 8,000 names is copied, and one of 8,001 is not", () => {
  const state = stateWith("f/x", { ...live, isLive: false, id: "one" });
  const fill = new Draft(state);
  // Including the folder itself.
  for (let count = 2; count < 8_000; count += 1)
    fill.make(
      { kind: "put", path: `f/${count}`, content: emptyContent, sealed: [], ...change },
      circumstances,
    );
  state.apply(fill.facts);
  const copy = { kind: "copy", from: "f", to: "g", sealed: [], ...across } as const;
  const draft = new Draft(state);
  draft.make(copy, circumstances);
  expect(draft.facts.length).toBe(8_000);
  expect(encodeNames({ nextId: 0, facts: draft.facts }).length).toBeLessThan(draft.bytes);
  const one = new Draft(state);
  one.make({ kind: "put", path: "f/more", content: emptyContent, sealed: [], ...change }, circumstances);
  expect(() => one.make(copy, circumstances)).toThrow(expect.objectContaining({ code: "UNSUPPORTED" }));
  expect(one.facts.length).toBe(1);
});

test("a record of the longest names is not longer than is thought", () => {
  for (const name of ['"'.repeat(480), "€".repeat(160), "\\".repeat(480)]) {
    const draft = new Draft(new NamesState());
    const long: Content = {
      id: "f".repeat(36),
      isLive: false,
      size: Number.MAX_SAFE_INTEGER,
      blockSize: 2 ** 22,
      checksum: 2 ** 32 - 1,
    };
    draft.make({ kind: "put", path: name, content: long, sealed: [], ...change }, circumstances);
    expect(encodeNames({ nextId: 0, facts: draft.facts }).length).toBeLessThan(draft.bytes);
  }
});

test("a change with the version of another time is refused", () => {
  const state = stateWith("x", { ...live, isLive: false, id: "one" });
  const { entry } = find(state, "x")!;
  const version = entry.kind === "file" ? entry.version : "";
  const put = { kind: "put", path: "x", sealed: [], ...change, content: emptyContent } as const;
  const draft = new Draft(state);
  draft.make({ ...put, ifVersion: version }, circumstances);
  const again = () => draft.make({ ...put, ifVersion: version }, circumstances);
  expect(again).toThrow(expect.objectContaining({ code: "FILE_CHANGED" }));
});
