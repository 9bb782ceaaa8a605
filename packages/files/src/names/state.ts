import { getOrInsert } from "leasehold/common";
import sortedBtree from "sorted-btree";
import bulk from "sorted-btree/extended/bulkLoad.js";
import { extraBytes, type NamesRecord } from "./records.js";
import { copiesIn } from "./attributes.js";
import { noNodes, type NodeList } from "./nodes.js";
import type { Content, Fact, FileEntry, Found, Name, Part, PlacedContent, Placement } from "./types.js";
import { snapshotsName } from "./snapshots.js";
import { minus, namesPerStep, UsageTable } from "./usage.js";

// The package is CommonJS: these are its `exports`.
const BTree = sortedBtree.default;
const { bulkLoad } = bulk;

/** The names in one folder, by {@link keyOf}. */
type Children = sortedBtree.default<string, Name>;

/** The length of a leaf of a tree, as the package has it by default. */
const childrenPerLeaf = 32;

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

/** The key of a name in its folder, in path order. */
export function keyOf({ name, entry }: Pick<Name, "name" | "entry">): string {
  return entry.kind === "folder" ? `${name}/` : name;
}

/** The key of a name among all names. The parent's id ends at the first space. */
export function placeOf(name: Pick<Name, "parent" | "name" | "entry">): string {
  return `${name.parent} ${keyOf(name)}`;
}

const compareKeys = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** All names and their contents, as a state machine. `apply` is the only transition. */
export class NamesState implements Names {
  /** Greater than every id so far. */
  nextId = rootId + 1;
  readonly #byId = new Map<number, Name>([[rootId, root]]);
  /** A tree for each folder that has names: most keys are then the names themselves, and short. */
  readonly #folders = new BTree<number, Children>();
  list: NodeList = noNodes;
  /** The number of names of each content. */
  readonly #uses = new Map<string, number>();
  /** The nodes of each content. Contents on the same nodes share one array. */
  readonly #placements = new Map<string, readonly string[]>();
  readonly #sets = new Map<string, readonly string[]>();
  readonly #placedOn = new Map<string, number>();
  readonly #live = new Set<number>();
  /** Names that {@link endReplay} has put into folders. */
  #filled = 0;
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
    const children = this.#folders.get(parent);
    return children?.get(name) ?? children?.get(`${name}/`);
  }

  *children(parent: number, from: string): Generator<Name> {
    const children = this.#folders.get(parent);
    if (children !== undefined) for (const [, name] of children.entries(from)) yield name;
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

  /** Immutable contents on that node after that place, in the order of folders' ids and their names. */
  contents(
    node: string,
    after: string,
    limit: number,
    stepOf: (name: Name, content: string, nodes: readonly string[]) => PlacedContent["step"],
  ): { readonly contents: PlacedContent[]; readonly next?: string } {
    const contents: PlacedContent[] = [];
    let seen = 0;
    for (const name of this.#after(after)) {
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
      if (seen >= limit) return { contents, next: placeOf(name) };
    }
    return { contents };
  }

  *#after(place: string): Generator<Name> {
    const end = place.indexOf(" ");
    const first = Number(place.slice(0, Math.max(0, end)));
    const after = place.slice(end + 1);
    for (const [folder, children] of this.#folders.entries(first))
      for (const [key, name] of children.entries(folder === first ? after : undefined))
        if (folder !== first || key > after) yield name;
  }

  apply(facts: readonly Fact[], placements: readonly Placement[] = [], list = this.list): void {
    for (const fact of facts) this.#apply(fact);
    this.list = list;
    for (const [content, nodes] of placements) if (this.#uses.has(content)) this.#place(content, nodes);
  }

  /**
   * Applies a record of a journal. Until {@link endReplay}, only the names themselves and the placements are
   * kept: what follows from them is then computed once for each name that is left.
   */
  replay(facts: readonly Fact[], placements: readonly Placement[] = [], list = this.list): void {
    for (const [id, name] of facts) {
      this.nextId = Math.max(this.nextId, id + 1);
      if (name === null) this.#byId.delete(id);
      else this.#byId.set(id, name);
    }
    this.list = list;
    let before: readonly string[] | undefined;
    let shared: readonly string[] = [];
    for (const [content, nodes] of placements) {
      if (nodes !== before) shared = this.#shared(nodes);
      before = nodes;
      this.#placements.set(content, shared);
    }
  }

  #shared(nodes: readonly string[]): readonly string[] {
    return getOrInsert(this.#sets, nodes.join(), () => [...nodes]);
  }

  #place(content: string, nodes: readonly string[]): void {
    this.#unplace(content);
    if (nodes.length === 0) return;
    const shared = this.#shared(nodes);
    this.#placements.set(content, shared);
    this.#countPlaced(shared);
  }

  #countPlaced(nodes: readonly string[]): void {
    for (const node of nodes) this.#placedOn.set(node, this.placedOn(node) + 1);
  }

  #unplace(content: string): void {
    for (const node of this.placementOf(content)) this.#placedOn.set(node, this.placedOn(node) - 1);
    this.#placements.delete(content);
  }

  #apply([id, name]: Fact): void {
    this.nextId = Math.max(this.nextId, id + 1);
    const before = this.#byId.get(id);
    if (before !== undefined) {
      this.usage.add(this, before.parent, minus(this.usage.ofName(before)));
      this.#forget(before, name === null);
    }
    if (name === null) return;
    this.#byId.set(id, name);
    this.usage.add(this, name.parent, this.usage.ofName(name));
    getOrInsert(this.#folders, name.parent, () => new BTree<string, Name>(undefined, compareKeys)).set(
      keyOf(name),
      name,
    );
    this.#note(name);
  }

  /** Counts what a name adds besides its place and its usage. */
  #note({ id, entry }: Name): void {
    this.extraBytes += extraBytes(entry);
    if (entry.kind === "file") this.#use(id, entry);
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
    const children = this.#folders.get(name.parent);
    // A name moved to its place has already replaced it.
    if (children?.get(keyOf(name)) === name) children.delete(keyOf(name));
    if (children?.isEmpty === true) this.#folders.delete(name.parent);
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
    const byFolder = new Map<number, Name[]>();
    let seen = 0;
    for (const name of this.#byId.values()) {
      if (name.id !== rootId) getOrInsert(byFolder, name.parent, () => []).push(name);
      if ((seen += 1) % namesPerStep === 0) yield;
    }
    /** Folders, and whether the root is above them. */
    const known = new Map<number, boolean>([[rootId, true]]);
    for (const [folder, names] of byFolder)
      if (this.#isReachable(folder, known)) yield* this.#fill(folder, names);
      else for (const { id } of names) this.#byId.delete(id);
    for (const [content, nodes] of this.#placements) {
      if (nodes.length > 0 && this.#uses.has(content)) this.#countPlaced(nodes);
      else this.#placements.delete(content);
      if ((seen += 1) % namesPerStep === 0) yield;
    }
    yield* this.usage.count(this.#byId);
  }

  /** Puts its names into a folder. Sorting them first is quicker, but a long folder would take too long. */
  *#fill(folder: number, names: Name[]): Generator<void> {
    const isShort = names.length <= namesPerStep;
    if (isShort) names.sort((one, other) => compareKeys(keyOf(one), keyOf(other)));
    const children: Children = isShort
      ? bulkLoad(names.map(keyOf), names, childrenPerLeaf, compareKeys)
      : new BTree<string, Name>(undefined, compareKeys);
    this.#folders.set(folder, children);
    for (const name of names) {
      if (!isShort) children.set(keyOf(name), name);
      this.#note(name);
      if ((this.#filled += 1) % namesPerStep === 0) yield;
    }
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
