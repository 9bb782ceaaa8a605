import type { HolderHint, ResourceHint } from "../lease/types.js";
import type { HolderView } from "./lease-protocol.js";

/** What stores told of a resource, in the form that programs see. */
export function holderHintOf({ state, confirmed, record, remainingMs }: HolderView): HolderHint {
  if (state === "unknown") return { state };
  if (state === "free" || record === undefined) return { state: "free", confirmed };
  const { writer, epoch, label } = record;
  return {
    state,
    confirmed,
    holder: writer,
    token: epoch,
    remainingMs,
    ...(label !== undefined && { label }),
  };
}

export function resourceHintOf(resource: string, holderView: HolderView): ResourceHint {
  return { resource, ...holderHintOf(holderView) };
}
