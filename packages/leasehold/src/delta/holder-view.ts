import { LeaseholdError } from "../lease/errors.js";
import { dataField } from "../lease/tenure-data.js";
import type { HolderHint, ResourceHint } from "../lease/types.js";
import { type CellOrError, isCell } from "./cell.js";
import type { FarmView, HolderView, StoreView } from "./lease-protocol.js";
import type { Observations } from "./observations.js";

const silence = new LeaseholdError("STORE_UNAVAILABLE", "it did not answer in time");

/** The combined view of a resource from a farm's cells. */
export function holderViewOf(
  farm: FarmView,
  resource: string,
  cells: readonly (CellOrError | undefined)[],
  observations: Observations,
  nowMs: number,
): HolderView {
  const stores = Array.from({ length: farm.size }, (_, store): StoreView => {
    const cell = cells[store];
    if (!isCell(cell)) return { kind: "silent", error: cell?.error ?? silence };
    const { record } = cell;
    if (record?.state !== "held") return { kind: "answered", record, live: false, remainingMs: 0 };
    const remainingMs = observations.untilOverMs(resource, store, record, nowMs);
    return { kind: "answered", record, live: remainingMs > 0, remainingMs };
  });
  const answered = stores.filter((store) => store.kind === "answered");
  const top = foremost(answered.filter(({ live }) => live));
  const free = answered.filter(({ live }) => !live).length;
  if (top !== undefined && (top.votes >= farm.majority || answered.length >= farm.majority)) {
    if (free < farm.majority)
      return {
        state: "held",
        confirmed: top.votes >= farm.majority,
        record: top.holderView.record,
        remainingMs: top.holderView.remainingMs,
        stores,
      };
  }
  const isFree = free >= farm.majority || (top === undefined && answered.length >= farm.majority);
  return { state: isFree ? "free" : "unknown", confirmed: isFree, remainingMs: 0, stores };
}

/** The live tenure with the most votes, and its record that lasts longest. */
function foremost<S extends Extract<StoreView, { kind: "answered" }>>(
  live: readonly S[],
): { readonly votes: number; readonly holderView: S } | undefined {
  let best: { votes: number; holderView: S } | undefined;
  for (const { record } of live) {
    const same = live.filter(
      (other) => other.record?.writer === record?.writer && other.record?.epoch === record?.epoch,
    );
    if (best !== undefined && same.length <= best.votes) continue;
    best = { votes: same.length, holderView: same.toSorted((a, b) => b.remainingMs - a.remainingMs)[0]! };
  }
  return best;
}

/** The view of a resource as a public hint. */
export function holderHintOf({ state, confirmed, record, remainingMs }: HolderView): HolderHint {
  if (state === "unknown") return { state };
  if (state === "free" || record === undefined) return { state: "free", confirmed };
  const { writer, epoch, label, data } = record;
  return {
    state,
    confirmed,
    holder: writer,
    token: epoch,
    remainingMs,
    ...(label !== undefined && { label }),
    ...dataField(data),
  };
}

export function resourceHintOf(resource: string, holderView: HolderView): ResourceHint {
  return { resource, ...holderHintOf(holderView) };
}
