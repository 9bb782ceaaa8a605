import { faults } from "#delta-faults";
import { formatDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Driver, Gate } from "./driver.js";
import { lookAtClocks, type Protocol } from "./effects.js";
import { noMajority } from "./failures.js";
import { decodeFarmCell, encodeFarmCell, type FarmCell, mergeFarmCells } from "./farm-cell.js";
import { type FarmPlan, type FarmReading, planFarm } from "./farm-plan.js";
import { sameBytes } from "./line.js";
import { stretched, type DeltaSettings, type FarmView } from "./lease-protocol.js";
import { farmRegister, type StoreAnswer, type StoreRequest, type StoreTraits } from "./store.js";

/** Others may change the farm's cells at the same time; they cannot do so all the time. */
const looksMax = 5;

/** Operations that may still be on their way when a lease of the longest Δ ends: the paper's 6δ, and one for good measure. */
const delaysOfGrace = 7;

/** Epochs that one generation has room for: a farm would need a million tenures of a resource a second, for a year. The paper's lease takes another 32 bits (`paper/site.ts`). */
const bitsPerGeneration = 77n;

interface Member {
  readonly traits: StoreTraits;
  state: "unknown" | "ready" | "recovering";
  /** Its marker when it was last looked at. */
  id: string;
  generation: number;
  /** When it may count again, on this process's steady clock. */
  readyAtMs: number;
  /** Why it is unknown. */
  error: LeaseholdError;
}

type Founded = Extract<FarmPlan, { kind: "farm" }>;

/** What {@link Farm.look} has read of one store. */
type Sight = FarmReading & { readonly content?: Uint8Array | undefined };

/**
 * The stores of a farm, which of them count, and since when. A store that has forgotten (its marker is another) may have
 * known leases that still run; it counts again when the longest of them must be over.
 */
export class Farm implements FarmView, Gate {
  readonly size: number;
  readonly majority: number;
  readonly #settings: DeltaSettings;
  readonly #members: readonly Member[];
  #isFounded = false;
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
      generation: 0,
      readyAtMs: Infinity,
      error: new LeaseholdError("STORE_UNAVAILABLE", `${each.name}: it has not answered yet`),
    }));
  }

  idOf(store: number): string {
    return this.#members[store]!.id;
  }

  floorOf(store: number): bigint {
    return BigInt(this.#members[store]!.generation) << bitsPerGeneration;
  }

  kindOf(store: number): StoreTraits["kind"] {
    return this.#members[store]!.traits.kind;
  }

  /** For people. */
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

  refusal(store: number): StoreAnswer | undefined {
    const { state, error, traits } = this.#members[store]!;
    if (state === "ready") return undefined;
    if (state === "unknown") return { kind: "failed", error };
    const why = `${traits.name}: it has forgotten, or is new, and counts when every lease that it may have known is over`;
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

  /** Looks after stores that do not count. Undefined when there are none, or it was done a moment ago. */
  tend(driver: Driver): Promise<void> | undefined {
    if (this.#isFounded && this.#members.every(({ state }) => state === "ready")) return undefined;
    if (this.#looking !== undefined) return this.#looking;
    const nowMs = driver.now().monotonicMs;
    if (nowMs < this.#lookAgainMs) return undefined;
    this.#lookAgainMs = nowMs + this.#settings.delayMs;
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
  get ready(): number {
    return this.#isFounded ? this.#members.filter(({ state }) => state === "ready").length : 0;
  }

  /** Why no lease can be had. */
  whyNot(): LeaseholdError {
    if (this.#fault !== undefined) return this.#fault;
    const errors = this.#members.map((_, store) => {
      const refusal = this.refusal(store);
      return refusal?.kind === "failed" ? refusal.error : undefined;
    });
    return noMajority(this.size, this.majority, this.ready, errors);
  }

  /**
   * Reads what every store says of the farm, founds it if nobody has, tells stores what they do not know yet, and lets those
   * in that have waited long enough.
   *
   * @throws LeaseholdError `CONFIG_MISMATCH`
   */
  *look(): Protocol<void> {
    for (let looks = 0; looks < looksMax; looks++) {
      const sights = yield* this.#read();
      const { now } = yield lookAtClocks;
      const plan = planFarm(
        this.#members.map(({ traits }) => traits.name),
        sights,
      );
      if (plan.kind === "unfounded") {
        for (const member of this.#members)
          if (member.state === "unknown" && member.id !== "") member.error = waits(member);
        return;
      }
      const bounded: Founded = { ...plan, ...this.#bounds(plan) };
      const ripe = this.#await(bounded, sights, now.monotonicMs);
      const next = this.#admission(bounded, ripe);
      const { agreed, conflicts } = yield* this.#tell(next ?? bounded, sights);
      if (agreed >= this.majority && next === undefined) {
        this.#isFounded = true;
        return;
      }
      // Somebody else wrote, or the newcomers are members now: there is more to be told.
      if (conflicts === 0 && agreed < this.majority) return;
    }
  }

  *#read(): Protocol<Sight[]> {
    const { answers } = yield {
      kind: "ask",
      requests: this.#members.map(() => ({ op: "read", register: farmRegister })),
      timeoutMs: this.#settings.delayMs,
      enough: () => false,
    };
    return this.#members.map((member, store): Sight => {
      const sight = sightOf(answers[store], member);
      if (sight.kind === "silent") {
        // One that counts goes on doing so: silence is no reason to distrust what it will say.
        if (member.state !== "ready") [member.state, member.error] = ["unknown", sight.error];
      } else if (member.id !== sight.id) {
        [member.id, member.state, member.readyAtMs] = [sight.id, "unknown", Infinity];
      }
      return sight;
    });
  }

  #bounds({ leaseMsMax, delayMsMax }: Founded) {
    return {
      leaseMsMax: Math.max(leaseMsMax, this.#settings.leaseMsMax),
      delayMsMax: Math.max(delayMsMax, this.#settings.delayMs),
    };
  }

  /** Sets when stores that may have forgotten count again; which of the newcomers have waited long enough. */
  #await(plan: Founded, sights: readonly Sight[], nowMs: number): number[] {
    const graceMs = faults.forgottenStoreCounts ? 0 : plan.leaseMsMax + delaysOfGrace * plan.delayMsMax;
    const waitMs = stretched(graceMs, this.#settings.clockRateError);
    this.#members.forEach((member, store) => {
      const sight = sights[store]!;
      if (sight.kind === "silent" || member.state === "ready") return;
      if (plan.members.includes(store) && isReady(sight.cell, sight.id, member.traits)) return;
      // A bound that has grown since does not matter: leases that long were not taken from this store before it forgot.
      if (member.readyAtMs === Infinity)
        member.readyAtMs = nowMs + Math.max(0, waitMs - member.traits.upMs());
      member.state = "recovering";
    });
    return plan.newcomers.filter((store) => this.#members[store]!.readyAtMs <= nowMs);
  }

  /**
   * The farm with the newcomers in it, in a generation that no lease knows yet. A majority of the others has to learn of it before
   * the newcomers themselves do.
   */
  #admission(plan: Founded, ripe: readonly number[]): Founded | undefined {
    const ids = this.#members.map(({ id }) => id);
    const others = plan.farm.filter((id) => ids.includes(id));
    // The place of a store that was never seen cannot be told from a newcomer's.
    const isPlain =
      others.length + plan.newcomers.length === this.size && ripe.length === plan.newcomers.length;
    if (ripe.length === 0 || !isPlain) return undefined;
    const farm = [...others, ...ripe.map((store) => ids[store]!)].toSorted();
    return { ...plan, farm, generation: plan.generation + 1 };
  }

  /** Writes the farm into each member that does not say so yet. */
  *#tell(plan: Founded, sights: readonly Sight[]): Protocol<{ agreed: number; conflicts: number }> {
    const { now } = yield lookAtClocks;
    const cells = this.#members.map((member, store): FarmCell | undefined => {
      const sight = sights[store]!;
      if (!plan.members.includes(store) || sight.kind === "silent") return undefined;
      const isOver = isReady(sight.cell, sight.id, member.traits) || member.readyAtMs <= now.monotonicMs;
      const { farm, generation, leaseMsMax, delayMsMax } = plan;
      const state = isOver || member.state === "ready" ? "ready" : "recovering";
      return { id: sight.id, state, generation, farm, leaseMsMax, delayMsMax };
    });
    const requests = cells.map((cell, store) => this.#requestFor(cell, sights[store]!, store));
    const { answers } = yield {
      kind: "ask",
      requests,
      timeoutMs: this.#settings.delayMs,
      enough: () => false,
    };
    let agreed = 0;
    cells.forEach((cell, store) => {
      if (cell === undefined) return;
      if (requests[store] !== undefined && answers[store]?.kind !== "written") return;
      agreed += 1;
      const member = this.#members[store]!;
      member.generation = cell.generation;
      member.state = cell.state;
    });
    return { agreed, conflicts: answers.filter((answer) => answer?.kind === "conflict").length };
  }

  #requestFor(cell: FarmCell | undefined, sight: Sight, store: number): StoreRequest | undefined {
    if (cell === undefined) return undefined;
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

function isReady(cell: FarmCell | undefined, id: string, traits: StoreTraits): boolean {
  return cell?.id === id ? cell.state === "ready" : traits.durable;
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
