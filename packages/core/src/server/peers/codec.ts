import { copyOutcomes } from "../../copies/copies.js";
import { entryPayload, parseEntry } from "../../journal/records.js";
import type { Entry, Membership, SnapshotMeta } from "../../raft/types.js";
import { refusalFailures } from "../../replica/proposals/leader-messages.js";
import type { PeerMessage } from "../../replica/types.js";
import { bulkSince } from "./hello.js";

/**
 * Encodes messages between servers: the kind, sender and receiver, followed by the kind's fields in order.
 * Counts are 64-bit floats, as in the journal, and as exact as the program's own numbers. Everything is
 * little-endian.
 */
type Field = "count" | "id" | "lease" | "flag" | "bytes" | "entries" | "meta" | readonly string[];

/** The compiler rejects a message whose fields don't match its layout. */
type Layouts = {
  readonly [Kind in PeerMessage["kind"]]: Readonly<
    Record<Exclude<keyof Extract<PeerMessage, { kind: Kind }>, "kind" | "from" | "to">, Field>
  >;
};

const proposal = {
  number: "count",
  term: "count",
  life: "count",
  settled: "count",
  again: "flag",
  command: "bytes",
} as const;

const layouts = {
  "pre-vote": { term: "count", lastIndex: "count", lastTerm: "count" },
  "pre-vote-answer": { term: "count", granted: "flag" },
  vote: { term: "count", lastIndex: "count", lastTerm: "count", transfer: "count" },
  "vote-answer": { term: "count", granted: "flag" },
  append: {
    term: "count",
    previousIndex: "count",
    previousTerm: "count",
    commit: "count",
    entries: "entries",
  },
  "append-answer": {
    term: "count",
    rejected: "flag",
    index: "count",
    hintIndex: "count",
    hintTerm: "count",
  },
  heartbeat: { term: "count", commit: "count", round: "count", transfersOver: "count" },
  "heartbeat-answer": { term: "count", round: "count", holdMs: "count" },
  snapshot: { term: "count", meta: "meta" },
  "snapshot-answer": { term: "count", rejected: "flag", index: "count" },
  "timeout-now": { term: "count", transfer: "count" },
  propose: proposal,
  ask: { number: "count", about: ["read", "refresh", "remaining"], lease: "lease", leftMs: "count" },
  "leader-answer": { number: "count", index: "count", revision: "count", ttlSeconds: "count" },
  "leader-refusal": { number: "count", term: "count", failure: refusalFailures },
  "propose-change": proposal,
  "copy-question": { number: "count", index: "count", revision: "count" },
  "copy-answer": { number: "count", outcome: copyOutcomes, compacted: "count", hash: "count" },
  commit: { term: "count", index: "count", indexTerm: "count" },
} as const satisfies Layouts;

const kinds = Object.keys(layouts) as PeerMessage["kind"][];
type Layout = readonly (readonly [string, Field])[];
const layoutOf: readonly Layout[] = kinds.map((kind) => Object.entries(layouts[kind]));
const numberOf = new Map<string, number>(kinds.map((kind, index) => [kind, index]));

/** Fields missing in the proposals of servers that send each only once, in the order of the layouts. */
const onceOnly: Readonly<Record<string, number | boolean>> = { life: 0, settled: 0, again: false };

const onceLayoutOf = layoutOf.map((layout) => layout.filter(([name]) => !(name in onceOnly)));

function layoutsOf(version: number): readonly Layout[] {
  return version < bulkSince ? onceLayoutOf : layoutOf;
}

/** Length of the fixed-length fields: the longest layout has five of 8 bytes. */
const headBytes = 1 + 8 + 8 + 5 * 8;

/**
 * Encodes a message as parts to be sent in order. Large parts are not copied.
 * @param version of the protocol with the receiver
 */
export function encodeMessage(message: PeerMessage, version: number): Uint8Array[] {
  const kind = numberOf.get(message.kind)!;
  const head = Buffer.allocUnsafe(headBytes);
  const parts: Uint8Array[] = [];
  let offset = head.writeUInt8(kind, 0);
  offset = head.writeBigUInt64LE(message.from, offset);
  offset = head.writeBigUInt64LE(message.to, offset);
  const values = message as unknown as Record<string, unknown>;
  for (const [name, field] of layoutsOf(version)[kind]!) {
    const value = values[name];
    if (field === "count") offset = head.writeDoubleLE(value as number, offset);
    else if (field === "id") offset = head.writeBigUInt64LE(value as bigint, offset);
    else if (field === "lease") offset = head.writeBigInt64LE(value as bigint, offset);
    else if (field === "flag") offset = head.writeUInt8(value === true ? 1 : 0, offset);
    else if (field === "bytes") parts.push(value as Uint8Array);
    else if (field === "entries") addEntries(parts, value as readonly Entry[]);
    else if (field === "meta") parts.push(metaBytes(value as SnapshotMeta));
    else offset = head.writeUInt8(field.indexOf(value as string), offset);
  }
  return [head.subarray(0, offset), ...parts];
}

/** @throws RangeError for bytes that no server of this protocol version sends */
export function decodeMessage(bytes: Buffer, version: number): PeerMessage {
  const kind = bytes.readUInt8(0);
  const layout = layoutsOf(version)[kind];
  if (layout === undefined) throw new RangeError(`a message of the unknown kind ${kind}`);
  const message: Record<string, unknown> = {
    kind: kinds[kind],
    from: bytes.readBigUInt64LE(1),
    to: bytes.readBigUInt64LE(9),
  };
  const reader = new Reader(bytes, 17);
  for (const [name, field] of layout) message[name] = reader.read(field);
  if (layout.length < layoutOf[kind]!.length) Object.assign(message, onceOnly);
  reader.end();
  return message as unknown as PeerMessage;
}

function addEntries(parts: Uint8Array[], entries: readonly Entry[]): void {
  const count = Buffer.allocUnsafe(4);
  count.writeUInt32LE(entries.length, 0);
  parts.push(count);
  for (const entry of entries) {
    const payload = entryPayload(entry);
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32LE(
      payload.reduce((sum, part) => sum + part.length, 0),
      0,
    );
    parts.push(length);
    for (const part of payload) parts.push(part);
  }
}

function metaBytes({ index, term, membership: { voters, learners } }: SnapshotMeta): Buffer {
  const bytes = Buffer.allocUnsafe(16 + 2 + 8 * (voters.length + learners.length));
  let offset = bytes.writeDoubleLE(index, 0);
  offset = bytes.writeDoubleLE(term, offset);
  for (const members of [voters, learners]) {
    offset = bytes.writeUInt8(members.length, offset);
    for (const member of members) offset = bytes.writeBigUInt64LE(member, offset);
  }
  return bytes;
}

class Reader {
  readonly #bytes: Buffer;
  #offset: number;

  constructor(bytes: Buffer, offset: number) {
    this.#bytes = bytes;
    this.#offset = offset;
  }

  read(field: Field): unknown {
    if (field === "count") return this.#bytes.readDoubleLE(this.#take(8));
    if (field === "id") return this.#bytes.readBigUInt64LE(this.#take(8));
    if (field === "lease") return this.#bytes.readBigInt64LE(this.#take(8));
    if (field === "flag") return this.#bytes.readUInt8(this.#take(1)) === 1;
    if (field === "bytes") return new Uint8Array(this.#slice(this.#bytes.length - this.#offset));
    if (field === "entries") return this.#entries();
    if (field === "meta") return this.#meta();
    const value = field[this.#bytes.readUInt8(this.#take(1))];
    if (value === undefined) throw new RangeError("an unknown value");
    return value;
  }

  end(): void {
    if (this.#offset !== this.#bytes.length) throw new RangeError("there are bytes after the message");
  }

  #entries(): Entry[] {
    const entries: Entry[] = [];
    for (let left = this.#bytes.readUInt32LE(this.#take(4)); left > 0; left -= 1)
      entries.push(parseEntry(this.#slice(this.#bytes.readUInt32LE(this.#take(4)))));
    return entries;
  }

  #meta(): SnapshotMeta {
    const index = this.#bytes.readDoubleLE(this.#take(8));
    const term = this.#bytes.readDoubleLE(this.#take(8));
    const membership: Membership = { voters: this.#members(), learners: this.#members() };
    return { index, term, membership };
  }

  #members(): bigint[] {
    const count = this.#bytes.readUInt8(this.#take(1));
    return Array.from({ length: count }, () => this.#bytes.readBigUInt64LE(this.#take(8)));
  }

  #slice(length: number): Buffer {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  #take(length: number): number {
    const start = this.#offset;
    if (start + length > this.#bytes.length) throw new RangeError("the message is cut off");
    this.#offset += length;
    return start;
  }
}
