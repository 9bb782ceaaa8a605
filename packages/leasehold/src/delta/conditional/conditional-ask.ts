import { type CellOrError, isCell } from "../cell.js";
import { encodeRecord } from "../record/codec.js";
import { lookAtClocks, type Protocol } from "../effects.js";
import type { AskResult, ProtocolEnvironment, HolderView } from "../lease-protocol.js";
import { readAll } from "../quorum-read.js";
import type { Observations } from "../observations.js";
import type { Asked, DeltaRecord } from "../record/record.js";
import { leaseRegister } from "../record/registers.js";
import { holderViewOf } from "../holder-view.js";
import type { StoreRequest } from "../store.js";

/**
 * Attempts to leave a request. The holder may renew between the read and the write, but it cannot do so every
 * time.
 */
const triesMax = 5;

/**
 * Leaves a request in the holder's own record, by compare-and-set, so that requests cost a holder nothing
 * until there is one: its next renewal finds content that it did not write, and reads. The record keeps its
 * timestamp, so that nobody has to wait longer for its end.
 */
export function* askHolder(
  environment: ProtocolEnvironment,
  observations: Observations,
  resource: string,
  asked: Asked,
  withinMs: number,
): Protocol<AskResult> {
  const { farm, settings } = environment;
  const begun = yield lookAtClocks;
  const endMs = begun.now.monotonicMs + withinMs;
  let last = begun.now;
  const register = leaseRegister(resource);
  const notified = new Set<number>();
  let first: HolderView | undefined;
  for (let tries = 0; ; tries += 1) {
    const cells: (CellOrError | undefined)[] = [];
    // A silent store must not use up the time for notifying the other stores.
    const lookMs = Math.min(settings.delayMs, (endMs - last.monotonicMs) / 2);
    const { now, cancelled } = yield* readAll(farm, resource, cells, lookMs, () => false);
    cells.forEach((cell, store) => {
      if (isCell(cell) && cell.record !== undefined)
        observations.see(resource, store, cell.record, now.monotonicMs);
    });
    const holderView = holderViewOf(farm, resource, cells, observations, now.monotonicMs);
    first ??= holderView;
    const holder = first.record;
    if (holder === undefined) return { holderView: first, stores: 0 };
    const requests = cells.map((cell, store): StoreRequest | undefined => {
      if (!isCell(cell) || !isOf(cell.record, holder)) return undefined;
      if (cell.record.asked?.broken === true || (cell.record.asked !== undefined && !asked.broken)) {
        notified.add(store);
        return undefined;
      }
      const next = encodeRecord({ ...cell.record, asked });
      return { op: "replace", register, id: farm.idOf(store), expected: cell.content, next };
    });
    const leftMs = endMs - now.monotonicMs;
    const isGivenUp = cancelled || tries >= triesMax || leftMs <= 0;
    if (isGivenUp || requests.every((request) => request === undefined))
      return { holderView: first, stores: notified.size };
    const timeoutMs = Math.min(settings.delayMs, leftMs);
    const written = yield { kind: "ask", requests, timeoutMs, enough: () => false };
    const { answers } = written;
    last = written.now;
    answers.forEach((answer, store) => {
      if (answer?.kind === "written") notified.add(store);
    });
    const isOver = last.monotonicMs >= endMs;
    if (isOver || answers.every((answer) => answer?.kind !== "conflict"))
      return { holderView: first, stores: notified.size };
  }
}

function isOf(record: DeltaRecord | undefined, holder: DeltaRecord): record is DeltaRecord {
  return record?.state === "held" && record.writer === holder.writer && record.epoch === holder.epoch;
}
