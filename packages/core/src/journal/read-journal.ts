import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { LeaseholdError } from "leasehold/common";
import type { Entry, HardState } from "../raft/types.js";
import { damaged } from "./files.js";
import type { JournalRecord, LogPosition } from "./records.js";
import { noSegment, readSegment, segmentName, segmentSequence } from "./segment.js";

/** The content of a server's journal. */
export interface JournalContent {
  /** `undefined`: nothing was ever written. */
  readonly hardState: HardState | undefined;
  /** Last entry covered by a snapshot; index 0 without one. */
  readonly base: LogPosition;
  /** From after `base` on, without gaps. */
  readonly entries: readonly Entry[];
  /** Bytes at the end of a write that a crash cut off; never acknowledged. */
  readonly tornBytes: number;
}

/** A completed segment, and the greatest index of an entry in it. */
export interface OldSegment {
  readonly sequence: number;
  readonly lastIndex: number;
}

export interface FoundJournal {
  readonly content: JournalContent;
  readonly old: OldSegment[];
  /** The segment to continue, its valid length (0: to be created), and the checksum to continue from. */
  readonly sequence: number;
  readonly bytes: number;
  readonly chain: number;
  readonly lastIndex: number;
  /** Number of its writes, and the bytes of the last one. */
  readonly written: number;
  readonly last: Buffer;
}

/** @throws LeaseholdError `LOG_CORRUPT`, `VERSION_MISMATCH` */
export async function readJournal(folder: string): Promise<FoundJournal> {
  const sequences = (await readdir(folder))
    .map(segmentSequence)
    .filter((sequence) => sequence !== undefined)
    .sort((a, b) => a - b);
  const replay = new Replay();
  const old: OldSegment[] = [];
  let end = noSegment;
  let sequence = sequences[0] ?? 1;
  for (const [position, found] of sequences.entries()) {
    if (found !== sequences[0]! + position)
      throw damaged(`${segmentName(found - 1)} is missing in ${folder}`);
    const isLast = position === sequences.length - 1;
    replay.lastIndex = 0;
    end = await readSegment(
      join(folder, segmentName(found)),
      position === 0 ? undefined : end.chain,
      isLast,
      (record) => replay.take(record),
    );
    sequence = found;
    if (isLast && !end.isFormer) continue;
    old.push({ sequence, lastIndex: replay.lastIndex });
    sequence += 1;
    replay.lastIndex = 0;
  }
  const { batches: written, chain, goodBytes: bytes, last, tornBytes } = end;
  const content = { ...replay.content(), tornBytes };
  return { content, old, sequence, bytes, chain, written, last, lastIndex: replay.lastIndex };
}

/** Rebuilds a log from journal records. */
class Replay {
  lastIndex = 0;
  #hardState: HardState | undefined;
  #base: LogPosition = { index: 0, term: 0 };
  #entries: Entry[] = [];

  take(record: JournalRecord): void {
    switch (record.kind) {
      case "hard-state":
        this.#hardState = record.hardState;
        return;
      case "compacted":
        if (record.index > this.#base.index) this.#base = { index: record.index, term: record.term };
        return;
      case "installed":
        this.#base = { index: record.index, term: record.term };
        this.#entries = [];
        return;
      case "entry":
        this.#append(record.entry);
    }
  }

  content(): Omit<JournalContent, "tornBytes"> {
    const entries = this.#entries.filter(({ index }) => index > this.#base.index);
    const first = entries[0];
    if (first !== undefined && first.index !== this.#base.index + 1)
      throw gap(this.#base.index + 1, first.index);
    return { hardState: this.#hardState, base: this.#base, entries };
  }

  /** An entry voids earlier ones from its index on (Raft 5.3). */
  #append(entry: Entry): void {
    const first = this.#entries[0]?.index ?? entry.index;
    const keep = entry.index - first;
    if (keep < 0) this.#entries = [];
    else if (keep > this.#entries.length) throw gap(first + this.#entries.length, entry.index);
    else this.#entries.length = keep;
    this.#entries.push(entry);
    this.lastIndex = Math.max(this.lastIndex, entry.index);
  }
}

function gap(expected: number, found: number): LeaseholdError {
  return damaged(`the journal continues with entry ${found}, but ${expected} is missing`);
}
