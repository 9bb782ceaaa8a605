import { recoveryOf } from "../support/recovery.js";
import type { Task } from "./tasks.js";

/** The cluster of a run: short leases, so that there is much to see, with slack for a machine that others use too. */
export const ttlMs = 1_500;
export const skewMs = 100;
export const rpcTimeoutMs = 200;

export const recoveryMs = recoveryOf({ ttlMaxMs: ttlMs, maxClockSkewMs: skewMs, rpcTimeoutMs });

/** Clocks that are right lie within this of true time: two of them are then within ε, with slack for what reads them. */
export const offsetMsMax = 0.4 * skewMs;

export const resources = ["jobs/1", "jobs/2", "jobs/3"];
export const alone: readonly Task[] = resources.map((name) => ({ form: "exclusive", name }));

/** Each form of lease that several hold at once, or several at once. */
export const forms: readonly Task[] = [
  { form: "shared", name: "catalogue/~rw", readers: 0.75 },
  { form: "counted", name: "seats", limits: [2, 2, 3] },
  { form: "several", names: ["accounts/1", "accounts/2", "accounts/3"], count: 2 },
  { form: "fair", name: "ramp" },
];

/** Ends a run that hangs. On a busy machine everything that is waited for may take minutes. */
export const waitMsMax = 600_000;

/** The port that each member listens on, in its own network. */
export const memberPort = 7400;

export const cluster = "blackbox";
