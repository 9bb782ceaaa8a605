import type { MemberReport, MemberStatus } from "../../packages/leasehold/src/flease/tcp/types.js";

/**
 * A member that is ready. Its type requires each new field here, so that code that shows the field has a
 * value to show.
 */
const ready: MemberStatus = {
  id: "a",
  address: "h:1",
  cluster: "test",
  view: 1,
  incarnation: "0".repeat(32),
  state: "ready",
  readyInMs: 0,
  resources: 0,
  waiters: 0,
  ttlMaxMs: 15_000,
  maxClockSkewMs: 500,
  peers: [],
  clients: 0,
  clientsQueuedBytes: 0,
  counters: {},
  cpuMs: 0,
  rssBytes: 0,
};

/** The report of a reachable member: ready, except for the fields given. */
export function reportOf(given: Partial<MemberStatus>): MemberReport {
  const status = { ...ready, ...given };
  return { id: status.id, address: status.address, reachable: true, status };
}
