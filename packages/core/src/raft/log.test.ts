import fc from "fast-check";
import { expect, test } from "vitest";
import { RaftLog, sizeOf } from "./log.js";
import { packedAtOnce } from "./packed-entries.js";
import type { Entry } from "./types.js";

const membership = { voters: [1n], learners: [] };
const snapshot = { index: 3, term: 1, membership };

const often = fc.integer({ min: 3, max: 200 });
const batch = fc.record({
  count: fc.integer({ min: 100, max: 300 }),
  /** Intervals of entries with a later term, with a membership change, and with data too large to pack. */
  every: fc.tuple(often, often, often),
  /** Number of entries not handed out this time. */
  left: fc.nat(50),
  /**
   * Number of entries by which the snapshot is behind the last one handed out, and of entries kept behind it.
   */
  compacted: fc.option(fc.tuple(fc.nat(300), fc.nat(1_500)), { freq: 4, nil: undefined }),
});
type Batch = typeof batch extends fc.Arbitrary<infer Drawn> ? Drawn : never;

function nextEntry(index: number, last: number, [laterTerm, change, large]: Batch["every"]): Entry {
  const term = index % laterTerm === 0 ? last + 1 : last;
  const data = new Uint8Array(index % large === 0 ? 5_000 : index % 20).fill(index);
  if (index % change > 0) return { kind: "normal", index, term, data };
  return { kind: "config", index, term, change: { kind: "add-learner", member: BigInt(index) }, data };
}

/** As one text: comparing many thousand entries field by field takes minutes. */
const told = (entries: readonly Entry[]) =>
  entries
    .map((entry) => {
      const { data, index, kind, term } = entry;
      const change = entry.kind === "config" ? entry.change.member : "none";
      return [index, term, kind, change, data.length, data[0], data.at(-1)].join();
    })
    .join("\n");

test("kept entries are those appended, packed or not", () => {
  let packed = 0;
  fc.assert(
    fc.property(fc.array(batch, { minLength: 4, maxLength: 16 }), fc.nat(3_000), (batches, bytesMax) => {
      const log = new RaftLog(snapshot, [], snapshot.index);
      const all: Entry[] = [];
      let [base, baseTerm, handedOut] = [snapshot.index, snapshot.term, snapshot.index];
      for (const [sequence, { count, every, left, compacted }] of batches.entries()) {
        for (let each = 0; each < count; each += 1) {
          const entry = nextEntry(log.lastIndex + 1, log.lastTerm, every);
          all.push(entry);
          log.append(entry);
        }
        expect(told(log.takeUnwritten())).toBe(told(all.slice(all.length - count)));
        log.writing(sequence + 1);
        log.wrote(sequence + 1);
        log.commitTo(Math.max(log.commit, log.lastIndex - left));
        const taken = log.takeCommitted(Infinity);
        expect(told(taken)).toBe(told(all.slice(handedOut - snapshot.index, log.commit - snapshot.index)));
        handedOut = log.commit;
        if (compacted !== undefined) {
          const [behind, keep] = compacted;
          const index = Math.max(base, handedOut - behind - keep);
          if (handedOut - behind > base) log.compact(handedOut - behind, keep, Infinity);
          if (index > base) [base, baseTerm] = [index, all[index - snapshot.index - 1]!.term];
        }
        expect([log.base, log.lastIndex]).toEqual([base, snapshot.index + all.length]);
        expect(log.termAt(base)).toBe(baseTerm);
        expect(log.termAt(base - 1)).toBeUndefined();
        const kept = all.slice(base - snapshot.index);
        expect(kept.filter(({ index, term }) => log.termAt(index) !== term)).toEqual([]);
        expect(kept.filter((entry) => log.sizeAt(entry.index) !== sizeOf(entry))).toEqual([]);
        const first = base + 1 + Math.floor(kept.length / 3);
        const sent = log.slice(first, bytesMax);
        expect(told(sent)).toBe(told(all.slice(first - snapshot.index - 1).slice(0, sent.length)));
        expect(sent.length > 0).toBe(first <= log.lastIndex);
        expect(told(log.slice(base + 1, Infinity))).toBe(told(kept));
        if (handedOut - base > 2 * packedAtOnce) packed += 1;
      }
    }),
    { numRuns: 12 },
  );
  expect(packed).toBeGreaterThan(8);
});
