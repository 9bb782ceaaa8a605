import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { changed, check, looks, rulesOf } from "../../../../../test/support/histories.js";
import type { HistoryEntry } from "./journals/format.js";

/** The judge never accuses correct histories of several holders, and always finds planted faults. */

const part = fc.integer({ min: 0, max: 1_000 }).map((thousandths) => thousandths / 1_000);

/** The start and end of a tenure, as fractions of its possible time, and its looks. */
const stay = fc.record({
  ends: fc.tuple(part, part),
  looks: fc.array(fc.tuple(part, part), { minLength: 1, maxLength: 5 }),
});
type Stay = typeof stay extends fc.Arbitrary<infer T> ? T : never;

/** A tenure into which a fault can be planted. */
const long: Stay = {
  ends: [0.1, 0.9],
  looks: [
    [0, 0.1],
    [1, 0.1],
  ],
};

const spanMs = 1_000;

interface Recorded {
  readonly entries: HistoryEntry[];
  /** From the end of the first look to the beginning of the last, in ms. */
  readonly certain: { readonly from: number; readonly to: number };
}

/** Looks that happen during the tenure; their stamps may be outside of it. */
function record(one: Stay, token: number, startMs: number, number: number): Recorded {
  const [begin, end] = [...one.ends].sort((left, right) => left - right) as [number, number];
  let before = 0;
  const seen = one.looks
    .map(([at, slack]) => ({ happens: startMs + spanMs * (begin + (end - begin) * at), slack: slack * 50 }))
    .sort((left, right) => left.happens - right.happens)
    .flatMap(({ happens, slack }) => {
      const from = Math.max(before, happens - slack);
      if (from > happens) return [];
      before = happens + slack;
      return [{ at: from, took: before - from }];
    });
  const entries = changed(looks("a", token, ...seen), { pid: number, incarnation: `p${number}.1` });
  const [first, last] = [seen[0]!, seen.at(-1)!];
  return { entries, certain: { from: first.at + first.took, to: last.at } };
}

/** A sequence of phases, each with one writer or several readers. Tokens are in the order of the gate. */
const phase = fc.oneof(
  stay.map((one) => ({ mode: "exclusive", stays: [one] })),
  fc.array(stay, { minLength: 1, maxLength: 6 }).map((stays) => ({ mode: "shared", stays })),
);
const phases = fc.array(phase, { minLength: 1, maxLength: 10 });

interface OfMode extends Recorded {
  readonly mode: string;
  readonly phase: number;
}

function recordPhases(all: readonly { mode: string; stays: Stay[] }[]): OfMode[] {
  let number = 0;
  return all.flatMap(({ mode, stays }, index) =>
    stays.map((one): OfMode => {
      // Within a phase, the last to arrive may be the first to be seen.
      const token = (index + 1) * 100 + (((number += 1) * 37) % 97);
      const { entries, certain } = record(one, token, index * spanMs, number);
      return { entries: changed(entries, { mode }), certain, mode, phase: index };
    }),
  );
}

/** A tenure within a longer one. */
function thiefIn({ certain: { from, to } }: Recorded, token: number): HistoryEntry[] {
  const at = from + (to - from) / 4;
  return changed(looks("c", token, { at, took: 0.001 }, { at: from + (to - from) / 2, took: 0.001 }), {
    pid: 999,
    incarnation: "thief.1",
  });
}

const isLong = ({ certain: { from, to } }: Recorded): boolean => to - from > 1;

describe("readers and writers", () => {
  test("in order are never accused", () => {
    const seen = { beside: 0, takeovers: 0 };
    fc.assert(
      fc.property(phases, (all) => {
        const recorded = recordPhases(all);
        const report = check(...recorded.map(({ entries }) => entries));
        expect(report.violations).toEqual([]);
        seen.takeovers += report.takeovers;
        const readers = recorded.filter((one) => one.mode === "shared" && isLong(one));
        for (const [index, one] of readers.entries())
          if (readers.slice(0, index).some((other) => other.certain.from < one.certain.to)) seen.beside += 1;
      }),
      { numRuns: 120, seed: 4 },
    );
    expect(seen.beside).toBeGreaterThan(100);
    expect(seen.takeovers).toBeGreaterThan(100);
  });

  /** Random tenures, with a long one among them. */
  const withHost = (mode: string) =>
    fc.tuple(phases, fc.nat()).map(([all, choice]) => {
      const at = choice % (all.length + 1);
      const recorded = recordPhases(all.toSpliced(at, 0, { mode, stays: [long] }));
      return { all: recorded.map(({ entries }) => entries), host: recorded.find((one) => one.phase === at)! };
    });

  test.each([
    ["a writer in a writer's tenure", "exclusive", "exclusive"],
    ["a writer in a reader's tenure", "exclusive", "shared"],
    ["a reader in a writer's tenure", "shared", "exclusive"],
  ])("with %s are always caught", (_what, mode, into) => {
    fc.assert(
      fc.property(withHost(into), ({ all, host }) => {
        const thief = changed(thiefIn(host, 9_999), { mode });
        expect(rulesOf(check(...all, thief))).toContain("overlap");
      }),
      { numRuns: 50, seed: 4 },
    );
  });

  test("with a reader in a reader's tenure, by a token of the same time, are not accused", () => {
    fc.assert(
      fc.property(withHost("shared"), ({ all, host }) => {
        const guest = changed(thiefIn(host, (host.phase + 1) * 100 + 99), { mode: "shared" });
        expect(check(...all, guest).violations).toEqual([]);
      }),
      { numRuns: 50, seed: 4 },
    );
  });

  test("with a writer whose token is too small are always caught", () => {
    fc.assert(
      fc.property(phases, (all) => {
        const recorded = recordPhases(all);
        const late = changed(looks("c", 1, (all.length + 1) * spanMs), { mode: "exclusive" });
        expect(rulesOf(check(...recorded.map(({ entries }) => entries), late))).toContain("token-order");
      }),
      { numRuns: 30, seed: 4 },
    );
  });
});

describe("the slots of a counted lease", () => {
  /** For each slot, consecutive tenures, each with a limit above the slot's number. */
  const slots = fc.array(fc.array(fc.tuple(stay, fc.nat({ max: 3 })), { minLength: 1, maxLength: 5 }), {
    minLength: 1,
    maxLength: 5,
  });

  function recordSlots(all: readonly [Stay, number][][]): (Recorded & { limit: number; slot: number })[] {
    return all.flatMap((stays, slot) =>
      stays.map(([one, more], index) => {
        const limit = slot + 1 + more;
        const about = { resource: `pool/~${slot}`, pool: "pool", limit };
        const { entries, certain } = record(one, index + 1, index * spanMs, slot * 10 + index + 1);
        return { entries: changed(entries, about), certain, limit, slot };
      }),
    );
  }

  test("in order are never accused", () => {
    fc.assert(
      fc.property(slots, (all) => {
        expect(check(...recordSlots(all).map(({ entries }) => entries)).violations).toEqual([]);
      }),
      { numRuns: 120, seed: 4 },
    );
  });

  test("held beyond the greatest limit are always caught", () => {
    fc.assert(
      fc.property(slots, fc.nat(), (all, choice) => {
        const recorded = recordSlots(all.with(choice % all.length, [[long, 0]]));
        const host = recorded.find(({ slot }) => slot === choice % all.length)!;
        const greatest = Math.max(...recorded.map(({ limit }) => limit));
        const thieves = Array.from({ length: greatest }, (_, index) =>
          changed(thiefIn(host, 1), {
            pid: 900 + index,
            incarnation: `thief.${index}`,
            resource: `pool/~${100 + index}`,
            pool: "pool",
            limit: host.limit,
          }),
        );
        const report = check(...recorded.map(({ entries }) => entries), ...thieves);
        expect(rulesOf(report)).toEqual(expect.arrayContaining(["too-many"]));
        expect(rulesOf(report)).not.toContain("overlap");
      }),
      { numRuns: 50, seed: 4 },
    );
  });
});
