import { monitorEventLoopDelay } from "node:perf_hooks";
import { decodeFarmCell, type FarmCell, mergeFarmCells } from "../delta/farm/farm-cell.js";
import { type FarmPlan, type FarmAnswer, planFarm } from "../delta/farm/farm-plan.js";
import { farmRegister, type StoreTraits } from "../delta/store.js";
import { LeaseholdError } from "../lease/errors.js";
import { type OpenedStore, type ProbeFinding, StoreUnfitError } from "./common/contract.js";
import type { FarmAddress, Scheme, StorePlace } from "./farm-address.js";
import { type Measurement, measureStore } from "./measure.js";
import { openingMs, openStore } from "./open.js";
import { type Proposal, propose } from "./proposal.js";

/** The resolution of the event loop's measured delay, ms. */
const loopResolutionMs = 5;

/** The results of examining one store. */
export interface StoreReport {
  readonly name: string;
  readonly findings: readonly ProbeFinding[];
  /** Why the store cannot be used at all, or not now. */
  readonly error?: LeaseholdError;
  readonly traits?: Pick<StoreTraits, "kind" | "durable" | "bytesMax" | "pollMs" | "delayMs">;
  /** Its marker. */
  readonly id?: string;
  /** The store's record of its farm; absent if it was never used. */
  readonly farm?: FarmCell;
  readonly measurement?: Measurement;
}

export interface FarmReport {
  readonly stores: readonly StoreReport[];
  readonly plan?: FarmPlan;
  /** Why these stores are not one farm. */
  readonly error?: LeaseholdError;
  /** The worst delay of this process's event loop, ms. */
  readonly loopMs: number;
  /** Absent if no store could be measured. */
  readonly proposal?: Proposal;
}

export interface ExamineOptions {
  /** The name of this process, as for leases. */
  readonly writer: string;
  /** How long to measure, ms. */
  readonly durationMs: number;
  /** Timeout for opening and probing each store, ms. */
  readonly timeoutMs: number;
  /** Called periodically during the measurement, with the number of operations so far. */
  readonly onProgress: (operations: number) => void;
}

/**
 * Probes and measures each store, and reads what it records about its farm. Neither creates nor changes a
 * farm.
 */
export async function examineFarm(address: FarmAddress, options: ExamineOptions): Promise<FarmReport> {
  const candidates = await Promise.all(address.places.map((place) => openForExamination(place, options)));
  try {
    const loop = monitorEventLoopDelay({ resolution: loopResolutionMs });
    loop.enable();
    const measured = await measureAll(candidates, options);
    loop.disable();
    const loopMs = Math.max(0, loop.max / 1e6 - loopResolutionMs);
    const stores = await Promise.all(
      candidates.map((candidate, index) => reportOf(candidate, measured[index]!)),
    );
    const examined = stores.flatMap(({ traits, measurement }, index) =>
      traits && measurement ? [{ traits, measurement, scheme: address.places[index]!.scheme }] : [],
    );
    return {
      stores,
      loopMs,
      ...planOf(stores),
      ...(examined.length > 0 && { proposal: propose(examined, loopMs) }),
    };
  } finally {
    await Promise.all(candidates.map(({ store }) => store?.close()));
  }
}

interface Candidate {
  readonly name: string;
  readonly scheme: Scheme;
  readonly store?: OpenedStore;
  readonly error?: LeaseholdError;
}

async function openForExamination(
  place: StorePlace,
  { writer, timeoutMs }: ExamineOptions,
): Promise<Candidate> {
  const { name, scheme } = place;
  const limitMs = openingMs([place], timeoutMs);
  const signal = AbortSignal.timeout(limitMs);
  const opening = openStore(place, { writer, signal });
  const late = new Promise<never>((_, reject) => {
    const error = new LeaseholdError("STORE_UNAVAILABLE", `${name}: it did not open within ${limitMs} ms`);
    signal.addEventListener("abort", () => reject(error), { once: true });
  });
  late.catch(() => undefined);
  try {
    return { name, scheme, store: await Promise.race([opening, late]) };
  } catch (error) {
    opening.then(
      (store) => store.close(),
      () => undefined,
    );
    return { name, scheme, error: asError(name, error) };
  }
}

async function measureAll(candidates: readonly Candidate[], { durationMs, onProgress }: ExamineOptions) {
  const endMs = performance.now() + durationMs;
  let operations = 0;
  const goOn = () => {
    onProgress((operations += 1));
    return performance.now() < endMs;
  };
  return Promise.all(
    candidates.map(async ({ name, store, error }): Promise<Pick<StoreReport, "measurement" | "error">> => {
      if (store === undefined) return error === undefined ? {} : { error };
      try {
        return { measurement: await measureStore(store, goOn) };
      } catch (failure) {
        return { error: asError(name, failure) };
      }
    }),
  );
}

async function reportOf(
  { name, store }: Candidate,
  measured: Pick<StoreReport, "measurement" | "error">,
): Promise<StoreReport> {
  if (store === undefined) {
    const findings = measured.error instanceof StoreUnfitError ? measured.error.findings : [];
    return { name, findings, ...measured };
  }
  const { kind, durable, bytesMax, pollMs, delayMs } = store.traits;
  const report = {
    name: store.traits.name,
    findings: store.findings,
    traits: { kind, durable, bytesMax, pollMs, delayMs },
  };
  const answer = await store.perform({ op: "read", register: farmRegister });
  if (answer.kind !== "cells")
    return { ...report, ...measured, ...(answer.kind === "failed" && { error: answer.error }) };
  try {
    const farm = mergeFarmCells(answer.cells.map(decodeFarmCell));
    return { ...report, ...measured, id: answer.id, ...(farm && { farm }) };
  } catch (error) {
    return { ...report, ...measured, id: answer.id, error: asError(name, error) };
  }
}

function planOf(stores: readonly StoreReport[]): Pick<FarmReport, "plan" | "error"> {
  const answers = stores.map(({ id, farm, error }): FarmAnswer =>
    id === undefined || (error !== undefined && farm === undefined)
      ? { kind: "silent", error: error ?? new LeaseholdError("STORE_UNAVAILABLE") }
      : { kind: "answered", id, cell: farm },
  );
  try {
    return {
      plan: planFarm(
        stores.map(({ name }) => name),
        answers,
      ),
    };
  } catch (error) {
    if (error instanceof LeaseholdError) return { error };
    throw error;
  }
}

function asError(name: string, error: unknown): LeaseholdError {
  if (error instanceof LeaseholdError) return error;
  return new LeaseholdError("STORE_UNAVAILABLE", `${name}: ${String(error)}`);
}
