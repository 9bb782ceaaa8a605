import type { KeyValue } from "leasehold/etcd/gen/etcd/kv_pb.js";
import type { RangeResponse, ResponseHeader } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { toKeyValue } from "./key-value.js";
import type { Key } from "./keys.js";
import type { KeysView, LossesSince, Version } from "./revisions.js";
import { unitsPerStep } from "./steps.js";

/**
 * Memory of a version in an answer in addition to key and value, measured: its record, and two arrays of
 * bytes.
 */
const answerOverheadBytes = 400;

/** Bytes left for one answer: a transaction could read all keys a hundred times. */
export class AnswerBudget {
  #bytes: number;
  /** Whether a client waits for the answer. */
  readonly isAwaited: boolean;

  /** @param bytes approximate memory; negative if no client waits for the answer */
  constructor(bytes: number) {
    this.#bytes = bytes;
    this.isAwaited = bytes >= 0;
  }

  get isExceeded(): boolean {
    return this.#bytes < 0;
  }

  /** Returns false if neither this version nor anything after it fits. */
  take(version: Version): boolean {
    if (!this.isExceeded) this.#bytes -= answerOverheadBytes + version.key.length + version.value.length;
    return !this.isExceeded;
  }
}

/** Answers with more items are kept as references, and encoded piece by piece as the client reads them. */
const shortItems = unitsPerStep;
const shortBytes = 64 * 1024;

export function isShort(items: number, bytes: number): boolean {
  return items <= shortItems && bytes <= shortBytes;
}

/** Bounds of one piece: some tens of microseconds to read again, and about one HTTP/2 frame. */
const pieceVisits = 512;
const pieceBytes = 14 * 1024;

/** The content of an answer, in pieces that are a bounded amount of work each. */
export interface VersionPieces {
  /** Approximate memory, without the versions themselves. */
  readonly heldBytes: number;
  /** Memory of the retained tree, as far as the state's tree has changed since; 0 if none is retained. */
  readonly treeBytes: number;
  pieces(): Iterable<readonly Version[]>;
}

/** Versions that are sorted differently, or were read within a command. */
export class ListedVersions implements VersionPieces {
  readonly treeBytes = 0;
  readonly #versions: readonly Version[];

  constructor(versions: readonly Version[]) {
    this.#versions = versions;
  }

  get heldBytes(): number {
    return 8 * this.#versions.length;
  }

  *pieces(): Generator<readonly Version[]> {
    let piece: Version[] = [];
    let bytes = 0;
    for (const version of this.#versions) {
      piece.push(version);
      bytes += version.key.length + version.value.length;
      if (piece.length < unitsPerStep && bytes < pieceBytes) continue;
      yield piece;
      piece = [];
      bytes = 0;
    }
    if (piece.length > 0) yield piece;
  }
}

/** The result of a read from an immutable view. Only the beginning of each piece is kept. */
export class FoundVersions implements VersionPieces {
  readonly #view: KeysView;
  readonly #revision: number;
  readonly #isWanted: (version: Version) => boolean;
  readonly #first: readonly Version[];
  /** The key of the first version of each piece, and the number of keys visited from it on. */
  readonly #from: Key[] = [];
  readonly #visits: number[] = [];
  #pieceBytes = 0;
  #size = 0;

  /** @param first the first versions; later ones are passed to `add` */
  constructor(
    view: KeysView,
    revision: number,
    isWanted: (version: Version) => boolean,
    first: readonly Version[],
  ) {
    this.#view = view;
    this.#revision = revision;
    this.#isWanted = isWanted;
    this.#first = first;
  }

  /** Adds the next version of the result. */
  add({ key, value }: Version): void {
    const last = this.#visits.length - 1;
    if (last < 0 || this.#visits[last]! >= pieceVisits || this.#pieceBytes >= pieceBytes) {
      this.#from.push(key);
      this.#visits.push(1);
      this.#pieceBytes = 0;
    } else this.#visits[last]! += 1;
    this.#pieceBytes += key.length + value.length;
    this.#size += 1;
  }

  /** A visited key is not part of the result. */
  pass(): void {
    const last = this.#visits.length - 1;
    if (last >= 0 && this.#visits[last]! < pieceVisits) this.#visits[last]! += 1;
  }

  get heldBytes(): number {
    return 8 * this.#first.length + 24 * this.#from.length;
  }

  get treeBytes(): number {
    return this.#view.treeBytes;
  }

  *pieces(): Generator<readonly Version[]> {
    yield this.#first;
    let left = this.#size;
    for (const [index, from] of this.#from.entries()) {
      const piece = this.#piece(from, this.#visits[index]!, left);
      left -= piece.length;
      yield piece;
    }
  }

  #piece(from: Key, visits: number, most: number): Version[] {
    const piece: Version[] = [];
    let looked = 0;
    for (const version of this.#view.range({ from, to: undefined }, this.#revision)) {
      if (version !== undefined && this.#isWanted(version)) piece.push(version);
      looked += 1;
      if (looked === visits || piece.length === most) break;
    }
    return piece;
  }
}

/**
 * The answer to a range with many keys or bytes. It refers to versions that the state has in memory anyway
 * and copies none, so a slow client costs little.
 */
export class LongRange implements RangeResponse {
  readonly $typeName = "etcdserverpb.RangeResponse";
  header?: ResponseHeader;
  readonly more: boolean;
  readonly count: bigint;
  readonly keysOnly: boolean;
  /** Encoded length of `kvs`. */
  readonly encodedBytes: number;
  readonly #found: VersionPieces;
  /** Losses of the state since the read. */
  readonly lossesSince: LossesSince;

  constructor(
    fields: Pick<RangeResponse, "count" | "more">,
    found: VersionPieces,
    encodedBytes: number,
    keysOnly: boolean,
    lossesSince: LossesSince,
  ) {
    this.more = fields.more;
    this.count = fields.count;
    this.#found = found;
    this.encodedBytes = encodedBytes;
    this.keysOnly = keysOnly;
    this.lossesSince = lossesSince;
  }

  /** Approximate memory of this answer, without versions that are also in the state. */
  get heldBytes(): number {
    return this.#found.heldBytes;
  }

  /** Bytes of versions that have left the state since: an upper bound of those retained by this answer. */
  get retainedBytes(): number {
    return this.lossesSince.removedBytes;
  }

  get treeBytes(): number {
    return this.#found.treeBytes;
  }

  pieces(): Iterable<readonly Version[]> {
    return this.#found.pieces();
  }

  *keyValues(): Generator<KeyValue> {
    for (const piece of this.pieces()) for (const version of piece) yield toKeyValue(version, this.keysOnly);
  }

  /** All messages, made anew each time; for callers that do not read pieces. */
  get kvs(): KeyValue[] {
    return [...this.keyValues()];
  }
}
