import { NumberMap } from "leasehold/common";
import type { MemberId } from "../../raft/types.js";
import type { LeaderRefusal, Propose, ProposeChange } from "./leader-messages.js";

/** Processes of one member that have come within one term. More than begin in any. */
const livesMax = 8;

/** Proposals of one process that may come again: many times as many as it may have open. */
export const seenMax = 1 << 18;

type Failure = LeaderRefusal["failure"];

/** One process that has sent proposals. */
interface Life {
  readonly life: number;
  settled: number;
  /** What has come and is not settled, by its number. */
  readonly seen: NumberMap<"taken" | Failure>;
}

/**
 * What other servers have proposed to this leader in its term. A proposal that comes again, as the connection
 * on which it came was cut, is not appended again; a refusal is repeated. A term has one leader, and that is
 * one process: so memory is enough.
 */
export class Forwarded {
  readonly #lives = new Map<MemberId, Life[]>();

  /** This server leads in another term, or not at all. */
  reset(): void {
    this.#lives.clear();
  }

  /**
   * What became of it when it came before; undefined if it is new. `taken` also for what is over, and for what
   * cannot be remembered: a refusal that is forgotten would not hold when it comes again.
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

  /** It was refused after all. */
  refused({ failure, number, to }: LeaderRefusal): void {
    for (const { seen } of this.#lives.get(to) ?? []) if (seen.has(number)) seen.set(number, failure);
  }

  /** Of the process that is there now: what may not have reached it. */
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
