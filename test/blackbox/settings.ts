import { fleaseSettings } from "../../src/flease/settings.js";

/** The cluster of a run: short leases, so that there is much to see, with slack for a machine that others use too. */
export const ttlMs = 1_500;
export const skewMs = 100;
export const rpcTimeoutMs = 200;

const { waitWallMs, waitRateMs } = fleaseSettings({
  members: ["a", "b", "c"],
  ttlMaxMs: ttlMs,
  maxClockSkewMs: skewMs,
  rpcTimeoutMs,
});
/** How long a member's vote does not count after its start: until the slower of its clocks says so (section 3.7). */
export const recoveryMs = Math.max(waitWallMs, waitRateMs);

/** Clocks that are right lie within this of true time: two of them are then within ε, with slack for what reads them. */
export const offsetMsMax = 0.4 * skewMs;

export const resources = ["jobs/1", "jobs/2", "jobs/3"];

/** The port that each member listens on, in its own network. */
export const memberPort = 7400;

export const cluster = "blackbox";
