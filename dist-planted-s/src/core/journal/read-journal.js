import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { LeaseholdError } from "../../lease/errors.js";
import { readSegment, segmentName, segmentSequence } from "./segment.js";
/** @throws LeaseholdError `LOG_CORRUPT`, `VERSION_MISMATCH` */
export async function readJournal(folder) {
    const sequences = (await readdir(folder))
        .map(segmentSequence)
        .filter((sequence) => sequence !== undefined)
        .sort((a, b) => a - b);
    const replay = new Replay();
    const old = [];
    let chain;
    let bytes = 0;
    let tornBytes = 0;
    for (const [position, sequence] of sequences.entries()) {
        if (sequence !== sequences[0] + position)
            throw new LeaseholdError("LOG_CORRUPT", `${segmentName(sequence - 1)} is missing in ${folder}`);
        const isLast = position === sequences.length - 1;
        replay.lastIndex = 0;
        const content = await readSegment(join(folder, segmentName(sequence)), chain, isLast, (record) => replay.take(record));
        chain = content.chain;
        bytes = content.goodBytes;
        tornBytes = content.tornBytes;
        if (!isLast)
            old.push({ sequence, lastIndex: replay.lastIndex });
    }
    const content = { ...replay.content(), tornBytes };
    const sequence = sequences.at(-1) ?? 1;
    return { content, old, sequence, bytes, chain: chain ?? 0, lastIndex: replay.lastIndex };
}
/** Puts a log together from the records of its changes. */
class Replay {
    lastIndex = 0;
    #hardState;
    #base = { index: 0, term: 0 };
    #entries = [];
    take(record) {
        switch (record.kind) {
            case "hard-state":
                this.#hardState = record.hardState;
                return;
            case "compacted":
                if (record.index > this.#base.index)
                    this.#base = { index: record.index, term: record.term };
                return;
            case "installed":
                this.#base = { index: record.index, term: record.term };
                this.#entries = [];
                return;
            case "entry":
                this.#append(record.entry);
        }
    }
    content() {
        const entries = this.#entries.filter(({ index }) => index > this.#base.index);
        const first = entries[0];
        if (first !== undefined && first.index !== this.#base.index + 1)
            throw gap(this.#base.index + 1, first.index);
        return { hardState: this.#hardState, base: this.#base, entries };
    }
    /** Entries from that index on that were written before are void (Raft 5.3). */
    #append(entry) {
        const first = this.#entries[0]?.index ?? entry.index;
        const keep = entry.index - first;
        if (keep < 0)
            this.#entries = [];
        else if (keep > this.#entries.length)
            throw gap(first + this.#entries.length, entry.index);
        else
            this.#entries.length = keep;
        this.#entries.push(entry);
        this.lastIndex = Math.max(this.lastIndex, entry.index);
    }
}
function gap(expected, found) {
    return new LeaseholdError("LOG_CORRUPT", `the journal goes on with entry ${found}, and ${expected} is missing`);
}
