import type { HolderHint, ResourceHint } from "../../lease/types.js";

/** A lease as `-o json` and `-o ndjson` write it. `remainingMs` is an upper bound at the time of asking. */
export interface LeaseView {
  readonly resource: string;
  readonly state: HolderHint["state"];
  readonly holder?: string;
  readonly token?: string;
  readonly remainingMs?: number;
  readonly confirmed?: boolean;
  readonly label?: string;
}

export function leaseView({
  resource,
  state,
  holder,
  token,
  remainingMs,
  confirmed,
  label,
}: ResourceHint): LeaseView {
  return {
    resource,
    state,
    ...(holder !== undefined && { holder }),
    ...(token !== undefined && { token: String(token) }),
    ...(remainingMs !== undefined && { remainingMs: Math.round(remainingMs) }),
    ...(confirmed !== undefined && { confirmed }),
    ...(label !== undefined && { label }),
  };
}

/** `yes` when a whole majority said the same; a hint is never more than a hint. */
export function confirmedText(confirmed: boolean | undefined): string {
  return confirmed === true ? "confirmed" : "tentative";
}
