import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  benchSettings,
  readyAcceptor,
  releaseOf,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import type { Acceptor } from "./acceptor.js";
import { withFaults } from "../../../../../test/planted/switches.js";
import { weightOf } from "./quotas.js";

const resourcesMax = 300;
/** The guaranteed amount of an account, and of a name; the reserve is 30. */
const certain = 1;

/** Names by account: the first account uses one greedy name after another, the others are modest. */
const greedy = ["g0", "g1", "g2"].map((account) => ({ account, names: ["x", "y", "z"] }));
const modest = ["m0", "m1"].map((account) => ({ account, names: ["one"] }));

type Act =
  | {
      readonly act: "grab";
      readonly who: number;
      readonly name: number;
      readonly count: number;
      readonly long: boolean;
    }
  | { readonly act: "take" | "keep" | "leave"; readonly who: number }
  | { readonly act: "pass"; readonly ms: number };

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        act: fc.constant("grab"),
        who: fc.nat({ max: greedy.length - 1 }),
        name: fc.nat({ max: 2 }),
        count: fc.nat({ max: 250 }),
        long: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        act: fc.constantFrom("take", "keep", "leave"),
        who: fc.nat({ max: modest.length - 1 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ act: fc.constant("pass"), ms: fc.nat({ max: 3_000 }) }) },
  ),
  { minLength: 5, maxLength: 20 },
);

/** The kept amounts, recounted. */
function counted(acceptor: Acceptor): Map<string, number> {
  const used = new Map<string, number>();
  for (const [resource, entry] of acceptor.entries()) {
    const payer = acceptor.quotas!.payerOfKept(entry)!;
    const who = `${payer.account.key}/${payer.name}`;
    used.set(who, (used.get(who) ?? 0) + weightOf(Buffer.byteLength(resource)));
  }
  return used;
}

const sum = (used: Map<string, number>) => [...used.values()].reduce((all, each) => all + each, 0);

/** Greedy owners with many names against modest ones that want one resource each. */
function run(script: readonly Act[]): void {
  const acceptor = readyAcceptor({ ...benchSettings(), resourcesMax });
  for (const { account, names } of [...greedy, ...modest])
    for (const name of names) acceptor.quotas!.introduce(`${account}-${name}.1`, account);
  const held = new Map<number, { name: string; sinceMs: number; sequence: number; untilMs: number }>();
  let ms = 0;
  let grabbed = 0;
  for (const step of script) {
    ms += 1;
    if (step.act === "pass") {
      ms += step.ms;
      acceptor.discardIdle(at(ms), 10_000);
    } else if (step.act === "grab") {
      const { account, names } = greedy[step.who]!;
      const owner = `${account}-${names[step.name]}.1`;
      for (let count = 0; count < step.count; count += 1) {
        const resource = `${(grabbed += 1)}`.padEnd(step.long ? 300 : 1, "x");
        ask(acceptor, { ...acquireOf(owner, ms, ms + 900, 900), resource }, at(ms));
      }
    } else {
      perform(step.act, step.who);
    }
    const used = counted(acceptor);
    expect(sum(used)).toBe(acceptor.quotas!.used);
    expect(sum(used)).toBeLessThanOrEqual(resourcesMax);
  }

  function perform(act: "take" | "keep" | "leave", who: number): void {
    const owner = `${modest[who]!.account}-one.1`;
    const mine = held.get(who);
    if (act === "take") {
      const name = `modest/${who}/${ms}`;
      const isKept =
        (counted(acceptor).get(`${modest[who]!.account}/${modest[who]!.account}-one`) ?? 0) >= certain;
      const word = wordOf(ask(acceptor, { ...acquireOf(owner, ms, ms + 900, 900), resource: name }, at(ms)));
      if (!isKept) expect(word).toBe("ack");
      if (word === "ack") held.set(who, { name, sinceMs: ms, sequence: 0, untilMs: ms + 900 });
    } else if (mine !== undefined && ms < mine.untilMs) {
      const { name: resource, sinceMs } = mine;
      mine.sequence += 1;
      if (act === "keep") {
        mine.untilMs = ms + 900;
        const renewal = { ...writeOf(owner, sinceMs, mine.sequence, mine.untilMs, 900), resource };
        expect(wordOf(ask(acceptor, renewal, at(ms)))).toBe("ack");
      } else {
        ask(acceptor, { ...releaseOf(owner, sinceMs, mine.sequence), resource }, at(ms));
        expect(acceptor.entry(resource)!.released).toBe(true);
        held.delete(who);
      }
    }
  }
}

const check = (options: { numRuns: number; seed?: number }) =>
  fc.assert(fc.property(acts, run), { ...options, endOnFailure: true });

test("a modest owner gets, keeps and returns its guaranteed minimum, whatever greedy ones do", () => {
  expect(() => check({ numRuns: 60 })).not.toThrow();
});

test("without quotas a greedy owner takes a modest one's minimum, and the property finds it", () => {
  withFaults({ noQuotas: true }, () =>
    expect(() => check({ numRuns: 500, seed: 1 })).toThrow("Property failed"),
  );
});
