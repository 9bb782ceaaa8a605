import { snapshotsName } from "./snapshots.js";
import type { Entry, Name, Quota, Usage } from "./types.js";

export const noUsage: Usage = { bytes: 0, files: 0, snapshots: 0 };

/** The names above a name. */
interface Names {
  byId(id: number): Name | undefined;
}

/**
 * The use of each folder: what it contains at any depth. A change therefore costs a step for each folder
 * above it, even if it moves a folder with everything in it.
 */
export class UsageTable {
  readonly #byFolder = new Map<number, Usage>();
  readonly #before: UsageTable | undefined;

  /** @param before the usage of folders that this table has no entry for */
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

  /** Counts, in a folder and all folders above it, what is added or removed. */
  add(names: Names, folder: number, usage: Usage): void {
    let change = usage;
    for (const id of foldersFrom(names, folder)) {
      // For the folders above, a snapshot counts as one, and its contents do not count.
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

  /** Recounts all names. */
  *count(names: ReadonlyMap<number, Name>): Generator<void> {
    this.#byFolder.clear();
    /** The number of names in each folder that are not counted yet. */
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

  /**
   * Counts a name, and each parent folder whose children are then all counted. Not recursive: a tree may be
   * deep.
   */
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

/** Names processed in one step. */
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

/** What the quotas of a folder and those above it leave. */
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
