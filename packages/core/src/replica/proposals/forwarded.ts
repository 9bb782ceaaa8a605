import { NumberMap } from "leasehold/common";
import type { MemberId } from "../../raft/types.js";
import type { LeaderRefusal, Propose, ProposeChange } from "./leader-messages.js";

/** Number of processes remembered per member within one term. No member restarts more often in one term. */
const livesMax = 8;

/** Number of repeatable proposals remembered per process: many times as many as it may have pending. */
export const seenMax = 1 << 18;

type Failure = LeaderRefusal["failure"];

/** One process that has sent proposals. */
interface Life {
  readonly life: number;
  settled: number;
  /** Received and unsettled proposals, by number. */
  readonly seen: NumberMap<"taken" | Failure>;
}

/**
 * Proposals from other servers to this leader in its term. A proposal repeated after a lost connection is not
 * appended again; a refusal is repeated. A term has one leader, which is one process, so memory suffices.
 */
export class Forwarded {
  readonly #lives = new Map<MemberId, Life[]>();

  /** This server leads another term, or no longer leads. */
  reset(): void {
    this.#lives.clear();
  }

  /**
   * The outcome of an earlier copy; undefined if the proposal is new. `taken` also for proposals that are
   * settled, and for those that cannot be remembered: the next copy of those might not be refused.
   */
  outcomeOf(message: Propose | ProposeChange): "taken" | Failure | undefined {
    const { from, life, number, settled } = message;
    if (life === 0) return undefined;
    const known = this.#lifeOf(from, life);
    const { seen } = known;
    if (settled > known.settled) forget(known, settled);
    if (number < known.settled) return "taken";
    const outcome = seen.get(number);
    if (outcome !== undefined) return outcome;
    if (seen.size >= seenMax) return "taken";
    seen.set(number, "taken");
    return undefined;
  }

  /** The leader refused the proposal after all. */
  refused({ failure, number, to }: LeaderRefusal): void {
    for (const { seen } of this.#lives.get(to) ?? []) if (seen.has(number)) seen.set(number, failure);
  }

  /** Refusals that may not have reached the member's present process. */
  refusalsTo(member: MemberId): readonly { readonly number: number; readonly failure: Failure }[] {
    const refusals: { readonly number: number; readonly failure: Failure }[] = [];
    for (const [number, failure] of this.#lives.get(member)?.at(-1)?.seen.entries() ?? [])
      if (failure !== "taken") refusals.push({ number, failure });
    return refusals;
  }

  #lifeOf(member: MemberId, life: number): Life {
    const lives = this.#lives.get(member) ?? [];
    const known = lives.find((each) => each.life === life);
    if (known !== undefined) return known;
    const added: Life = { life, settled: 0, seen: new NumberMap<"taken" | Failure>() };
    this.#lives.set(member, [...lives.slice(1 - livesMax), added]);
    return added;
  }
}

function forget(life: Life, settled: number): void {
  life.settled = settled;
  for (const number of life.seen.keys()) {
    if (number >= settled) break;
    life.seen.delete(number);
  }
}
