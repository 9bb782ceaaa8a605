import { faults } from "#delta-faults";
import { formatDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Driver, Gate } from "./driver.js";
import { lookAtClocks, type Protocol, type Reading } from "./effects.js";
import { noMajority } from "./failures.js";
import { decodeFarmCell, encodeFarmCell, type FarmCell, mergeFarmCells } from "./farm-cell.js";
import { type FarmPlan, type FarmReading, planFarm } from "./farm-plan.js";
import { sameBytes } from "./line.js";
import type { DeltaSettings, FarmView } from "./lease-protocol.js";
import { stretched } from "../lease/clock-rates.js";
import { farmRegister, type StoreAnswer, type StoreRequest, type StoreTraits } from "./store.js";
import { elapsedMs } from "./tenure.js";

/** Others may change the farm's cells at the same time; they cannot do so all the time. */
const looksMax = 5;

/** Looks at the farm in the time for which one is good: when one fails there is time for another. */
const looksPerView = 2;

/** Operations that may still be on their way when a lease of the longest Δ ends: the paper's 6δ, and one for good measure. */
const delaysOfGrace = 7;

/** Epochs that one generation has room for: a farm would need a million tenures of a resource a second, for a year. The paper's lease takes another 32 bits (`paper/site.ts`). */
const bitsPerGeneration = 77n;

interface Member {
  readonly traits: StoreTraits;
  state: "unknown" | "ready" | "recovering";
  /** Its marker when it was last looked at. */
  id: string;
  /** When it may count again, on this process's steady clock. */
  readyAtMs: number;
  /** Why it is unknown, or why its word does not count once the last look is too old. */
  error: LeaseholdError;
}

type Founded = Extract<FarmPlan, { kind: "farm" }>;

/** What {@link Farm.look} has read of one store. */
type Sight = FarmReading & { readonly content?: Uint8Array | undefined };

/**
 * The stores of a farm, which of them count, and since when. A store that is not the one that it was (its marker is another) has
 * forgotten, or another was put in its place. Leases may run that it does not know, and processes that have not heard of it yet may
 * still take some without it: by the old list. Majorities of the old list and of the new one need not meet. So:
 *
 * 1. Whoever notices it writes the new list, in a new *generation*, to a majority of the old list's stores: the newcomer itself
 *    learns of it only when they have it, and nobody begins a next generation before that.
 * 2. A process asks nothing of the stores unless a look that it began at most V ago has shown it a majority that says what it
 *    relies on (`refusal`). That majority and the one of 1 have a store in common, so V after 1 nobody takes or renews a lease by the
 *    old list any more.
 * 3. The newcomer counts when V and the longest lease have passed since 1, stretched: when every lease of the old list is over.
 *
 * V is the longest lease that a process may ask for, which the stores know (`leaseMsMax`).
 *
 * A new farm is founded when all of its stores have been seen to agree, so no two lists that share a store can be.
 */
export class Farm implements FarmView, Gate {
  readonly size: number;
  readonly majority: number;
  readonly #settings: DeltaSettings;
  readonly #members: readonly Member[];
  #isFounded = false;
  #generation = 0;
  /** When the last look began that showed a majority which says what this process relies on. */
  #confirmed: Reading | undefined;
  #looking: Promise<void> | undefined;
  /** Why the last look failed. */
  #fault: LeaseholdError | undefined;
  #lookAgainMs = -Infinity;

  constructor(traits: readonly StoreTraits[], settings: DeltaSettings) {
    this.size = traits.length;
    this.majority = Math.floor(traits.length / 2) + 1;
    this.#settings = settings;
    this.#members = traits.map((each) => ({
      traits: each,
      state: "unknown",
      id: "",
      readyAtMs: Infinity,
      error: new LeaseholdError("STORE_UNAVAILABLE", `${each.name}: it has not answered yet`),
    }));
  }

  idOf(store: number): string {
    return this.#members[store]!.id;
  }

  floorOf(): bigint {
    return BigInt(this.#generation) << bitsPerGeneration;
  }

  kindOf(store: number): StoreTraits["kind"] {
    return this.#members[store]!.traits.kind;
  }

  nameOf(store: number): string {
    return this.#members[store]!.traits.name;
  }

  stateOf(store: number): Member["state"] {
    return this.#members[store]!.state;
  }

  /** How long until a recovering store counts again, ms. */
  readyInMs(store: number, nowMs: number): number {
    return Math.max(0, this.#members[store]!.readyAtMs - nowMs);
  }

  refusal(store: number, now: Reading): StoreAnswer | undefined {
    const { state, error, traits } = this.#members[store]!;
    if (state === "ready" && this.#ageMs(now) < this.#settings.leaseMsMax) return undefined;
    if (state !== "recovering") return { kind: "failed", error };
    const why = `${traits.name}: it has forgotten, or is new, and counts when every lease that it may not know of is over`;
    return { kind: "failed", error: new LeaseholdError("STORE_UNAVAILABLE", why) };
  }

  admit(store: number, answer: StoreAnswer): StoreAnswer {
    const member = this.#members[store]!;
    if (answer.kind === "failed" || answer.id === member.id) return answer;
    member.state = "unknown";
    member.error = new LeaseholdError(
      "STORE_UNAVAILABLE",
      `${member.traits.name}: it has forgotten everything`,
    );
    this.#lookAgainMs = -Infinity;
    return { kind: "failed", error: member.error };
  }

  /** Confirms what it relies on, now and then, and looks after stores that do not count. Undefined when there is nothing to do. */
  tend(driver: Driver): Promise<void> | undefined {
    const now = driver.now();
    const isFresh = this.#ageMs(now) < this.#settings.leaseMsMax / looksPerView;
    if (isFresh && this.#members.every(({ state }) => state === "ready")) return undefined;
    if (this.#looking !== undefined) return this.#looking;
    if (now.monotonicMs < this.#lookAgainMs) return undefined;
    this.#lookAgainMs = now.monotonicMs + this.#settings.delayMs;
    this.#looking = this.#look(driver);
    return this.#looking;
  }

  async #look(driver: Driver): Promise<void> {
    this.#fault = undefined;
    try {
      await driver.run(this.look());
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      this.#fault = error;
    } finally {
      this.#looking = undefined;
    }
  }

  /** A majority of the stores knows the farm, and that leases may be as long as here. */
  get isFounded(): boolean {
    return this.#isFounded;
  }

  /** How many stores count. */
  ready(now: Reading): number {
    return this.#members.filter((_, store) => this.refusal(store, now) === undefined).length;
  }

  /** Why no lease can be had. */
  whyNot(now: Reading): LeaseholdError {
    if (this.#fault !== undefined) return this.#fault;
    const errors = this.#members.map((_, store) => {
      const refusal = this.refusal(store, now);
      return refusal?.kind === "failed" ? refusal.error : undefined;
    });
    return noMajority(this.size, this.majority, this.ready(now), errors);
  }

  #ageMs(now: Reading): number {
    return this.#confirmed === undefined ? Infinity : elapsedMs(this.#confirmed, now);
  }

  /**
   * Reads what every store says of the farm, founds it if nobody has, tells stores what they do not know yet, and lets those
   * in that have waited long enough. Until there is nothing to tell.
   *
   * @throws LeaseholdError `CONFIG_MISMATCH`
   */
  *look(): Protocol<void> {
    for (let looks = 0; looks < looksMax; looks++) {
      const { now: begun } = yield lookAtClocks;
      const { sights, now } = yield* this.#read();
      const names = this.#members.map(({ traits }) => traits.name);
      const read = planFarm(names, sights);
      if (read.kind === "unfounded") {
        for (const member of this.#members)
          if (member.state === "unknown" && member.id !== "") member.error = waits(member);
        return;
      }
      this.#checkDelay(read);
      const plan: Founded = { ...read, ...this.#bounds(read) };
      const knowing = plan.members.filter((store) => knows(sights[store]!, plan)).length;
      const isAgreed = knowing >= (plan.generation === 0 ? this.size : this.majority);
      this.#generation = Math.max(this.#generation, plan.generation);
      this.#place(plan, sights, now.monotonicMs, isAgreed);
      if (knowing >= this.majority) [this.#isFounded, this.#confirmed] = [true, begun];
      const next = knowing >= this.majority ? this.#admission(plan) : undefined;
      const hasChanged = yield* this.#tell(next ?? plan, sights, now.monotonicMs, isAgreed);
      if (!hasChanged) return;
    }
  }

  *#read(): Protocol<{ readonly sights: readonly Sight[]; readonly now: Reading }> {
    const { answers, now } = yield {
      kind: "ask",
      requests: this.#members.map(() => ({ op: "read", register: farmRegister })),
      timeoutMs: this.#settings.delayMs,
      enough: () => false,
    };
    const sights = this.#members.map((member, store): Sight => {
      const sight = sightOf(answers[store], member);
      if (sight.kind === "silent") {
        // One that counts goes on doing so: silence is no reason to distrust what it will say.
        if (member.state !== "ready") member.state = "unknown";
        member.error = sight.error;
      } else if (member.id !== sight.id) {
        [member.id, member.state, member.readyAtMs] = [sight.id, "unknown", Infinity];
      }
      return sight;
    });
    return { sights, now };
  }

  /**
   * Where a store can only write, a contender's pause must be as long as the others' writes may take: the very first writes of two
   * that rely on different δ are not safe, so all are held to the founder's.
   */
  #checkDelay({ delayMsMax }: Founded): void {
    const isSlotted = this.#members.some(({ traits }) => traits.kind === "slotted");
    const { delayMs } = this.#settings;
    if (!isSlotted || delayMsMax === 0 || delayMsMax === delayMs) return;
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      `these stores are used with δ = ${delayMsMax} ms, and not ${delayMs} ms: where one of them can only write, all must rely on the same`,
    );
  }

  #bounds({ leaseMsMax, delayMsMax }: Founded) {
    return {
      leaseMsMax: Math.max(leaseMsMax, this.#settings.leaseMsMax),
      delayMsMax: Math.max(delayMsMax, this.#settings.delayMs),
    };
  }

  /** Which stores count, by what was read; and when those may that have to wait. */
  #place(plan: Founded, sights: readonly Sight[], nowMs: number, isAgreed: boolean): void {
    this.#members.forEach((member, store) => {
      const sight = sights[store]!;
      const isIn = plan.farm.includes(member.id);
      if (!isIn) [member.state, member.readyAtMs] = ["unknown", Infinity];
      if (sight.kind === "silent") return;
      if (isIn && isAgreed && member.readyAtMs === Infinity)
        member.readyAtMs = nowMs + this.#waitMs(plan, member);
      if (isIn && sight.cell?.id === sight.id && sight.cell.state === "ready") member.state = "ready";
      if (member.state === "ready") member.error = unconfirmed;
      else if (member.readyAtMs !== Infinity) member.state = "recovering";
      else member.error = plan.replaced.includes(store) ? replaced(member) : untold(member);
    });
  }

  /** How long a store of the list waits until it counts, from when the list is agreed on. */
  #waitMs({ generation, leaseMsMax, delayMsMax }: Founded, { traits }: Member): number {
    if (faults.forgottenStoreCounts) return 0;
    const { clockRateError } = this.#settings;
    const leaseMs = leaseMsMax + delaysOfGrace * delayMsMax;
    if (generation > 0) return stretched(leaseMsMax + leaseMs, clockRateError);
    // At the first use there is no old list, and nothing to forget for what keeps what it has.
    // Whether another is new or was emptied nothing tells: not its age, either.
    return traits.durable ? 0 : stretched(leaseMs, clockRateError);
  }

  /** The farm with the newcomers in it, in a generation that no lease knows yet. Its old members learn of it first. */
  #admission(plan: Founded): Founded | undefined {
    const ids = this.#members.map(({ id }) => id);
    const others = plan.farm.filter((id) => ids.includes(id));
    const { newcomers } = plan;
    // The place of a store that was never seen cannot be told from a newcomer's.
    if (newcomers.length === 0 || others.length + newcomers.length !== this.size) return undefined;
    const farm = [...others, ...newcomers.map((store) => ids[store]!)].toSorted();
    return { ...plan, farm, generation: plan.generation + 1 };
  }

  /** Writes the farm into each member that does not say so yet. True when a store's cell is another than was read. */
  *#tell(plan: Founded, sights: readonly Sight[], nowMs: number, isAgreed: boolean): Protocol<boolean> {
    const requests = this.#members.map((member, store): StoreRequest | undefined => {
      const sight = sights[store]!;
      if (!plan.members.includes(store) || sight.kind === "silent") return undefined;
      // A newcomer's word must not be what others take for a majority that knows of it.
      if (plan.generation > 0 && sight.cell?.id !== sight.id && !isAgreed) return undefined;
      const isReady = member.state === "ready" || member.readyAtMs <= nowMs;
      return this.#requestFor(cellFor(plan, sight.id, isReady ? "ready" : "recovering"), sight, store);
    });
    const { answers } = yield {
      kind: "ask",
      requests,
      timeoutMs: this.#settings.delayMs,
      enough: () => false,
    };
    return answers.some((answer) => answer?.kind === "written" || answer?.kind === "conflict");
  }

  #requestFor(cell: FarmCell, sight: Sight, store: number): StoreRequest | undefined {
    const next = encodeFarmCell(cell);
    const present =
      sight.kind === "answered" && sight.cell !== undefined ? encodeFarmCell(sight.cell) : undefined;
    if (present !== undefined && sameBytes(present, next)) return undefined;
    if (this.#members[store]!.traits.kind === "slotted") return { op: "put", register: farmRegister, next };
    return { op: "replace", register: farmRegister, id: cell.id, expected: sight.content, next };
  }
}

function waits({ traits }: Member): LeaseholdError {
  const why = `${traits.name}: it answers, and has never been used; the first use needs all stores`;
  return new LeaseholdError("STORE_UNAVAILABLE", why);
}

function untold({ traits }: Member): LeaseholdError {
  const why = `${traits.name}: it has forgotten, or is new, and not enough of the others know of it yet`;
  return new LeaseholdError("STORE_UNAVAILABLE", why);
}

function replaced({ traits }: Member): LeaseholdError {
  const why = `${traits.name}: another store has taken its place, so this list of stores is out of date; to have this one back, empty it`;
  return new LeaseholdError("STORE_UNAVAILABLE", why);
}

const unconfirmed = new LeaseholdError(
  "STORE_UNAVAILABLE",
  "no majority has confirmed for a while that these are the stores of the farm",
);

function cellFor(plan: Founded, id: string, state: FarmCell["state"]): FarmCell {
  const { generation, farm, leaseMsMax, delayMsMax } = plan;
  return { id, state, generation, farm, leaseMsMax, delayMsMax };
}

/** The store has all of the plan in its cell. */
function knows(sight: Sight, plan: Founded): boolean {
  if (sight.kind === "silent" || sight.cell?.id !== sight.id) return false;
  const { cell, id } = sight;
  return sameBytes(encodeFarmCell(cell), encodeFarmCell(cellFor(plan, id, cell.state)));
}

function sightOf(answer: StoreAnswer | undefined, { traits }: Member): Sight {
  if (answer?.kind !== "cells") {
    const silence = `${traits.name}: it did not answer within ${formatDuration(traits.delayMs)}`;
    const error = answer?.kind === "failed" ? answer.error : new LeaseholdError("STORE_UNAVAILABLE", silence);
    return { kind: "silent", error };
  }
  try {
    const { id, cells } = answer;
    const content = traits.kind === "atomic" ? cells[0] : undefined;
    return { kind: "answered", id, cell: mergeFarmCells(cells.map(decodeFarmCell)), content };
  } catch (error) {
    if (error instanceof LeaseholdError) return { kind: "silent", error };
    throw error;
  }
}
