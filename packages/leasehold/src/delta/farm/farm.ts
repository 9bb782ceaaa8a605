import { LeaseholdError } from "../../lease/errors.js";
import type { Driver, StoreFilter } from "../driver.js";
import { type BothClocks, elapsedMs } from "../../common/both-clocks.js";
import { lookAtClocks, type Protocol } from "../effects.js";
import { noMajority } from "../failures.js";
import { encodeFarmCell, type FarmCell, type FarmTerms, sameCell } from "./farm-cell.js";
import { type Founded, planFarm } from "./farm-plan.js";
import { agreedEpochMax, isMereWait, knows, ownCell, type Seen, type Sight, sightOf } from "./farm-sight.js";
import { recovering, replaced, unconfirmed, unlisted, waits } from "./farm-reasons.js";
import type { DeltaSettings, FarmView, Floor } from "../lease-protocol.js";
import { clocksDisagree, stretched } from "../../common/clock-rates.js";
import { majorityOf } from "../../common/majority.js";
import { greatestBigint } from "../record/fields.js";
import { farmRegister, type StoreAnswer, type StoreRequest, type StoreTraits } from "../store.js";

/** Rounds of a look. Other processes may change the farm's cells at the same time, but not every time. */
const looksMax = 5;

/** Looks at the farm per validity period of one look: if one fails, there is time for another. */
const looksPerView = 2;

/**
 * Operations that may still be in flight when a lease of the longest Δ ends: the paper's 6δ, and one as a
 * margin.
 */
const delaysOfGrace = 7;

/**
 * Epochs that the farm's cells allow beyond those in use. The busiest resource makes the bound rise once in a
 * hundred seconds, and a store that forgets costs no more. In the paper's lease, whose contending includes a
 * wait, the lower 32 bits of an epoch identify the writer (`paper/site.ts`).
 */
export const epochsAheadOf = { atomic: 1n << 20n, slotted: 1n << 42n };

/**
 * Bits for a lease's `number` within one generation. It isn't part of tokens: it belongs to the timestamp,
 * and grows with each renewal.
 */
const numberBits = 77n;

interface Member {
  readonly traits: StoreTraits;
  state: "unknown" | "ready" | "recovering";
  /** The store's marker at the last look. */
  id: string;
  /** The generation in which it joined. */
  since: number;
  /**
   * A list with this marker was agreed on at least `ms` before `atMs` of this process's steady clock. The
   * store's cell records the time that others have waited. Each began to count after reading it, so no time
   * is counted twice.
   */
  waited: { readonly ms: number; readonly atMs: number } | undefined;
  /** The store's waiting time before it counts, ms. */
  waitMs: number;
  /** Why it is unknown or recovering, or why it stops counting once the last look is too old. */
  error: LeaseholdError;
  /**
   * The last read, if the store can report that nothing was announced since: an idle look then costs one
   * sector.
   */
  seen?: Seen | undefined;
}

/**
 * The stores of a farm: which of them count, and since when. A store whose marker has changed has forgotten,
 * or was replaced by another. It may not know existing leases, and processes that have not noticed yet may
 * still acquire leases without it, under the old list. Majorities of the old list and of the new one need not
 * overlap. So:
 *
 * 1. A process that notices the change writes the new list, in a new *generation*, to a majority of the old
 *    list's stores: the newcomer gets it only after them, and nobody begins the next generation before that.
 * 2. A process sends the stores nothing unless a look that it began at most V ago found a majority that
 *    agrees with its own terms (`refusal`). That majority and the one of step 1 have a store in common, so V
 *    after step 1 nobody acquires or renews a lease under the old list any longer.
 * 3. The newcomer counts when V and the longest lease, stretched, have passed since step 1: then every lease
 *    under the old list is over. Its cell stores the time that its users have waited, one after another, so
 *    that it returns even if no user lives that long.
 * 4. The newcomer's empty cells count as an epoch greater than that of any lease under the old list
 *    (`epochFloor`). A process uses no epoch above the bound that it has seen a majority agree on
 *    (`epochMax`), and that majority and the one of step 1 have a store in common.
 *
 * V is the longest lease that a process may request, which the stores know (`leaseMsMax`).
 *
 * A new farm is founded when all of its stores have been seen to agree, so two lists that share a store
 * cannot both be founded.
 */
export class Farm implements FarmView, StoreFilter {
  readonly size: number;
  readonly majority: number;
  readonly #settings: DeltaSettings;
  readonly #members: readonly Member[];
  readonly #epochsAhead: bigint;
  #isFounded = false;
  #generation = 0;
  #epochFloor = 0n;
  /** Agreed on by a majority. */
  #epochMax = 0n;
  /** The greatest epoch that was requested here. */
  #epochWanted = 0n;
  /** The start of the last look in which a majority agreed with this process's terms. */
  #confirmed: BothClocks | undefined;
  /** The look in progress, until its end. */
  #looking: Promise<void> | undefined;
  /** The same, for callers that only need to know which stores count. */
  #confirming: Promise<void> | undefined;
  #onConfirmed: () => void = () => undefined;
  /** Why the last look failed. */
  #fault: LeaseholdError | undefined;
  #lookAgainMs = -Infinity;

  constructor(traits: readonly StoreTraits[], settings: DeltaSettings, epochsAhead = epochsAheadOf) {
    this.size = traits.length;
    this.majority = majorityOf(traits.length);
    this.#settings = settings;
    this.#epochsAhead = epochsAhead[traits.every(({ kind }) => kind === "atomic") ? "atomic" : "slotted"];
    this.#members = traits.map((each) => ({
      traits: each,
      state: "unknown",
      id: "",
      since: 0,
      waited: undefined,
      waitMs: Infinity,
      error: new LeaseholdError("STORE_UNAVAILABLE", `${each.name}: it has not answered yet`),
    }));
  }

  idOf(store: number): string {
    return this.#members[store]!.id;
  }

  floorOf(): Floor {
    return { epoch: this.#epochFloor, number: BigInt(this.#generation) << numberBits };
  }

  mayTake(epoch: bigint): boolean {
    if (epoch > this.#epochWanted) this.#epochWanted = epoch;
    return epoch <= this.#epochMax;
  }

  remembers(store: number): boolean {
    return this.#members[store]!.since === 0;
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

  /** Milliseconds until a recovering store counts again. */
  readyInMs(store: number, nowMs: number): number {
    return untilReadyMs(this.#members[store]!, nowMs);
  }

  refusal(store: number, now: BothClocks): StoreAnswer | undefined {
    if (this.#counts(store, now)) return undefined;
    return { kind: "failed", error: this.#members[store]!.error };
  }

  #counts(store: number, now: BothClocks): boolean {
    return this.#members[store]!.state === "ready" && this.#isBelieved(now, 0);
  }

  /** Whether the last look is valid, and will be for `forMs` more. */
  #isBelieved(now: BothClocks, forMs: number): boolean {
    return this.#ageMs(now) + forMs < this.#settings.leaseMsMax;
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

  /**
   * Confirms the terms periodically, and checks stores that do not count. Returns `undefined` when there is
   * nothing to do. Otherwise resolves when a majority counts again, or when the look has ended without that.
   */
  tend(driver: Driver): Promise<void> | undefined {
    if (this.#looking !== undefined) return this.#confirming;
    const now = driver.now();
    if (!this.#isLookDue(now)) return undefined;
    this.#lookAgainMs = now.monotonicMs + this.#settings.delayMs;
    const looking = this.#run(driver, this.look());
    this.#looking = looking;
    this.#confirming = new Promise((resolve, reject) => {
      this.#onConfirmed = resolve;
      looking.then(resolve, reject);
    });
    return this.#confirming;
  }

  #isLookDue(now: BothClocks): boolean {
    const isFresh = this.#ageMs(now) < this.#settings.leaseMsMax / looksPerView;
    const isSettled = this.#members.every(({ state }) => state === "ready") && !this.#isShortOfEpochs;
    return !(isFresh && isSettled) && now.monotonicMs >= this.#lookAgainMs;
  }

  /**
   * Adds the time waited to a recovering store's cell, for later users. To be called when a process closes.
   */
  async leave(driver: Driver): Promise<void> {
    if (!this.#members.some(({ state }) => state === "recovering")) return;
    await this.#looking;
    await this.#run(driver, this.look());
  }

  async #run(driver: Driver, look: Protocol<void>): Promise<void> {
    this.#fault = undefined;
    try {
      await driver.run(look);
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      this.#fault = error;
    } finally {
      this.#looking = undefined;
    }
  }

  /** Whether a majority of the stores knows the farm, and allows leases of the length used here. */
  get isFounded(): boolean {
    return this.#isFounded;
  }

  /** The number of stores that count, and will for `forMs` more without another look. */
  ready(now: BothClocks, forMs = 0): number {
    if (!this.#isBelieved(now, forMs)) return 0;
    return this.#members.reduce((ready, { state }) => ready + (state === "ready" ? 1 : 0), 0);
  }

  /** Why the last look failed; none of its results are known then. */
  get fault(): LeaseholdError | undefined {
    return this.#fault;
  }

  /** Why no lease can be acquired. */
  whyNot(now: BothClocks): LeaseholdError {
    if (this.#fault !== undefined) return this.#fault;
    const errors = this.#members.map((_, store) => {
      const refusal = this.refusal(store, now);
      return refusal?.kind === "failed" ? refusal.error : undefined;
    });
    return noMajority(this.size, this.majority, this.ready(now), errors);
  }

  /** Half of the remaining epochs are reserved for use while the bound is being raised. */
  get #isShortOfEpochs(): boolean {
    return this.#epochWanted + this.#epochsAhead / 2n > this.#epochMax;
  }

  /** The age of the last valid look, ms. None is valid while the clocks disagree. */
  #ageMs(now: BothClocks): number {
    const { leaseMsMax } = this.#settings;
    if (this.#confirmed === undefined || clocksDisagree(this.#confirmed, now, leaseMsMax)) return Infinity;
    return elapsedMs(this.#confirmed, now);
  }

  /**
   * Reads every store's data about the farm, founds it if nobody has, updates stores that are behind, and
   * admits those that have waited long enough. Repeats until there is nothing to write.
   *
   * @throws LeaseholdError `CONFIG_MISMATCH`
   */
  *look(): Protocol<void> {
    for (let looks = 0; looks < looksMax; looks += 1) {
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
      // If the stores show an older list than this process knows, none of them count. But if a majority of
      // them agrees on the older list, the newer one was never agreed on: two majorities of the older list
      // have a store in common.
      if (read.generation < this.#generation && knowing < this.majority) return;
      const isAgreed = knowing >= (plan.generation === 0 ? this.size : this.majority);
      this.#generation = Math.max(this.#generation, plan.generation);
      this.#epochFloor = greatestBigint([this.#epochFloor, plan.epochFloor]);
      this.#place(plan, sights, now.monotonicMs, isAgreed);
      const epochMax = agreedEpochMax(sights, plan, this.majority);
      if (epochMax !== undefined) this.#confirm(begun, epochMax, now);
      const next = knowing >= this.majority ? this.#admission(plan) : undefined;
      const hasChanged = yield* this.#publish(next ?? plan, sights, now.monotonicMs, isAgreed);
      if (!hasChanged) return;
    }
  }

  /**
   * A majority has just confirmed this process's terms. While the bound on epochs is being raised, the
   * process relies on the old bound, so nobody has to wait for the stores to be updated.
   */
  #confirm(begun: BothClocks, epochMax: bigint, now: BothClocks): void {
    this.#isFounded = true;
    this.#confirmed = begun;
    this.#epochMax = greatestBigint([this.#epochMax, epochMax]);
    if (this.ready(now) >= this.majority) this.#onConfirmed();
  }

  *#read(): Protocol<{ readonly sights: readonly Sight[]; readonly now: BothClocks }> {
    const { answers, now } = yield {
      kind: "ask",
      requests: this.#members.map((member): StoreRequest => {
        const quietSince = member.seen?.mark;
        return { op: "read", register: farmRegister, ...(quietSince !== undefined && { quietSince }) };
      }),
      timeoutMs: this.#settings.delayMs,
      enough: () => false,
    };
    const sights = this.#members.map((member, store): Sight => {
      const answer = answers[store];
      const sight = sightOf(answer, member.traits, member.error, member.seen?.sight);
      // An answer without a mark: from here on the store cannot report that nothing was announced since.
      if (answer?.kind === "cells" && sight.kind === "answered")
        member.seen = answer.mark === undefined ? undefined : { mark: answer.mark, sight };
      if (sight.kind === "silent") {
        // A store that counts keeps counting: silence is no reason to distrust its next answer.
        if (member.state !== "ready") member.state = "unknown";
        member.error = sight.error;
      } else if (member.id !== sight.id) {
        [member.id, member.state, member.waited] = [sight.id, "unknown", undefined];
      }
      return sight;
    });
    return { sights, now };
  }

  /**
   * Where a store can only write, a contender's pause must be as long as the others' writes may take. The
   * very first writes of two processes that rely on different δ are not safe, so all must use the founder's
   * δ.
   */
  #checkDelay({ delayMsMax }: Founded): void {
    const isSlotted = this.#members.some(({ traits }) => traits.kind === "slotted");
    const { delayMs } = this.#settings;
    if (!isSlotted || delayMsMax === 0 || delayMsMax === delayMs) return;
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      `these stores are used with δ = ${delayMsMax} ms, and not ${delayMs} ms: if one of them can only write, all users must have the same δ`,
    );
  }

  #bounds({ leaseMsMax, delayMsMax, epochMax }: Founded) {
    const isShort = this.#epochWanted + this.#epochsAhead / 2n > epochMax;
    return {
      epochMax: isShort ? this.#epochWanted + this.#epochsAhead : epochMax,
      leaseMsMax: Math.max(leaseMsMax, this.#settings.leaseMsMax),
      delayMsMax: Math.max(delayMsMax, this.#settings.delayMs),
    };
  }

  /** Determines which stores count, and when the waiting ones may. */
  #place(plan: Founded, sights: readonly Sight[], nowMs: number, isAgreed: boolean): void {
    this.#members.forEach((member, store) => {
      const sight = sights[store]!;
      const isIn = plan.farm.includes(member.id);
      if (!isIn) [member.state, member.waited] = ["unknown", undefined];
      if (sight.kind === "silent") return;
      const cell = ownCell(sight);
      member.since = cell?.since ?? plan.generation;
      member.waitMs = this.#waitMs(plan, member);
      if (isIn && isAgreed) {
        const known = cell?.waitedMs ?? 0;
        if (known >= waitedMs(member, nowMs)) member.waited = { ms: known, atMs: nowMs };
      }
      if (isIn && cell?.state === "ready") member.state = "ready";
      if (member.state === "ready") member.error = unconfirmed;
      else if (member.waited !== undefined) [member.state, member.error] = ["recovering", recovering(member)];
      else member.error = plan.replaced.includes(store) ? replaced(member) : unlisted(member);
    });
  }

  /** How long a store of the list waits before it counts, from the time the list is agreed on, ms. */
  #waitMs({ generation, leaseMsMax, delayMsMax }: Founded, { traits }: Member): number {
    const { clockRateError } = this.#settings;
    const leaseMs = leaseMsMax + delaysOfGrace * delayMsMax;
    if (generation > 0) return stretched(leaseMsMax + leaseMs, clockRateError);
    // At the first use there is no old list, and a durable store has forgotten nothing. For other stores it
    // is unknown whether they are new or were emptied: their age proves nothing.
    return traits.durable ? 0 : stretched(leaseMs, clockRateError);
  }

  /**
   * The farm including the newcomers, in a new generation that no lease has yet. Its old members get it
   * first.
   */
  #admission(plan: Founded): Founded | undefined {
    const ids = this.#members.map(({ id }) => id);
    const others = plan.farm.filter((id) => ids.includes(id));
    const { newcomers } = plan;
    // A store that was never seen cannot be distinguished from a newcomer.
    if (newcomers.length === 0 || others.length + newcomers.length !== this.size) return undefined;
    const farm = [...others, ...newcomers.map((store) => ids[store]!)].toSorted();
    // No lease under the present list has an epoch above the floor of the newcomers' empty cells.
    const epochs = { epochFloor: plan.epochMax, epochMax: plan.epochMax + this.#epochsAhead };
    return { ...plan, ...epochs, farm, generation: plan.generation + 1 };
  }

  /**
   * Writes the farm to each member whose cell differs. True when a store's cell is no longer the one that was
   * read.
   */
  *#publish(plan: Founded, sights: readonly Sight[], nowMs: number, isAgreed: boolean): Protocol<boolean> {
    const requests = this.#members.map((member, store): StoreRequest | undefined => {
      const sight = sights[store]!;
      if (!plan.members.includes(store) || sight.kind === "silent") return undefined;
      // A newcomer must not count towards the majority that has the list.
      if (plan.generation > 0 && ownCell(sight) === undefined && !isAgreed) return undefined;
      const isReady = member.state === "ready" || untilReadyMs(member, nowMs) === 0;
      return this.#requestFor(cellFor(plan, member, isReady, nowMs), sight, store);
    });
    const { answers } = yield {
      kind: "ask",
      requests,
      timeoutMs: this.#settings.delayMs,
      enough: () => false,
    };
    return answers.some(
      (answer, store) =>
        (answer?.kind === "written" && !isMereWait(sights[store]!, requests[store])) ||
        answer?.kind === "conflict",
    );
  }

  #requestFor(cell: FarmCell, sight: Sight, store: number): StoreRequest | undefined {
    if (sight.kind === "answered" && sight.cell !== undefined && sameCell(sight.cell, cell)) return undefined;
    const next = encodeFarmCell(cell);
    if (this.#members[store]!.traits.kind === "slotted") return { op: "put", register: farmRegister, next };
    return { op: "replace", register: farmRegister, id: cell.id, expected: sight.content, next };
  }
}

/** The least time since a list with this store was agreed on, ms; -1 when this process knows of none. */
function waitedMs({ waited }: Member, nowMs: number): number {
  return waited === undefined ? -1 : waited.ms + nowMs - waited.atMs;
}

function untilReadyMs(member: Member, nowMs: number): number {
  return member.waited === undefined ? Infinity : Math.max(0, member.waitMs - waitedMs(member, nowMs));
}

function cellFor(plan: FarmTerms, member: Member, isReady: boolean, nowMs: number): FarmCell {
  const { id, since } = member;
  const { generation, farm, leaseMsMax, delayMsMax, epochFloor, epochMax } = plan;
  const waited = isReady ? 0 : Math.floor(Math.max(0, waitedMs(member, nowMs)));
  return {
    id,
    since,
    state: isReady ? "ready" : "recovering",
    waitedMs: waited,
    generation,
    farm,
    leaseMsMax,
    delayMsMax,
    epochFloor,
    epochMax,
  };
}
