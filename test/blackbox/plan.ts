import { Xorshift } from "../../packages/leasehold/src/common/xorshift.js";

/** The kinds of faults, by the names used in the journals and the summary. */
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
  /** The length of the fault within the range of its kind, from 0 to 1. */
  readonly length: number;
  /** The length of the calm after the fault, from 0 to 1. */
  readonly calm: number;
  /** The next fault begins before this one has ended. */
  readonly meetsNext: boolean;
  /** Draws the victims and the strength of the fault. The order of its draws is part of the plan. */
  readonly random: Xorshift;
}

/** The share of compatible pairs of faults that overlap, from the second round on. */
const meetingShare = 0.3;

/**
 * The endless sequence of faults of a run: every kind once in each round, in a new order. Faults of the first
 * round don't overlap, so that each kind is seen alone. The seed determines the whole plan, but not how the
 * processes react to it.
 */
export function planFaults(
  seed: number,
  kinds: readonly FaultKind[] = faultKinds,
): Generator<PlannedFault, never> {
  return planRounds(seed, kinds, canMeet);
}

/** The same for other kinds of faults; `mayMeet` decides which of them may overlap. */
export function* planRounds<Kind extends string>(
  seed: number,
  kinds: readonly Kind[],
  mayMeet: (one: Kind, other: Kind) => boolean,
): Generator<PlannedFault<Kind>, never> {
  const random = new Xorshift(seed);
  for (let skipped = 0; skipped < 8; skipped++) random.next(); // The first draws of small seeds are alike.
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
 * Two faults of one family would undo each other. Nothing else may happen while a clock is wrong: the order
 * of tokens is promised only if no member restarts meanwhile.
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

/** A random one of several values, and below, a random number in a range. */
export function pick<T>(values: readonly T[], random: Xorshift): T {
  return values[Math.floor(random.next() * values.length)]!;
}

export function between(min: number, max: number, random: Xorshift): number {
  return min + random.next() * (max - min);
}
