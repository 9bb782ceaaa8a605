import { snapshotsName } from "./snapshots.js";
import type { Entry, Name, Quota, Usage } from "./types.js";

export const noUsage: Usage = { bytes: 0, files: 0, snapshots: 0 };

/** The names above a name. */
interface Names {
  byId(id: number): Name | undefined;
}

/**
 * The use of each folder: what is in it, however deep. So a change costs a step for each folder above it,
 * also if it moves a folder with everything in it.
 */
export class UsageTable {
  readonly #byFolder = new Map<number, Usage>();
  readonly #before: UsageTable | undefined;

  /** @param before what counts for folders that this table has nothing of */
  constructor(before?: UsageTable) {
    this.#before = before;
  }

  of(folder: number): Usage {
    return this.#byFolder.get(folder) ?? this.#before?.of(folder) ?? noUsage;
  }

  /** The use of a name with everything in it. */
  ofName({ id, name, entry }: Pick<Name, "id" | "name" | "entry">): Usage {
    if (entry.kind === "file") return ownUsage(entry);
    const usage = this.of(id);
    if (name === snapshotsName) return { ...noUsage, snapshots: usage.snapshots };
    return { ...usage, files: usage.files + 1 };
  }

  /** Counts in a folder and all above it what comes into it or leaves it. */
  add(names: Names, folder: number, usage: Usage): void {
    let change = usage;
    for (const id of foldersFrom(names, folder)) {
      // A snapshot counts as one above, and what is in it does not count.
      const isOfSnapshots = names.byId(id)?.name === snapshotsName;
      if (isOfSnapshots) {
        const snapshots = id === folder ? Math.sign(usage.files) : 0;
        this.#byFolder.set(id, plus(this.of(id), { bytes: change.bytes, files: change.files, snapshots }));
        change = { bytes: 0, files: 0, snapshots };
      } else this.#byFolder.set(id, plus(this.of(id), change));
    }
  }

  forget(folder: number): void {
    this.#byFolder.delete(folder);
  }

  /** Counts all names anew. */
  *count(names: ReadonlyMap<number, Name>): Generator<void> {
    this.#byFolder.clear();
    /** Names in each folder that are not counted yet. */
    const left = new Map<number, number>();
    let seen = 0;
    for (const { parent } of names.values()) {
      left.set(parent, (left.get(parent) ?? 0) + 1);
      if ((seen += 1) % namesPerStep === 0) yield;
    }
    for (const name of names.values()) {
      if (!left.has(name.id)) this.#countFrom(name, names, left);
      if ((seen += 1) % namesPerStep === 0) yield;
    }
  }

  /** Counts a name, and each folder above that has no other left; without recursion: a tree may be deep. */
  #countFrom(first: Name, names: ReadonlyMap<number, Name>, left: Map<number, number>): void {
    let name = first;
    for (;;) {
      const { parent } = name;
      const folder = names.get(parent);
      if (folder === undefined) return;
      const own = this.ofName(name);
      const isSnapshot = folder.name === snapshotsName;
      this.#byFolder.set(parent, plus(this.of(parent), isSnapshot ? { ...own, snapshots: 1 } : own));
      const others = left.get(parent)! - 1;
      left.set(parent, others);
      if (others > 0) return;
      name = folder;
    }
  }
}

/** Names that are looked at in one step. */
export const namesPerStep = 8_192;

/** The use of a name without what is in it. */
export function ownUsage(entry: Entry): Usage {
  return { bytes: entry.kind === "file" ? entry.content.size : 0, files: 1, snapshots: 0 };
}

/** A folder and all above it. */
export function* foldersFrom(names: Names, folder: number): Generator<number> {
  for (let id: number | undefined = folder; id !== undefined && id >= 0; id = names.byId(id)?.parent)
    yield id;
}

export function minus({ bytes, files, snapshots }: Usage): Usage {
  return { bytes: -bytes, files: -files, snapshots: -snapshots };
}

export function plus(one: Usage, other: Usage): Usage {
  return {
    bytes: one.bytes + other.bytes,
    files: one.files + other.files,
    snapshots: one.snapshots + other.snapshots,
  };
}

/** What the quotas of a folder and of those above it leave. */
export function leftIn(names: Names & { readonly usage: UsageTable }, folder: number): Quota {
  const least = { bytes: null as number | null, files: null as number | null };
  for (const id of foldersFrom(names, folder)) {
    const entry = names.byId(id)?.entry;
    const quota = entry?.kind === "folder" ? entry.quota : undefined;
    if (quota === undefined) continue;
    const usage = names.usage.of(id);
    for (const what of ["bytes", "files"] as const) {
      const most = quota[what];
      if (most !== null) least[what] = Math.min(least[what] ?? Infinity, Math.max(0, most - usage[what]));
    }
  }
  return least;
}
