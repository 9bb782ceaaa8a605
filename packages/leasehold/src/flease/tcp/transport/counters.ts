import { authCauses } from "../../../runtime/security/auth-fault.js";
import { frameErrorCauses } from "../wire/frame-error.js";

/**
 * All names of `transport.counters`, present from the start. `docs/internals/wire-calls.md` explains each.
 */
export const counterNames = [
  "connections.opened",
  "connections.closed",
  "connections.replaced",
  "connections.silent",
  "dials.failed",
  "handshakes.timedOut",
  "handshakes.givenUp",
  "messages.sent",
  "messages.received",
  "messages.dropped.congested",
  "messages.dropped.closed",
  "reads.putOff",
  "batches.received",
  "writes",
  "bytes.sent",
  "bytes.received",
  "calls.sent",
  "calls.answered",
  "calls.refused",
  "answers.dropped",
  "rejects.sent.version",
  "rejects.sent.cluster",
  "rejects.sent.config",
  "rejects.sent.view",
  "rejects.sent.duplicate",
  "rejects.sent.notAdmitted",
  "rejects.sent.full",
  "rejects.sent.badFrame",
  "rejects.sent.unauthenticated",
  "rejects.sent.forbidden",
  "rejects.sent.twin",
  "rejects.received",
  ...authCauses.map((cause) => `auth.refused.${cause}` as const),
  ...frameErrorCauses.map((cause) => `frames.refused.${cause}` as const),
] as const;

export type CounterName = (typeof counterNames)[number];

export type Counters = Record<CounterName, number>;

export function newCounters(): Counters {
  return Object.fromEntries(counterNames.map((name) => [name, 0])) as Counters;
}
