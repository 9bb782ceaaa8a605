import type { HolderHint, JsonValue, MemberView, ResourceHint } from "../../lease/types.js";
import { shortTime } from "../output/present.js";
import type { Cell } from "../output/table.js";

/**
 * A lease as `-o json` and `-o ndjson` write it. `remainingMs` is an upper bound at the time of the query.
 */
export interface LeaseView {
  readonly resource: string;
  readonly state: HolderHint["state"];
  readonly holder?: string;
  readonly token?: string;
  readonly remainingMs?: number;
  readonly confirmed?: boolean;
  readonly label?: string;
  readonly data?: JsonValue;
}

export function leaseView({
  resource,
  state,
  holder,
  token,
  remainingMs,
  confirmed,
  label,
  data,
}: ResourceHint): LeaseView {
  return {
    resource,
    state,
    ...(holder !== undefined && { holder }),
    ...(token !== undefined && { token: String(token) }),
    ...(remainingMs !== undefined && { remainingMs: Math.round(remainingMs) }),
    ...(confirmed !== undefined && { confirmed }),
    ...(label !== undefined && { label }),
    ...(data !== undefined && { data }),
  };
}

/** The state of a member or store, in words. */
export function stateCell({ state, reason, readyInMs = 0 }: MemberView): Cell {
  if (state === "ready") return { text: state, style: "green" };
  if (state === "recovering")
    return { text: `recovering, ready in ${shortTime(readyInMs)}`, style: "yellow" };
  return { text: state === "unreachable" ? `${state}: ${reason ?? "no answer"}` : state, style: "red" };
}

/** `yes` if a majority agreed; even then it is only a hint. */
export function confirmedText(confirmed: boolean | undefined): string {
  return confirmed === true ? "confirmed" : "tentative";
}
