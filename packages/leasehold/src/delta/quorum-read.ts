import { LeaseholdError } from "../lease/errors.js";
import { cellOf, type CellOrError, isCell, readCells } from "./cell.js";
import type { Protocol, Resumption } from "./effects.js";
import type { FarmView, Listing, ProtocolEnvironment, HolderView } from "./lease-protocol.js";
import type { Observations } from "./observations.js";
import { leaseRegister, resourceOf } from "./record/registers.js";
import { holderViewOf } from "./holder-view.js";
import type { StoreAnswer } from "./store.js";

/**
 * Registers per listing of a store: as many as one watch follows. If a store has more, the listing is
 * incomplete.
 */
export const listedMax = 100_000;

/** Reads a resource's cells at all stores into `cells` until there are enough. */
export function* readAll(
  farm: FarmView,
  resource: string,
  cells: (CellOrError | undefined)[],
  timeoutMs: number,
  enough: () => boolean,
): Protocol<Resumption> {
  const register = leaseRegister(resource);
  const take = (answers: readonly (StoreAnswer | undefined)[]) =>
    answers.forEach((answer, store) => {
      if (answer !== undefined) cells[store] ??= cellOf(answer, resource, farm.nameOf(store));
    });
  const step = yield {
    kind: "ask",
    requests: Array.from({ length: farm.size }, () => ({ op: "read", register })),
    timeoutMs,
    enough: (answers) => {
      take(answers);
      return enough();
    },
  };
  take(step.answers);
  return step;
}

/** Reads every store's view of a resource; waits for none longer than δ. */
export function* lookAtFarm(
  { farm, settings }: ProtocolEnvironment,
  observations: Observations,
  resource: string,
  timeoutMs: number,
): Protocol<HolderView> {
  const cells: (CellOrError | undefined)[] = [];
  const { now } = yield* readAll(farm, resource, cells, Math.min(timeoutMs, settings.delayMs), () => false);
  observeAll(observations, resource, cells, now.monotonicMs);
  return holderViewOf(farm, resource, cells, observations, now.monotonicMs);
}

/** Lists the leases below a prefix at every store. */
export function* listFarm(
  { farm, settings }: ProtocolEnvironment,
  observations: Observations,
  prefix: string,
  timeoutMs: number,
): Protocol<Listing> {
  const { now, answers } = yield {
    kind: "ask",
    requests: Array.from({ length: farm.size }, () => ({
      op: "list",
      prefix: leaseRegister(prefix),
      registersMax: listedMax,
    })),
    timeoutMs: Math.min(timeoutMs, settings.delayMs),
    enough: () => false,
  };
  const errors: (LeaseholdError | undefined)[] = [];
  const byResource = new Map<string, (CellOrError | undefined)[]>();
  answers.forEach((answer, store) => {
    if (answer?.kind === "failed") errors[store] = answer.error;
    if (answer?.kind === "registers" && !isWhole(answer)) errors[store] = tooWide;
    if (answer?.kind !== "registers") return;
    for (const [register, cells] of answer.registers) {
      const resource = resourceOf(register);
      // A register that this store does not list was never written there.
      const seen = byResource.get(resource) ?? answers.map(absentIn);
      seen[store] = readCells(cells, resource, farm.nameOf(store));
      byResource.set(resource, seen);
    }
  });
  const held: { resource: string; holderView: HolderView }[] = [];
  for (const [resource, cells] of byResource) {
    observeAll(observations, resource, cells, now.monotonicMs);
    const holderView = holderViewOf(farm, resource, cells, observations, now.monotonicMs);
    if (holderView.state === "held") held.push({ resource, holderView });
  }
  return { held, answered: answers.map(isWhole), errors };
}

const tooWide = new LeaseholdError(
  "WATCH_TOO_WIDE",
  `a store has ${listedMax} resources or more below the prefix, including free ones`,
);

/** Whether the store listed everything below the prefix. */
function isWhole(answer: StoreAnswer | undefined): boolean {
  return answer?.kind === "registers" && answer.registers.size < listedMax;
}

const absent: CellOrError = { content: undefined, record: undefined };

function absentIn(answer: StoreAnswer | undefined): CellOrError | undefined {
  return isWhole(answer) ? absent : undefined;
}

function observeAll(
  observations: Observations,
  resource: string,
  cells: readonly (CellOrError | undefined)[],
  nowMs: number,
): void {
  cells.forEach((cell, store) => {
    if (isCell(cell) && cell.record !== undefined) observations.see(resource, store, cell.record, nowMs);
  });
}
