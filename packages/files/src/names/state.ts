import sortedBtree from "sorted-btree";
import type { Content, Fact, FileEntry, Found, Name } from "./types.js";

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
   * All names, in the order of their ids, also while they change: later ones may or may not be among them.
   */
  all(): Iterable<Name> {
    return this.#byId.values();
  }

  /** Immutable contents in the order of their names' places after that one, and the last place. */
  contents(after: string, limit: number): { readonly contents: Content[]; readonly next?: string } {
    const contents: Content[] = [];
    let seen = 0;
    for (const [place, { entry }] of this.#byPlace.entries(after)) {
      if (place === after) continue;
      seen += 1;
      if (entry.kind === "file" && !entry.content.isLive && entry.content.id !== "")
        contents.push(entry.content);
      if (seen === limit) return { contents, next: place };
    }
    return { contents };
  }

  apply(facts: readonly Fact[]): void {
    for (const [id, name] of facts) {
      this.nextId = Math.max(this.nextId, id + 1);
      const before = this.#byId.get(id);
      if (before !== undefined) this.#forget(before, name === null);
      if (name === null) continue;
      this.#byId.set(id, name);
      this.#byPlace.set(placeOf(name), name);
      if (name.entry.kind === "file") this.#use(id, name.entry);
    }
  }

  #use(id: number, { content }: FileEntry): void {
    if (content.isLive) this.#live.add(id);
    if (content.id === "") return;
    this.#uses.set(content.id, (this.#uses.get(content.id) ?? 0) + 1);
  }

  #forget(name: Name, withAllBelow: boolean): void {
    const { id, entry } = name;
    this.#byId.delete(id);
    // A name that was moved in its place has replaced it there already.
    if (this.#byPlace.get(placeOf(name)) === name) this.#byPlace.delete(placeOf(name));
    if (entry.kind === "folder") {
      if (withAllBelow) for (const child of Array.from(this.children(id, ""))) this.#forget(child, true);
      return;
    }
    this.#live.delete(id);
    const { id: content } = entry.content;
    if (content === "") return;
    const uses = this.#uses.get(content)! - 1;
    if (uses > 0) this.#uses.set(content, uses);
    else this.#uses.delete(content);
  }

  /** Removes names whose folder was removed: a snapshot beside changes may contain them. */
  dropOrphans(): void {
    const known = new Map<number, boolean>([[rootId, true]]);
    const isReachable = ({ id, parent }: Name): boolean => {
      const found = known.get(id);
      if (found !== undefined) return found;
      known.set(id, false);
      const folder = this.#byId.get(parent);
      const reached = folder !== undefined && isReachable(folder);
      known.set(id, reached);
      return reached;
    };
    const orphans = [...this.#byId.values()].filter((name) => !isReachable(name));
    for (const orphan of orphans) if (this.#byId.has(orphan.id)) this.#forget(orphan, false);
  }
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
