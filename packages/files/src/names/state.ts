import sortedBtree from "sorted-btree";
import { extraBytes } from "./records.js";
import type { Content, Fact, FileEntry, Found, Name, Part } from "./types.js";
import { minus, UsageTable } from "./usage.js";

// The package is CommonJS, whose `exports` is the class.
const BTree = sortedBtree.default;

export const rootId = 0;
const root: Name = { id: rootId, parent: -1, name: "", entry: { kind: "folder", modifiedMs: 0 } };

/** Reads of names, by the state and by a draft of changes to it. */
export interface Names {
  byId(id: number): Name | undefined;
  child(parent: number, name: string): Name | undefined;
  /** In the order of their paths: folders are sorted with a slash at their end. */
  children(parent: number, from: string): Iterable<Name>;
  liveIds(): Iterable<number>;
}

/** The key of a name in the order of paths. Names contain no space before the first slash of the key. */
export function placeOf({ parent, name, entry }: Pick<Name, "parent" | "name" | "entry">): string {
  return `${parent} ${name}${entry.kind === "folder" ? "/" : ""}`;
}

/** All names and their contents, as a state machine: `apply` is its only transition. */
export class NamesState implements Names {
  /** Greater than each id so far. */
  nextId = rootId + 1;
  readonly #byId = new Map<number, Name>([[rootId, root]]);
  readonly #byPlace = new BTree<string, Name>(undefined, (a, b) => (a < b ? -1 : a > b ? 1 : 0));
  /** How many names each content has. */
  readonly #uses = new Map<string, number>();
  readonly #live = new Set<number>();
  /** The upper bound of the length in records of all that most names do not have. */
  extraBytes = 0;
  readonly usage = new UsageTable();

  get size(): number {
    return this.#byId.size - 1;
  }

  byId(id: number): Name | undefined {
    return this.#byId.get(id);
  }

  child(parent: number, name: string): Name | undefined {
    return this.#byPlace.get(`${parent} ${name}`) ?? this.#byPlace.get(`${parent} ${name}/`);
  }

  *children(parent: number, from: string): Generator<Name> {
    const prefix = `${parent} `;
    for (const [place, name] of this.#byPlace.entries(prefix + from)) {
      if (!place.startsWith(prefix)) return;
      yield name;
    }
  }

  liveIds(): Iterable<number> {
    return this.#live;
  }

  isNamed(content: string): boolean {
    return this.#uses.has(content);
  }

  /**
   * All names that are here now and have not changed when their turn comes, so that it ends however fast
   * names change.
   */
  all(): Generator<Name> {
    return this.#unchanged([...this.#byId.values()]);
  }

  *#unchanged(all: readonly Name[]): Generator<Name> {
    for (const name of all) if (this.#byId.get(name.id) === name) yield name;
  }

  /** Immutable contents in the order of their names' places after that one, and the last place. */
  contents(after: string, limit: number): { readonly contents: Part[]; readonly next?: string } {
    const contents: Part[] = [];
    let seen = 0;
    for (const [place, { entry }] of this.#byPlace.entries(after)) {
      if (place === after) continue;
      seen += 1;
      if (entry.kind === "file" && !entry.content.isLive)
        for (const part of partsOf(entry.content)) contents.push(part);
      if (seen === limit || contents.length >= limit) return { contents, next: place };
    }
    return { contents };
  }

  apply(facts: readonly Fact[]): void {
    for (const fact of facts) this.#apply(fact, true);
  }

  /** Applies facts of a journal, whose use is counted at the end: {@link endReplay}. */
  replay(facts: readonly Fact[]): void {
    for (const fact of facts) this.#apply(fact, false);
  }

  #apply([id, name]: Fact, isCounted: boolean): void {
    this.nextId = Math.max(this.nextId, id + 1);
    const before = this.#byId.get(id);
    if (before !== undefined) {
      if (isCounted) this.usage.add(this, before.parent, minus(this.usage.ofName(before)));
      this.#forget(before, name === null);
    }
    if (name === null) return;
    this.#byId.set(id, name);
    if (isCounted) this.usage.add(this, name.parent, this.usage.ofName(name));
    this.#byPlace.set(placeOf(name), name);
    this.extraBytes += extraBytes(name.entry);
    if (name.entry.kind === "file") this.#use(id, name.entry);
  }

  #use(id: number, { content }: FileEntry): void {
    if (content.isLive) this.#live.add(id);
    for (const part of partsOf(content)) this.#uses.set(part.id, (this.#uses.get(part.id) ?? 0) + 1);
  }

  /** Without recursion, as a folder that was moved may be deeper than any path. */
  #forget(top: Name, withAllBelow: boolean): void {
    const all = [top];
    for (let name = all.pop(); name !== undefined; name = all.pop()) {
      if (withAllBelow && name.entry.kind === "folder")
        for (const child of this.children(name.id, "")) all.push(child);
      this.#forgetOne(name);
      if (withAllBelow) this.usage.forget(name.id);
    }
  }

  #forgetOne(name: Name): void {
    const { id, entry } = name;
    this.#byId.delete(id);
    this.extraBytes -= extraBytes(entry);
    // A name that was moved in its place has replaced it there already.
    if (this.#byPlace.get(placeOf(name)) === name) this.#byPlace.delete(placeOf(name));
    if (entry.kind === "folder") return;
    this.#live.delete(id);
    for (const part of partsOf(entry.content)) {
      const uses = this.#uses.get(part.id)! - 1;
      if (uses > 0) this.#uses.set(part.id, uses);
      else this.#uses.delete(part.id);
    }
  }

  /**
   * Ends a replay. A snapshot beside changes may contain names whose folder was removed, and names before
   * their folder: it removes the former, and counts anew what is in each folder.
   */
  endReplay(): void {
    this.#dropOrphans();
    this.usage.count(this.#byId.values());
  }

  #dropOrphans(): void {
    const known = new Map<number, boolean>([[rootId, true]]);
    for (const name of this.#byId.values()) {
      const way: Name[] = [];
      let above: Name | undefined = name;
      for (; above !== undefined && !known.has(above.id); above = this.#byId.get(above.parent))
        way.push(above);
      const isReachable = above !== undefined && known.get(above.id)!;
      for (const { id } of way) known.set(id, isReachable);
    }
    for (const name of this.#byId.values()) if (!known.get(name.id)!) this.#forgetOne(name);
  }
}

/** The contents that disks have of one. */
export function partsOf(content: Content): readonly Part[] {
  return content.parts ?? (content.id === "" ? [] : [content]);
}

/** What a path names; undefined if nothing. */
export function find(names: Names, path: string): Name | undefined {
  let found = names.byId(rootId);
  for (const part of path === "" ? [] : path.split("/")) {
    if (found === undefined || found.entry.kind !== "folder") return undefined;
    found = names.child(found.id, part);
  }
  return found;
}

/** The path of a name. */
export function pathOf(names: Names, id: number): string {
  const parts: string[] = [];
  for (let name = names.byId(id); name !== undefined && name.parent >= 0; name = names.byId(name.parent))
    parts.unshift(name.name);
  return parts.join("/");
}

/** Files below a prefix of paths, in the order of `<` on their paths. */
export function* filesBelow(names: Names, prefix: string, after: string): Generator<Found> {
  const end = prefix.lastIndexOf("/");
  const folder = find(names, prefix.slice(0, Math.max(0, end)));
  if (folder?.entry.kind !== "folder") return;
  yield* filesIn(names, folder.id, prefix.slice(0, end + 1), prefix, after);
}

function* filesIn(names: Names, id: number, path: string, prefix: string, after: string): Generator<Found> {
  const from = after > prefix && after.startsWith(path) ? after : prefix;
  const [first = ""] = from.slice(path.length).split("/", 1);
  for (const child of names.children(id, first)) {
    const whole = path + child.name;
    const { entry } = child;
    if (entry.kind === "file") {
      if (!whole.startsWith(prefix)) return;
      if (whole > after) yield { path: whole, entry };
      continue;
    }
    const below = `${whole}/`;
    if (!below.startsWith(prefix)) {
      if (below > prefix) return;
      continue;
    }
    if (after.startsWith(below) || below > after) yield* filesIn(names, child.id, below, below, after);
  }
}
