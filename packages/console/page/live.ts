import { signal } from "@preact/signals";
import type { EventView, GroundView, LeaseView, LiveMessage } from "../src/record/messages.js";

/** The page's state, updated from the server's stream. */

const eventsMax = 1_000;
/**
 * The connection counts as dead after this time without a message, even if the browser has not noticed. The
 * server sends a message every 2 s.
 */
const silentMsMax = 6_000;

export interface Start {
  readonly allowChanges: boolean;
  readonly version: string;
  readonly endpoints: string;
}

/** The state of the connection. `old`: what is shown may have changed since. */
export type Connection = "connecting" | "live" | "old";

export const start = signal<Start | undefined>(undefined);
export const ground = signal<GroundView | undefined>(undefined);
export const events = signal<readonly EventView[]>([]);
export const connection = signal<Connection>("connecting");
/** Why the server's own data may be out of date. */
export const trouble = signal<string | undefined>(undefined);
/** The number of all leases, the number before this part, and whether others follow it. */
export const counts = signal({ total: 0, before: 0 });
/** Incremented when the set of leases or one of them has changed, at most once a frame. */
export const version = signal(0);
/** When the last message arrived, by `performance.now()`. */
export const heardMs = signal(performance.now());

export const leases = new Map<string, LeaseView>();

/** Leases that have ended stay visible for a moment, so that rows do not vanish under the pointer. */
export const ended = new Map<string, number>();
const endedMs = 4_000;

/**
 * The server's clock minus ours. The greatest value is from the fastest message, so it is the best estimate.
 */
let offsetMs = Number.NEGATIVE_INFINITY;
let source: EventSource | undefined;
let isRaised = false;

/** The server's time now. */
export function serverNow(): number {
  return Date.now() + (Number.isFinite(offsetMs) ? offsetMs : 0);
}

/** Follows the leases whose names begin with `prefix` and come after `after`. */
export function follow(prefix: string, after: string): void {
  source?.close();
  offsetMs = Number.NEGATIVE_INFINITY;
  source = new EventSource(`/api/live?${new URLSearchParams({ prefix, after })}`);
  source.addEventListener("message", ({ data }: MessageEvent<string>) =>
    take(JSON.parse(data) as LiveMessage),
  );
  source.addEventListener("error", () => {
    connection.value = "old";
    // A refusal ends the source; a lost connection does not.
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => follow(prefix, after), 2_000);
  });
}

setInterval(() => {
  for (const [name, atMs] of ended) {
    if (performance.now() - atMs < endedMs) continue;
    ended.delete(name);
    leases.delete(name);
    raise();
  }
  if (connection.value === "live" && performance.now() - heardMs.value > silentMsMax)
    connection.value = "old";
}, 1_000);

function take(message: LiveMessage): void {
  offsetMs = Math.max(offsetMs, message.nowMs - Date.now());
  heardMs.value = performance.now();
  connection.value = "live";
  switch (message.type) {
    case "start":
      start.value = message;
      events.value = [];
      break;
    case "all":
      leases.clear();
      ended.clear();
      for (const lease of message.leases) leases.set(lease.name, lease);
      counts.value = message;
      raise();
      break;
    case "changes":
      for (const name of message.gone) ended.set(name, performance.now());
      for (const lease of message.held) {
        leases.set(lease.name, lease);
        ended.delete(lease.name);
      }
      counts.value = { ...counts.value, total: message.total };
      raise();
      break;
    case "ends":
      for (const [name, endsMs] of message.ends) {
        const lease = leases.get(name);
        const spanMs = Math.max(lease?.spanMs ?? 0, endsMs - message.nowMs);
        if (lease !== undefined) leases.set(name, { ...lease, endsMs, spanMs });
      }
      break;
    case "ground":
      ground.value = message.ground;
      break;
    case "events": {
      const known = events.value.at(-1)?.number ?? 0;
      const fresh = message.events.filter(({ number }) => number > known);
      if (fresh.length > 0) events.value = [...events.value, ...fresh].slice(-eventsMax);
      break;
    }
    case "trouble":
      trouble.value = message.text;
      break;
  }
}

function raise(): void {
  if (isRaised) return;
  isRaised = true;
  requestAnimationFrame(() => {
    isRaised = false;
    version.value += 1;
  });
}
