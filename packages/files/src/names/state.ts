import sortedBtree from "sorted-btree";
import { extraBytes, type NamesRecord } from "./records.js";
import { copiesIn } from "./attributes.js";
import { noNodes, type NodeList } from "./nodes.js";
import type { Content, Fact, FileEntry, Found, Name, Part, PlacedContent, Placement } from "./types.js";
import { snapshotsName } from "./snapshots.js";
import { minus, namesPerStep, UsageTable } from "./usage.js";

// The package is CommonJS, whose `exports` is the class.
const BTree = sortedBtree.default;

export const rootId = 0;
const root: Name = { id: rootId, parent: -1, name: "", entry: { kind: "folder", modifiedMs: 0 } };

/** Reads of names, shared by the state and by a draft of changes to it. */
export interface Names {
  byId(id: number): Name | undefined;
  child(parent: number, name: string): Name | undefined;
  /** In order of path; folders sort with a slash at the end. */
  children(parent: number, from: string): Iterable<Name>;
  liveIds(): Iterable<number>;
}

/** The key of a name in path order. The parent's id ends at the first space. */
export function placeOf({ parent, name, entry }: Pick<Name, "parent" | "name" | "entry">): string {
  return `${parent} ${name}${entry.kind === "folder" ? "/" : ""}`;
}

/** All names and their contents, as a state machine. `apply` is the only transition. */
export class NamesState implements Names {
  /** Greater than every id so far. */
  nextId = rootId + 1;
  readonly #byId = new Map<number, Name>([[rootId, root]]);
  readonly #byPlace = new BTree<string, Name>(undefined, (a, b) => (a < b ? -1 : a > b ? 1 : 0));
  list: NodeList = noNodes;
  /** The number of names of each content. */
  readonly #uses = new Map<string, number>();
  /** The nodes of each content. Contents on the same nodes share one array. */
  readonly #placements = new Map<string, readonly string[]>();
  readonly #sets = new Map<string, readonly string[]>();
  readonly #placedOn = new Map<string, number>();
  readonly #live = new Set<number>();
  /** The upper bound of the length in records of all fields that most names lack. */
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
   * All names that exist now, except those that have changed by the time they are reached. So the iteration
   * ends however fast names change.
   */
  all(): Generator<Name> {
    return this.#unchanged([...this.#byId.values()]);
  }

  *#unchanged(all: readonly Name[]): Generator<Name> {
    for (const name of all) if (this.#byId.get(name.id) === name) yield name;
  }

  /** Empty for a content that has no name or is written in place. */
  placementOf(content: string): readonly string[] {
    return this.#placements.get(content) ?? [];
  }

  /** A part of a snapshot. */
  recordOf(facts: readonly Fact[]): NamesRecord {
    const placements = new Map<string, readonly string[]>();
    for (const content of contentsIn(facts)) {
      const nodes = this.placementOf(content);
      if (nodes.length > 0) placements.set(content, nodes);
    }
    return { nextId: this.nextId, facts, placements: [...placements], list: this.list };
  }

  /** The number of contents on that node. */
  placedOn(node: string): number {
    return this.#placedOn.get(node) ?? 0;
  }

  /** The number of nodes that should have the files of that folder. */
  copiesIn(folder: number): number {
    for (let name = this.byId(folder); name !== undefined; name = this.byId(name.parent)) {
      const copies = copiesIn(name.entry.attributes);
      if (copies !== undefined) return copies;
    }
    return this.list.copies;
  }

  /** The content of a file. Its other names, if any, keep the content. */
  copiesOf({ parent }: Name, content: string): number {
    const copies = this.copiesIn(parent);
    const isShared = (this.#uses.get(content) ?? 0) > 1;
    return isShared ? Math.max(copies, this.placementOf(content).length) : copies;
  }

  /** Immutable contents on that node after that name, in the order of their names. */
  contents(
    node: string,
    after: string,
    limit: number,
    stepOf: (name: Name, content: string, nodes: readonly string[]) => PlacedContent["step"],
  ): { readonly contents: PlacedContent[]; readonly next?: string } {
    const contents: PlacedContent[] = [];
    let seen = 0;
    for (const [place, name] of this.#byPlace.entries(after)) {
      if (place === after) continue;
      seen += 1;
      const { entry } = name;
      const parts = entry.kind === "file" && !entry.content.isLive ? partsOf(entry.content) : [];
      seen += parts.length;
      for (const { id, size, blockSize, checksum } of parts) {
        const nodes = this.placementOf(id);
        const step = nodes.length === 0 ? undefined : stepOf(name, id, nodes);
        if (step !== undefined || nodes.includes(node))
          contents.push({ id, size, blockSize, checksum, nodes, ...(step && { step }) });
      }
      if (seen >= limit) return { contents, next: place };
    }
    return { contents };
  }

  apply(facts: readonly Fact[], placements: readonly Placement[] = [], list = this.list): void {
    for (const fact of facts) this.#apply(fact, true);
    this.#placeAll(placements, list);
  }

  /** Applies a record of a journal. Usage is counted at the end: see {@link endReplay}. */
  replay(facts: readonly Fact[], placements: readonly Placement[] = [], list = this.list): void {
    for (const fact of facts) this.#apply(fact, false);
    this.#placeAll(placements, list);
  }

  #placeAll(placements: readonly Placement[], list: NodeList): void {
    this.list = list;
    for (const [content, nodes] of placements) if (this.#uses.has(content)) this.#place(content, nodes);
  }

  #place(content: string, nodes: readonly string[]): void {
    this.#unplace(content);
    if (nodes.length === 0) return;
    const key = nodes.join();
    const shared = this.#sets.get(key) ?? [...nodes];
    this.#sets.set(key, shared);
    this.#placements.set(content, shared);
    for (const node of shared) this.#placedOn.set(node, this.placedOn(node) + 1);
  }

  #unplace(content: string): void {
    for (const node of this.placementOf(content)) this.#placedOn.set(node, this.placedOn(node) - 1);
    this.#placements.delete(content);
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

  /** Not recursive, because a moved folder may be deeper than any path. */
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
    // A name moved to its place has already replaced it.
    if (this.#byPlace.get(placeOf(name)) === name) this.#byPlace.delete(placeOf(name));
    if (entry.kind === "folder") return;
    this.#live.delete(id);
    for (const part of partsOf(entry.content)) {
      const uses = this.#uses.get(part.id)! - 1;
      if (uses > 0) {
        this.#uses.set(part.id, uses);
        continue;
      }
      this.#uses.delete(part.id);
      this.#unplace(part.id);
    }
  }

  /**
   * Ends a replay. A snapshot written between changes may contain names whose folder was removed, and names
   * that come before their folder. This removes the former and recounts what each folder contains.
   * @returns steps, between which the node may renew its leases: there may be a million names
   */
  *endReplay(): Generator<void> {
    yield* this.#dropOrphans();
    yield* this.usage.count(this.#byId);
  }

  *#dropOrphans(): Generator<void> {
    /** Folders, and whether the root is above them. */
    const known = new Map<number, boolean>([[rootId, true]]);
    const orphans: Name[] = [];
    let seen = 0;
    for (const name of this.#byId.values()) {
      if (name.id !== rootId && !this.#isReachable(name.parent, known)) orphans.push(name);
      if ((seen += 1) % namesPerStep === 0) yield;
    }
    for (const name of orphans) this.#forgetOne(name);
  }

  #isReachable(folder: number, known: Map<number, boolean>): boolean {
    const found = known.get(folder);
    if (found !== undefined) return found;
    const way: number[] = [];
    let above = this.#byId.get(folder);
    for (; above !== undefined && !known.has(above.id); above = this.#byId.get(above.parent))
      way.push(above.id);
    const isReachable = above !== undefined && known.get(above.id)!;
    for (const id of way) known.set(id, isReachable);
    return isReachable;
  }
}

/** The ids of the contents that disks store for these names. */
export function* contentsIn(facts: readonly Fact[]): Generator<string> {
  for (const [, name] of facts)
    if (name?.entry.kind === "file") for (const { id } of partsOf(name.entry.content)) yield id;
}

/** The contents that disks store for one content. */
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

/** The nearest existing folder above a path. */
export function folderAbove(names: Names, path: string): number {
  let folder = rootId;
  for (const part of path.split("/").slice(0, -1)) {
    const next = names.child(folder, part);
    if (next?.entry.kind !== "folder") return folder;
    folder = next.id;
  }
  return folder;
}

/** The path of a name. */
export function pathOf(names: Names, id: number): string {
  const parts: string[] = [];
  for (let name = names.byId(id); name !== undefined && name.parent >= 0; name = names.byId(name.parent))
    parts.unshift(name.name);
  return parts.join("/");
}

/** The names in a folder, as lists show them. */
export function* shownIn(names: Names, folder: number, from: string): Generator<Name> {
  for (const child of names.children(folder, from)) if (child.name !== snapshotsName) yield child;
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
    if (child.name === snapshotsName) continue;
    if (!below.startsWith(prefix)) {
      if (below > prefix) return;
      continue;
    }
    if (after.startsWith(below) || below > after) yield* filesIn(names, child.id, below, below, after);
  }
}
