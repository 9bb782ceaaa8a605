import { LeaseholdError } from "leasehold/common";
import { changeAttributes, withoutContent } from "./attributes.js";
import { eventBytesMax, type NameEvent, withoutHidden } from "./change-log.js";
import { changedNodes, type Holder, isHeld, type NodeChange, type NodeList } from "./nodes.js";
import { extraBytes, type NamesRecord, nodesBytes, placedBytesMax } from "./records.js";
import { contentsIn, type Names, type NamesState, find, partsOf, pathOf, placeOf, rootId } from "./state.js";
import { folderOfSnapshot, isInSnapshots, pathBytesMax, snapshotsMax, snapshotsName } from "./snapshots.js";
import { emptyContent } from "./types.js";
import type {
  Change,
  Composition,
  Content,
  Entry,
  Fact,
  FileEntry,
  FolderChange,
  FolderEntry,
  MoveChange,
  Name,
  Part,
  PlaceChange,
  PutChange,
  Quota,
  QuotaChange,
  RemoveChange,
  SnapshotChange,
  TouchChange,
  Usage,
} from "./types.js";
import { foldersFrom, minus, noUsage, ownUsage, plus, UsageTable } from "./usage.js";

/**
 * The most that one change may copy: names, and bytes of their records, which must fit in one block of the
 * journal.
 */
const copiedMax = 8_000;
const copiedBytesMax = 2.5 * 2 ** 20;
/** The most contents that one content may be made of. */
export const partsMax = 10_000;
/** The most names in a folder that are searched for a file. */
const lookedMax = 8_000;

/** The change must wait until these live contents accept no more writes. */
export class Unsealed extends Error {
  readonly contents: readonly string[];

  constructor(contents: readonly string[]) {
    super("live contents must be sealed first");
    this.contents = contents;
  }
}

/** A defect: the change threw after some of its facts had been noted. The draft must not be written. */
export class HalfMade extends Error {}

export interface Circumstances {
  readonly version: () => string;
  readonly nowMs: number;
  /**
   * The nodes of a content that may be named because it was announced. Empty: it is written in place.
   * @throws LeaseholdError `STORE_FORGOTTEN`
   */
  readonly mayName: (change: PutChange) => readonly string[];
  /** @throws LeaseholdError `STORE_FORGOTTEN` if the nodes that are new may collect the content. */
  readonly mayPlace: (change: PlaceChange) => void;
  /** The nodes that keep the names. */
  readonly keepers: readonly string[];
}

/** What a change made of its path. */
export interface Made {
  readonly entry: Entry | null;
  readonly existed: boolean;
}

/** A sequence of changes on top of a state that they have not been applied to yet. */
export class Draft implements Names {
  readonly #state: NamesState;
  readonly #byId = new Map<number, Name | null>();
  readonly #byPlace = new Map<string, Name | null>();
  readonly #placements = new Map<string, readonly string[]>();
  /** Sets of nodes that the record already contains. */
  readonly #sets = new Set<string>();
  list: NodeList;
  readonly #usage: UsageTable;
  #facts: Fact[] = [];
  readonly #events: NameEvent[] = [];
  #nextId: number;
  /** The upper bound of the record's length. */
  bytes = 0;

  constructor(state: NamesState) {
    this.#state = state;
    this.#nextId = state.nextId;
    this.list = state.list;
    this.#usage = new UsageTable(state.usage);
  }

  get facts(): readonly Fact[] {
    return this.#facts;
  }

  /** The events of the changes, in order. */
  get events(): readonly NameEvent[] {
    return this.#events;
  }

  get isEmpty(): boolean {
    return this.#facts.length === 0 && this.#placements.size === 0 && this.list === this.#state.list;
  }

  /** The record to write, and to apply once it is written. */
  record(): NamesRecord {
    const placements = new Map(this.#placements);
    for (const content of contentsIn(this.#facts)) {
      const nodes = this.placementOf(content);
      if (nodes.length > 0) placements.set(content, nodes);
    }
    const list = this.list === this.#state.list ? undefined : this.list;
    return { nextId: this.#state.nextId, facts: this.#facts, placements: [...placements], list };
  }

  placementOf(content: string): readonly string[] {
    return this.#placements.get(content) ?? this.#state.placementOf(content);
  }

  /**
   * Makes a change completely or, if it throws, not at all.
   * @throws LeaseholdError `FILE_NOT_FOUND`, `FILE_EXISTS`, `FILE_CHANGED`, `INVALID_PATH`, `UNSUPPORTED`,
   *   `QUOTA_EXCEEDED`
   * @throws Unsealed
   */
  make(change: Change, circumstances: Circumstances): Made {
    const before = this.#facts.length;
    checkFixed(change);
    try {
      return this.#make(change, circumstances);
    } catch (error) {
      // Each change makes all checks before it notes its first fact.
      if (this.#facts.length > before)
        throw new HalfMade("a change of names was left half made", { cause: error });
      throw error;
    }
  }

  byId(id: number): Name | undefined {
    const name = this.#byId.get(id);
    return name === undefined ? this.#state.byId(id) : (name ?? undefined);
  }

  child(parent: number, name: string): Name | undefined {
    for (const place of [`${parent} ${name}`, `${parent} ${name}/`]) {
      const here = this.#byPlace.get(place);
      if (here !== undefined && here !== null) return here;
    }
    const found = this.#state.child(parent, name);
    return found !== undefined && !this.#byPlace.has(placeOf(found)) ? found : undefined;
  }

  *children(parent: number, from: string): Generator<Name> {
    for (const name of this.#state.children(parent, from)) if (!this.#byPlace.has(placeOf(name))) yield name;
    const prefix = `${parent} `;
    for (const [place, name] of this.#byPlace)
      if (name !== null && place.startsWith(prefix) && place >= prefix + from) yield name;
  }

  *liveIds(): Generator<number> {
    for (const id of this.#state.liveIds()) if (!this.#byId.has(id)) yield id;
    for (const [id, name] of this.#byId)
      if (name?.entry.kind === "file" && name.entry.content.isLive) yield id;
  }

  #make(change: Change, circumstances: Circumstances): Made {
    switch (change.kind) {
      case "put":
        return this.#put(change, circumstances);
      case "folder":
        return this.#makeFolder(change, circumstances);
      case "move":
        return this.#move(change, circumstances);
      case "copy":
        return this.#copy(change, circumstances);
      case "remove":
        return this.#remove(change);
      case "touch":
        return this.#touch(change);
      case "nodes":
        return this.#changeNodes(change.change, circumstances.keepers);
      case "place":
        return this.#place(change, circumstances);
      case "quota":
        return this.#setQuota(change);
      case "snapshot":
        return this.#snapshot(change, circumstances);
    }
  }

  #changeNodes(change: NodeChange, keepers: readonly string[]): Made {
    const placedOn = (node: string): number => {
      const here = [...this.#placements.values()].filter((nodes) => nodes.includes(node));
      return this.#state.placedOn(node) + here.length;
    };
    this.list = changedNodes(this.list, change, { keepers, placedOn });
    this.bytes += listBytesMax;
    return { entry: null, existed: true };
  }

  #place(change: PlaceChange, { mayPlace }: Circumstances): Made {
    const { content, before, nodes, holders } = change;
    const now = this.placementOf(content);
    if (now.length === 0 || now.join() !== before.join())
      throw new LeaseholdError("FILE_CHANGED", `content ${content} was placed on other nodes meanwhile`);
    this.#mustBeHeld(nodes, holders);
    if (!nodes.every((node) => now.includes(node) || isHeld(this.list, [node], holders)))
      throw new LeaseholdError("STORE_FORGOTTEN", `a node does not have content ${content} yet`);
    mayPlace(change);
    this.#setPlacement(content, nodes);
    return { entry: null, existed: true };
  }

  #setPlacement(content: string, nodes: readonly string[]): void {
    this.#placements.set(content, nodes);
    this.bytes += this.#bytesOf([content]);
  }

  /** A content is moved to listed nodes once most of them have it on disk. */
  #mustBeHeld(nodes: readonly string[], holders: readonly Holder[]): void {
    const isListed = nodes.every((id) => this.list.nodes.some((node) => node.id === id));
    if (!isListed || !isHeld(this.list, nodes, holders))
      throw new LeaseholdError("STORE_FORGOTTEN", "no majority of a content's nodes has it on its disk");
  }

  #put(change: PutChange, { version, nowMs, mayName }: Circumstances): Made {
    const {
      path,
      content,
      makeFolders,
      ifMissing,
      ifVersion,
      ifContent,
      sealed,
      modifiedMs = nowMs,
    } = change;
    const there = find(this, path);
    if (content.id !== "" && contentOf(there) === content.id) return { entry: there!.entry, existed: true };
    if (there?.entry.kind === "folder") throw exists(path, "a folder");
    if (ifMissing && there !== undefined) throw exists(path, "a file");
    if (ifVersion !== null) checkVersion(path, there, ifVersion, sealed);
    if (ifContent !== null && contentOf(there) !== ifContent) throw changed(path);
    const folder = this.#folderFor(path, makeFolders);
    // A file that becomes live keeps its data, so nothing need be sealed.
    if (there !== undefined && ifContent === null) this.#mustBeSealed([there], sealed);
    const composed = change.compose && this.#composed(change, change.compose);
    const nodes = composed !== undefined || content.id === "" ? [] : mayName(change);
    if (nodes.length > 0) this.#mustBeHeld(nodes, change.holders ?? []);
    const attributes = changeAttributes(withoutContent(there?.entry.attributes), change.attributes);
    const made = composed?.content ?? content;
    const entry: FileEntry = { kind: "file", content: made, version: version(), modifiedMs, attributes };
    this.#mustFit(folder, ownUsage(entry), there, composed?.folder);
    if (nodes.length > 0) this.#setPlacement(content.id, nodes);
    this.#set({ ...this.#placeIn(folder, path, nowMs), ...(there && { id: there.id }), entry });
    this.#report({ what: there === undefined ? "created" : "replaced", path, ...seenOf(entry) });
    if (composed === undefined) return { entry, existed: there !== undefined };
    this.#drop(composed.folder);
    this.#report({ what: "removed", path: change.compose!.folder, isFolder: true });
    return { entry, existed: there !== undefined };
  }

  #composed({ path, content, sealed }: PutChange, { folder: from, files }: Composition) {
    const folder = find(this, from);
    if (folder?.entry.kind !== "folder") throw missing(from);
    if (folder.id === rootId || path.startsWith(`${from}/`) || from.startsWith(`${path}/`))
      throw new LeaseholdError("INVALID_PATH", `one of ${from} and ${path} is within the other`);
    this.#mustHaveNoSnapshots(folder);
    this.#mustBeSealed([folder], sealed);
    const parts: Part[] = [];
    let size = 0;
    for (const [name, version] of files) {
      const entry = this.child(folder.id, name)?.entry;
      const isRight = entry?.kind === "file" && entry.version === version && !entry.content.isLive;
      if (!isRight) throw changed(`${from}/${name}`);
      for (const { id, size, blockSize, checksum } of partsOf(entry.content))
        parts.push({ id, size, blockSize, checksum });
      size += entry.content.size;
      if (parts.length > partsMax)
        throw new LeaseholdError("UNSUPPORTED", `a file is made of at most ${partsMax} others`);
    }
    const { id } = content;
    const whole = parts.length === 0 ? emptyContent : { ...emptyContent, id, size, parts };
    return { folder, content: whole };
  }

  #makeFolder({ path, makeFolders, ...change }: FolderChange, { nowMs }: Circumstances): Made {
    const there = find(this, path);
    if (there !== undefined) throw exists(path, there.entry.kind === "folder" ? "a folder" : "a file");
    const folder = this.#folderFor(path, makeFolders);
    const attributes = changeAttributes(undefined, change.attributes);
    const entry: Entry = { kind: "folder", modifiedMs: nowMs, attributes };
    this.#mustFit(folder, ownUsage(entry));
    this.#set({ ...this.#placeIn(folder, path, nowMs), entry });
    this.#report({ what: "created", path, isFolder: true, isEmpty: true });
    return { entry, existed: false };
  }

  #move(change: MoveChange, { nowMs }: Circumstances): Made {
    const { from, to, sealed, makeFolders } = change;
    const source = this.#source(change);
    const top = withAttributes(source.entry, change);
    if (from === to) return this.#keep(from, source, top);
    const target = this.#target(change);
    const folder = this.#folderFor(to, makeFolders);
    this.#mustBeSealed([source, ...(target === undefined ? [] : [target])], sealed);
    this.#mustFit(folder, this.#usage.ofName(source), target, source);
    if (target !== undefined) this.#drop(target);
    this.#set({ ...this.#placeIn(folder, to, nowMs), id: source.id, entry: top });
    const existed = target !== undefined;
    this.#report({ what: "renamed", path: to, ...seenOf(top), from, existed });
    return { entry: top, existed };
  }

  #copy(change: MoveChange, { version, nowMs }: Circumstances): Made {
    const { from, to, sealed, makeFolders, isDeep } = change;
    const source = this.#source(change);
    const top = withAttributes(source.entry, change);
    if (from === to) return this.#keep(from, source, top);
    const target = this.#target(change);
    const folder = this.#folderFor(to, makeFolders);
    const copied = isDeep ? this.#below(source) : [source];
    this.#mustBeSealed([...copied, ...(target === undefined ? [] : [target])], sealed);
    this.#mustFit(folder, isDeep ? this.#usage.ofName(source) : ownUsage(source.entry), target);
    if (target !== undefined) this.#drop(target);
    const ids = new Map<number, number>();
    let made: Entry | undefined;
    for (const { id, parent, name, entry: own } of copied) {
      const old = id === source.id ? top : own;
      const entry: Entry =
        old.kind === "file" ? { ...old, version: version() } : withoutQuota({ ...old, modifiedMs: nowMs });
      const place =
        id === source.id
          ? this.#placeIn(folder, to, nowMs)
          : { id: this.#newId(), parent: ids.get(parent)!, name };
      ids.set(id, place.id);
      this.#set({ ...place, entry });
      made ??= entry;
    }
    this.#report({ what: target === undefined ? "created" : "replaced", path: to, ...seenOf(made!) });
    return { entry: made!, existed: target !== undefined };
  }

  #remove({ path, isDeep, ifVersion, sealed, foldersOnly = false, pruneIn }: RemoveChange): Made {
    const there = find(this, path);
    if (there === undefined) throw missing(path);
    if (there.id === rootId) throw new LeaseholdError("INVALID_PATH", "the root is always there");
    if (ifVersion !== null) checkVersion(path, there, ifVersion, sealed);
    if (there.entry.kind === "folder" && !isDeep && !isEmpty(this.children(there.id, "")))
      throw new LeaseholdError("FILE_EXISTS", `there are files in ${JSON.stringify(path)}`);
    if (foldersOnly && this.#mayHaveFile(there))
      throw new LeaseholdError("FILE_EXISTS", `there are files in ${JSON.stringify(path)}`);
    const isSnapshot = folderOfSnapshot(path) !== undefined;
    // Contents shared by a snapshot are sealed already.
    if (!isSnapshot) {
      this.#mustHaveNoSnapshots(there);
      this.#mustBeSealed([there], sealed);
    }
    this.#drop(there);
    this.#report({ what: "removed", path, isFolder: there.entry.kind === "folder" });
    const all = this.byId(there.parent)!;
    if (isSnapshot && isEmpty(this.children(all.id, ""))) this.#drop(all);
    if (pruneIn !== undefined) this.#prune(path, pruneIn);
    return { entry: null, existed: true };
  }

  /** Whether there is a file below; also true if there are too many names to check. */
  #mayHaveFile(top: Name): boolean {
    const all = [top];
    for (let at = 0; at < all.length; at += 1) {
      const { id, entry } = all[at]!;
      if (entry.kind === "file" || all.length > lookedMax) return true;
      for (const child of this.children(id, "")) {
        all.push(child);
        if (all.length > lookedMax) return true;
      }
    }
    return false;
  }

  #prune(path: string, within: string): void {
    let top = "";
    for (let end = path.lastIndexOf("/"); end > within.length; end = path.lastIndexOf("/", end - 1)) {
      const folder = find(this, path.slice(0, end));
      if (!path.startsWith(`${within}/`) || folder === undefined) break;
      const isMore =
        (folder.entry.kind === "folder" && folder.entry.quota !== undefined) ||
        folder.entry.attributes !== undefined;
      if (isMore || !isEmpty(this.children(folder.id, ""))) break;
      this.#drop(folder);
      top = path.slice(0, end);
    }
    if (top !== "") this.#report({ what: "removed", path: top, isFolder: true });
  }

  /** Moving or copying a name to itself. */
  #keep(path: string, name: Name, entry: Entry): Made {
    if (entry === name.entry) return { entry, existed: true };
    this.#set({ ...name, entry });
    this.#report({ what: "touched", path, ...seenOf(entry) });
    return { entry, existed: true };
  }

  #touch(change: TouchChange): Made {
    const { path, modifiedMs, ifVersion } = change;
    const there = find(this, path);
    if (there === undefined) throw missing(path);
    const before = withAttributes(there.entry, change);
    if (modifiedMs === undefined || there.entry.kind === "folder") {
      if (modifiedMs !== undefined) throw exists(path, "a folder");
      if (ifVersion !== null) checkVersion(path, there, ifVersion, change.sealed);
      return this.#keep(path, there, before);
    }
    // The file's primary knows the time of the last write, so the name's entry does not matter.
    if (there.entry.content.isLive)
      throw new LeaseholdError(
        "UNSUPPORTED",
        `${path} is written in place, and has the time of its last write`,
      );
    if (ifVersion !== null) checkVersion(path, there, ifVersion, []);
    return this.#keep(path, there, { ...before, modifiedMs });
  }

  #setQuota({ path, quota }: QuotaChange): Made {
    const there = find(this, path);
    if (there === undefined) throw missing(path);
    if (there.entry.kind === "file") throw exists(path, "a file");
    const entry: Entry = { ...withoutQuota(there.entry), ...(quota && { quota }) };
    this.#set({ ...there, entry });
    return { entry, existed: true };
  }

  #snapshot({ path, sealed }: SnapshotChange, { nowMs }: Circumstances): Made {
    const from = folderOfSnapshot(path);
    if (from === undefined) throw new LeaseholdError("INVALID_PATH", `${path} is no path of a snapshot`);
    const source = find(this, from);
    if (source === undefined) throw missing(from);
    if (source.entry.kind === "file") throw exists(from, "a file");
    const there = this.child(source.id, snapshotsName);
    if (there?.entry.kind === "file") throw exists(`${from}/${snapshotsName}`, "a file");
    if (find(this, path) !== undefined) throw exists(path, "a snapshot");
    if (there !== undefined && this.#usage.of(there.id).snapshots >= snapshotsMax)
      throw new LeaseholdError("UNSUPPORTED", `a folder has at most ${snapshotsMax} snapshots`);
    const copied = this.#below(source);
    const below = copied.slice(1);
    this.#mustBeShort(source, below, path);
    this.#mustBeSealed(
      below.filter(({ entry }) => entry.kind === "file"),
      sealed,
    );
    const made: FolderEntry = { ...withoutQuota(source.entry), modifiedMs: nowMs };
    const place = this.#placeIn(this.#folderFor(path, true), path, nowMs);
    this.#set({ ...place, entry: made });
    const ids = new Map([[source.id, place.id]]);
    for (const { id, parent, name, entry } of below) {
      ids.set(id, this.#newId());
      const kept = entry.kind === "folder" ? withoutQuota(entry) : entry;
      this.#set({ id: ids.get(id)!, parent: ids.get(parent)!, name, entry: kept });
    }
    return { entry: made, existed: false };
  }

  /** Paths in a snapshot are longer than those in the folder, and must still be valid. */
  #mustBeShort(source: Name, below: readonly Name[], path: string): void {
    const lengths = new Map([[source.id, lengthOf(path)]]);
    for (const { id, parent, name } of below) {
      const length = lengths.get(parent)! + 1 + lengthOf(name);
      lengths.set(id, length);
      if (length > pathBytesMax)
        throw new LeaseholdError("UNSUPPORTED", `the path of ${name} would be too long in ${path}`);
    }
  }

  /** A folder with snapshots can't be removed until they are gone. */
  #mustHaveNoSnapshots(name: Name | undefined): void {
    if (name !== undefined && this.#usage.ofName(name).snapshots > 0)
      throw exists(pathOf(this, name.id), "a snapshot in");
  }

  /**
   * Checks the quotas of all folders whose use would grow. A folder's change is what is added minus what is
   * removed, so a replaced file counts once, and a move within a folder does not count.
   * @param gone names that the change replaces, or takes from elsewhere
   * @throws LeaseholdError `QUOTA_EXCEEDED`
   */
  #mustFit({ folder, missing: made }: Place, coming: Usage, ...gone: readonly (Name | undefined)[]): void {
    const changes = new Map<number, Usage>();
    const count = (parent: number, usage: Usage): void => {
      for (const id of foldersFrom(this, parent)) {
        const sum = changes.get(id) ?? noUsage;
        changes.set(id, plus(sum, usage));
      }
    };
    count(folder.id, { ...coming, files: coming.files + made.length });
    for (const name of gone) if (name !== undefined) count(name.parent, minus(this.#usage.ofName(name)));
    for (const [id, change] of changes) {
      const { entry } = this.byId(id)!;
      const quota = entry.kind === "folder" ? entry.quota : undefined;
      if (quota !== undefined) this.#mustFitInto(id, quota, change);
    }
  }

  #mustFitInto(id: number, quota: Quota, change: Usage): void {
    const usage = this.#usage.of(id);
    for (const what of ["bytes", "files"] as const) {
      const most = quota[what];
      const wanted = usage[what] + change[what];
      if (most === null || change[what] <= 0 || wanted <= most) continue;
      const path = pathOf(this, id);
      throw new LeaseholdError(
        "QUOTA_EXCEEDED",
        `${path} would have ${wanted} ${what}, and its quota is ${most}`,
      );
    }
  }

  #source({ from, to, ifVersion, sealed }: MoveChange): Name {
    const source = find(this, from);
    if (source === undefined) throw missing(from);
    if (ifVersion !== null) checkVersion(from, source, ifVersion, sealed);
    if (source.id === rootId || to.startsWith(`${from}/`) || from.startsWith(`${to}/`))
      throw new LeaseholdError("INVALID_PATH", `one of ${from} and ${to} is within the other`);
    return source;
  }

  #target({ to, over }: MoveChange): Name | undefined {
    const target = find(this, to);
    if (target === undefined) return undefined;
    this.#mustHaveNoSnapshots(target);
    const isFolder = target.entry.kind === "folder";
    if (over === "nothing" || target.id === rootId || (isFolder && over === "file"))
      throw exists(to, isFolder ? "a folder" : "a file");
    return target;
  }

  /** The folder of a path. If missing folders are to be created, the nearest existing one. */
  #folderFor(path: string, makeFolders: boolean): Place {
    const parts = path.split("/").slice(0, -1);
    let folder = this.byId(rootId)!;
    for (const [index, part] of parts.entries()) {
      const next = this.child(folder.id, part);
      if (next === undefined) {
        const missingPath = parts.slice(0, index + 1).join("/");
        if (!makeFolders) throw new LeaseholdError("FILE_NOT_FOUND", `there is no folder ${missingPath}`);
        return { folder, missing: parts.slice(index) };
      }
      if (next.entry.kind === "file") throw exists(parts.slice(0, index + 1).join("/"), "a file");
      folder = next;
    }
    return { folder, missing: [] };
  }

  /** Creates the missing folders, and returns the place for the last part of the path. */
  #placeIn({ folder, missing }: Place, path: string, nowMs: number): Omit<Name, "entry"> {
    let parent = folder.id;
    const parts = path.split("/");
    if (missing.length > 0) {
      // The topmost folder's event covers those below: a deep path must not push many changes out of the log.
      const top = parts.slice(0, parts.length - missing.length).join("/");
      this.#report({ what: "created", path: top, isFolder: true, isEmpty: true });
    }
    for (const name of missing) {
      const id = this.#newId();
      this.#set({ id, parent, name, entry: { kind: "folder", modifiedMs: nowMs } });
      parent = id;
    }
    return { id: this.#newId(), parent, name: parts.at(-1)! };
  }

  /** The name and everything below it, each folder before its children. */
  #below(top: Name): Name[] {
    const all = [top];
    let bytes = 0;
    for (let at = 0; at < all.length; at += 1) {
      const { id, name, entry } = all[at]!;
      bytes += factBytesMax(name, entry);
      if (entry.kind === "file") bytes += placedBytesMax * partsOf(entry.content).length;
      if (all.length > copiedMax || bytes > copiedBytesMax)
        throw new LeaseholdError(
          "UNSUPPORTED",
          `a copy has at most ${copiedMax} files and folders, with less if their names are long`,
        );
      if (entry.kind === "folder")
        for (const child of this.children(id, "")) if (child.name !== snapshotsName) all.push(child);
    }
    return all;
  }

  #mustBeSealed(tops: readonly Name[], sealed: readonly string[]): void {
    const unsealed = new Set<string>();
    const look = ({ entry }: Name): void => {
      if (entry.kind === "file" && entry.content.isLive && !sealed.includes(entry.content.id))
        unsealed.add(entry.content.id);
    };
    for (const top of tops) look(top);
    const folders = new Set(tops.filter(({ entry }) => entry.kind === "folder").map(({ id }) => id));
    if (folders.size > 0)
      for (const id of this.liveIds()) if (this.#isWithin(id, folders)) look(this.byId(id)!);
    if (unsealed.size > 0) throw new Unsealed([...unsealed]);
  }

  #isWithin(id: number, tops: ReadonlySet<number>): boolean {
    for (let name = this.byId(id); name !== undefined; name = this.byId(name.parent))
      if (tops.has(name.id)) return true;
    return false;
  }

  #report(event: NameEvent): void {
    const reported = withoutHidden(event);
    if (reported === undefined) return;
    this.#events.push(reported);
    this.bytes += eventBytesMax(reported);
  }

  #newId(): number {
    return this.#nextId++;
  }

  #set(name: Name): void {
    const before = this.byId(name.id);
    if (before !== undefined) {
      this.#byPlace.set(placeOf(before), null);
      this.#usage.add(this, before.parent, minus(this.#usage.ofName(before)));
    }
    this.#byId.set(name.id, name);
    this.#usage.add(this, name.parent, this.#usage.ofName(name));
    this.#byPlace.set(placeOf(name), name);
    this.#facts.push([name.id, name]);
    this.bytes += factBytesMax(name.name, name.entry) + this.#bytesOf(contentsIn([[name.id, name]]));
  }

  /** Placements already in the record that names on the same nodes can share. */
  #bytesOf(contents: Iterable<string>): number {
    let bytes = 0;
    for (const content of contents) {
      const nodes = this.placementOf(content);
      if (nodes.length === 0) continue;
      bytes += placedBytesMax;
      const set = nodes.join();
      if (this.#sets.has(set)) continue;
      this.#sets.add(set);
      bytes += nodesBytes(nodes);
    }
    return bytes;
  }

  #drop(name: Name): void {
    this.#usage.add(this, name.parent, minus(this.#usage.ofName(name)));
    this.#byId.set(name.id, null);
    this.#byPlace.set(placeOf(name), null);
    this.#facts.push([name.id, null]);
    this.bytes += factBytesMax("");
  }
}

/** The folder of a path: the nearest existing one, and the missing ones between it and the path. */
interface Place {
  readonly folder: Name;
  readonly missing: readonly string[];
}

/** What followers learn about an entry. */
function seenOf(entry: Entry): Pick<NameEvent, "isFolder" | "version" | "size"> {
  if (entry.kind === "folder") return { isFolder: true };
  const { version, content } = entry;
  return content.isLive ? { isFolder: false } : { isFolder: false, version, size: content.size };
}

/** The length of the name as JSON in UTF-8, plus the rest of a fact. */
export function factBytesMax(name: string, entry?: Entry): number {
  return 3 * name.length + 200 + (entry === undefined ? 0 : extraBytes(entry));
}

function withoutQuota({ kind, modifiedMs, attributes }: FolderEntry): FolderEntry {
  return { kind, modifiedMs, attributes };
}

function withAttributes<E extends Entry>(entry: E, { attributes: changes }: TouchChange | MoveChange): E {
  if (changes === undefined) return entry;
  return { ...entry, attributes: changeAttributes(entry.attributes, changes) };
}

/** The length of the list of nodes and its field. */
const listBytesMax = 64 * 1024;

const encoder = new TextEncoder();
const lengthOf = (text: string): number => encoder.encode(text).length;

/** @throws LeaseholdError `UNSUPPORTED` for a change inside a snapshot */
function checkFixed(change: Change): void {
  if (change.kind === "nodes" || change.kind === "place") return;
  const paths = "to" in change ? [change.to] : [change.path];
  if (change.kind === "move") paths.push(change.from);
  if (change.kind === "put" && change.compose !== undefined) paths.push(change.compose.folder);
  const mayBe = change.kind === "snapshot" || (change.kind === "remove" && change.isDeep);
  for (const path of paths)
    if (isInSnapshots(path) && !(mayBe && folderOfSnapshot(path) !== undefined))
      throw new LeaseholdError("UNSUPPORTED", `${path}: a snapshot does not change`);
}

function isEmpty(names: Iterable<Name>): boolean {
  return names[Symbol.iterator]().next().done === true;
}

function contentOf(name: Name | undefined): string | undefined {
  return name?.entry.kind === "file" ? name.entry.content.id : undefined;
}

/** The version of a sealed live content was checked when it was sealed. */
function checkVersion(
  path: string,
  name: Name | undefined,
  version: string,
  sealed: readonly string[],
): void {
  const entry = name?.entry;
  if (entry === undefined) throw changed(path);
  if (entry.kind === "folder") throw changed(path);
  const { id, isLive }: Content = entry.content;
  if (isLive && sealed.includes(id)) return;
  if (isLive) throw new Unsealed([id]);
  if (entry.version !== version)
    throw new LeaseholdError("FILE_CHANGED", `${path} has version ${entry.version}, and not ${version}`);
}

const missing = (path: string): LeaseholdError =>
  new LeaseholdError("FILE_NOT_FOUND", `there is no file ${JSON.stringify(path)}`);

const changed = (path: string): LeaseholdError =>
  new LeaseholdError("FILE_CHANGED", `${path} is not what it was`);

const exists = (path: string, what: string): LeaseholdError =>
  new LeaseholdError("FILE_EXISTS", `there is ${what} ${JSON.stringify(path)} already`);
