import { Xorshift } from "../../packages/leasehold/src/common/xorshift.js";

/** What can go wrong, in words that the journals and the summary use too. */
export const faultKinds = [
  "holder-killed",
  "holder-killed-slow",
  "member-killed",
  "member-killed-slow",
  "all-members-killed",
  "holder-stopped",
  "member-stopped",
  "loss",
  "one-way-cut",
  "full-cut",
  "flapping",
  "delay",
  "duplication",
  "reordering",
  "skew",
  "clock-step",
] as const;
export type FaultKind = (typeof faultKinds)[number];

type Family = "processes" | "packets" | "messages" | "clocks";

const familyOf: Record<FaultKind, Family> = {
  "holder-killed": "processes",
  "holder-killed-slow": "processes",
  "member-killed": "processes",
  "member-killed-slow": "processes",
  "all-members-killed": "processes",
  "holder-stopped": "processes",
  "member-stopped": "processes",
  loss: "packets",
  "one-way-cut": "packets",
  "full-cut": "packets",
  flapping: "packets",
  delay: "messages",
  duplication: "messages",
  reordering: "messages",
  skew: "clocks",
  "clock-step": "clocks",
};

export interface PlannedFault<Kind extends string = FaultKind> {
  readonly kind: Kind;
  /** From 0 to 1: how long, within what its kind allows. */
  readonly length: number;
  /** How long nothing happens after it, from 0 to 1. */
  readonly calm: number;
  /** The next fault begins before this one has ended. */
  readonly meetsNext: boolean;
  /** Draws whom it strikes and how hard. The order of its draws is part of the plan. */
  readonly random: Xorshift;
}

/** How often two faults that can go together do, from the second round on. */
const meetingShare = 0.3;

/**
 * The faults of a run, without end: every kind once in each round, in a new order. The first round has one fault at a time,
 * so that each kind is seen alone. A seed decides everything here; what the processes make of it is another matter.
 */
export function planFaults(
  seed: number,
  kinds: readonly FaultKind[] = faultKinds,
): Generator<PlannedFault, never> {
  return planRounds(seed, kinds, canMeet);
}

/** The same for other kinds of faults, and what may go together of them. */
export function* planRounds<Kind extends string>(
  seed: number,
  kinds: readonly Kind[],
  mayMeet: (one: Kind, other: Kind) => boolean,
): Generator<PlannedFault<Kind>, never> {
  const random = new Xorshift(seed);
  for (let skipped = 0; skipped < 8; skipped++) random.next(); // Small seeds begin alike.
  for (let round = 0; ; round++) {
    const order = shuffled(kinds, random);
    for (const [index, kind] of order.entries()) {
      const next = order[index + 1];
      const meets = random.next() < meetingShare && round > 0;
      yield {
        kind,
        length: random.next(),
        calm: random.next(),
        meetsNext: meets && next !== undefined && mayMeet(kind, next),
        random: new Xorshift(Math.floor(random.next() * 0x1_0000_0000)),
      };
    }
  }
}

/**
 * Two of one family would undo each other. While the clock of one is wrong nothing else may happen: the order of tokens is
 * promised only if no member restarts meanwhile.
 */
function canMeet(one: FaultKind, other: FaultKind): boolean {
  const families = [familyOf[one], familyOf[other]];
  return families[0] !== families[1] && !families.includes("clocks");
}

function shuffled<T>(values: readonly T[], random: Xorshift): T[] {
  const result = [...values];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(random.next() * (last + 1));
    [result[last], result[other]] = [result[other]!, result[last]!];
  }
  return result;
}

/** One of several, and a number of a range, by chance. */
export function pick<T>(values: readonly T[], random: Xorshift): T {
  return values[Math.floor(random.next() * values.length)]!;
}

export function between(min: number, max: number, random: Xorshift): number {
  return min + random.next() * (max - min);
}
