import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type HistoryEntry, type Sample, stampOf } from "./journals/format.js";
import { HistoryJudge } from "./judge.js";
import {
  check,
  decision,
  done,
  journalOf,
  looks,
  op,
  pidOf,
  release,
  rulesOf,
} from "../../../../../test/support/histories.js";

/** The judge never accuses random histories of a correct lease, and always finds planted faults. */

const holders = ["a", "b", "c"] as const;

/** One tenure: the holder, its length, its looks, and its end. */
const turn = fc.record({
  who: fc.constantFrom(...holders),
  /** The time without a holder before it, in microseconds. */
  pauseUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 100_000 })),
  lastsUs: fc.integer({ min: 1, max: 2_000_000 }),
  /** The time of each look, and the distance of its stamps from it, as fractions of the tenure. */
  looks: fc.array(
    fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 8, noNaN: true })),
    {
      minLength: 1,
      maxLength: 6,
    },
  ),
  released: fc.boolean(),
  /** The time, as a fraction of the tenure, at which its process is continued after a shorter stop. */
  continued: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
  /**
   * The time at which each operation reaches the resource, as a fraction of the tenure; above 1 the tenure
   * has ended.
   */
  operations: fc.array(
    fc.integer({ min: 0, max: 40 }).map((tenths) => tenths / 10),
    { maxLength: 3 },
  ),
});
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

interface Recorded {
  readonly entries: HistoryEntry[];
  /** The time at which the resource decides, in ms. */
  readonly asked: { atMs: number; who: string; token: number }[];
  readonly endMs: number;
}

/** The holder's records. Each look happens during the tenure, and its stamps enclose that instant. */
function record(
  { who, lastsUs, looks: all, released, continued, operations }: Turn,
  token: number,
  startMs: number,
): Recorded {
  const lastsMs = lastsUs / 1_000;
  const endMs = startMs + lastsMs;
  let before = 0;
  const entries = all
    .map(([part]) => part)
    .sort((one, other) => one - other)
    .flatMap((part, index) => {
      // One thread looks: a look begins after the previous one has ended.
      const happensMs = startMs + part * lastsMs;
      const slack = (all[index]![1] * lastsMs) / 2;
      const from = Math.max(happensMs - slack, before);
      const to = Math.max(happensMs, from) + slack;
      if (from > happensMs) return [];
      before = to;
      return looks(who, token, { at: from, took: to - from, left: Math.max(1, endMs - from) });
    });
  if (continued !== undefined) entries.push(done("continued", who, startMs + continued * lastsMs));
  if (released) entries.push(release(who, token, endMs));
  else entries.push(...looks(who, token, { at: Math.max(endMs, before), ok: false }));
  const asked = operations.map((part) => ({ atMs: startMs + part * lastsMs, who, token }));
  return { entries, asked, endMs };
}

function recordAll(turns: readonly Turn[]): HistoryEntry[] {
  let atMs = 1;
  const recorded = turns.map((one, index) => {
    const result = record(one, (index + 1) * 10, atMs + one.pauseUs / 1_000);
    atMs = result.endMs;
    return result;
  });
  let greatest = 0;
  const asked = recorded.flatMap((one) => one.asked).sort((one, other) => one.atMs - other.atMs);
  const guarded = asked.flatMap(({ atMs: m, who, token }, order) => {
    const event = token >= greatest ? "accepted" : "refused";
    greatest = Math.max(greatest, token);
    return [decision(event, token, m, order), op(who, token, event, m - 0.5, m + 0.5)];
  });
  return [...recorded.flatMap(({ entries }) => entries), ...guarded];
}

const turns = fc.array(turn, { minLength: 1, maxLength: 12 });

describe("a random history", () => {
  test("of a correct lease is never accused", () => {
    const seen = { takeovers: 0, refused: 0, inconclusive: 0 };
    fc.assert(
      fc.property(turns, (all) => {
        const report = check(recordAll(all));
        expect(report.violations).toEqual([]);
        seen.takeovers += report.takeovers;
        seen.refused += report.decisions.refused;
        seen.inconclusive += report.inconclusive;
      }),
      { numRuns: 1_000, seed: 4 },
    );
    // The test proves something only if there were takeovers.
    expect(seen.takeovers).toBeGreaterThan(500);
    expect(seen.refused).toBeGreaterThan(200);
    expect(seen.inconclusive).toBeGreaterThan(10);
  });

  test("with a planted overlap is always caught", () => {
    fc.assert(
      fc.property(turns, fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (all, choice, part) => {
        const entries = recordAll(all);
        const long = wholeTenures(entries);
        fc.pre(long.length > 0);
        const { first, last } = long[choice % long.length]!;
        const [from, to] = [Number(first.m2) / 1e6, Number(last.m1) / 1e6];
        const at = from + ((to - from) * (1 + part)) / 4;
        const thief = looks("c", 5_000, { at, took: 0.0001 }, { at: at + 0.0002, took: 0.0001 });
        const stolen = thief.map((entry) => ({ ...entry, incarnation: "thief.1", pid: pidOf("c") }));
        expect(rulesOf(check(entries, stolen))).toContain("overlap");
      }),
      { numRuns: 200, seed: 4 },
    );
  });

  test("gives one verdict, however its lines are distributed over journals", () => {
    fc.assert(
      fc.property(turns, fc.boolean(), (all, backwards) => {
        const entries = recordAll(all);
        const judge = new HistoryJudge();
        const parts = holders.map((who) => entries.filter((one) => "pid" in one && one.pid === pidOf(who)));
        parts.push(entries.filter((one) => !("pid" in one)));
        for (const [index, part] of (backwards ? parts.toReversed() : parts).entries()) {
          const journal = judge.journal(`${index}`);
          journal.feed(journalOf(part, `writer ${index}`));
          journal.end();
        }
        expect({ ...judge.report(), journals: 1 }).toEqual(check(entries));
      }),
      { numRuns: 200, seed: 4 },
    );
  });
});

/** The first and last look of tenures that certainly lasted a microsecond or more. */
function wholeTenures(entries: readonly HistoryEntry[]): { first: Sample; last: Sample }[] {
  const byToken = new Map<bigint, Sample[]>();
  for (const entry of entries.toSorted((one, other) => Number(stampOf(one) - stampOf(other)))) {
    if (entry.event !== "sample" || !entry.ok) continue;
    byToken.set(entry.token, [...(byToken.get(entry.token) ?? []), entry]);
  }
  return [...byToken.values()]
    .map((samples) => ({ first: samples[0]!, last: samples.at(-1)! }))
    .filter(({ first, last }) => last.m1 - first.m2 > 2_000n);
}
