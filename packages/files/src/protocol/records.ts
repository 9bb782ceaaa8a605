import { LeaseholdError } from "leasehold/common";

/**
 * The stamp of each block and of each file's metadata. Every change of a file has its own version and carries
 * the file's size after the change. So the newest record alone determines the length of the file, and a block
 * and its size are never stored one without the other.
 */
export interface Stamp {
  /** The token of the primary's lease. */
  readonly epoch: bigint;
  /** Counts the changes of one tenure. */
  readonly sequence: number;
  /** The file's size after this change. */
  readonly size: number;
  /** The primary's system time, for humans. */
  readonly modifiedMs: number;
}

/** The record about the whole file: whether it exists, and which blocks count. */
export interface Header extends Stamp {
  readonly exists: boolean;
  /** No more changes to the content are accepted. */
  readonly isSealed?: boolean;
  readonly blockSize: number;
  /** Blocks with an earlier version are void: this change emptied or removed the file. */
  readonly floor: Pick<Stamp, "epoch" | "sequence">;
}

/** A replica's metadata of a file. */
export interface FileMeta {
  /** The greatest epoch promised: the replica refuses all earlier ones. */
  readonly promised: bigint;
  /**
   * The epoch of the last reset that completed this replica. `undefined`: its disk was lost, so the replica
   * does not know the state of the file.
   */
  readonly base: bigint | undefined;
  readonly header: Header | undefined;
}

export const nothingKnown: FileMeta = { promised: 0n, base: 0n, header: undefined };

/** Negative if the first is older. Equal versions are the same change, so their content is equal. */
export function compareVersions(
  one: Pick<Stamp, "epoch" | "sequence">,
  other: Pick<Stamp, "epoch" | "sequence">,
): number {
  if (one.epoch !== other.epoch) return one.epoch < other.epoch ? -1 : 1;
  return one.sequence - other.sequence;
}

/** A stamp as the tag of a block: at most 80 characters. */
export function tagOf({ epoch, sequence, size, modifiedMs }: Stamp): string {
  return [epoch, sequence, size, modifiedMs].map((part) => part.toString(36)).join(".");
}

/** @throws LeaseholdError `STORE_CORRUPT` if it isn't a tag. */
export function stampOf(tag: string): Stamp {
  const parts = /^([0-9a-z]+)\.([0-9a-z]+)\.([0-9a-z]+)\.([0-9a-z]+)$/.exec(tag);
  if (parts === null)
    throw new LeaseholdError("STORE_CORRUPT", `${JSON.stringify(tag)} is not a tag of a block`);
  const [, epoch = "", sequence = "", size = "", modifiedMs = ""] = parts;
  return {
    epoch: [...epoch].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n),
    sequence: Number.parseInt(sequence, 36),
    size: Number.parseInt(size, 36),
    modifiedMs: Number.parseInt(modifiedMs, 36),
  };
}

/** The version of a file, as shown to users. */
export const versionText = ({ epoch, sequence }: Stamp): string =>
  `${epoch.toString(36)}.${sequence.toString(36)}`;

export function headerText(header: Header): string {
  const { exists, isSealed, blockSize, floor } = header;
  const state = !exists ? 0 : isSealed === true ? 2 : 1;
  return [tagOf(header), state, blockSize, tagOf({ ...floor, size: 0, modifiedMs: 0 })].join(" ");
}

export function headerOf(text: string): Header {
  const [tag = "", state, blockSize, floor = ""] = text.split(" ");
  return {
    ...stampOf(tag),
    exists: state !== "0",
    ...(state === "2" && { isSealed: true }),
    blockSize: Number(blockSize),
    floor: stampOf(floor),
  };
}

export function metaText({ promised, base, header }: FileMeta): string {
  return JSON.stringify({
    promised: String(promised),
    base: base === undefined ? null : String(base),
    header: header === undefined ? null : headerText(header),
  });
}

/** @throws LeaseholdError `STORE_CORRUPT` if it isn't the metadata of a file. */
export function metaOf(text: string): FileMeta {
  try {
    const { promised, base, header } = JSON.parse(text) as Record<
      "promised" | "base" | "header",
      string | null
    >;
    return {
      promised: BigInt(promised!),
      base: base === null ? undefined : BigInt(base),
      header: header === null ? undefined : headerOf(header),
    };
  } catch (cause) {
    throw new LeaseholdError("STORE_CORRUPT", "the metadata of a file cannot be read", { cause });
  }
}

/** The file's newest record: the file has its size and version. */
export function newestStamp(header: Header, tags: Iterable<string | undefined>): Stamp {
  let newest: Stamp = header;
  for (const tag of tags) {
    if (tag === undefined) continue;
    const stamp = stampOf(tag);
    if (compareVersions(stamp, newest) > 0) newest = stamp;
  }
  return newest;
}
