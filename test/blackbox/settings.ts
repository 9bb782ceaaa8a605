import { recoveryOf } from "../support/recovery.js";
import type { Task } from "./tasks.js";

/**
 * Settings of a run: the leases are short, so that much happens, with slack for a machine that others use
 * too.
 */
export const ttlMs = 1_500;
export const skewMs = 100;
export const rpcTimeoutMs = 200;

export const recoveryMs = recoveryOf({ ttlMaxMs: ttlMs, maxClockSkewMs: skewMs, rpcTimeoutMs });

/**
 * Correct clocks are within this of true time, so that two of them differ by less than ε, with slack for the
 * readings.
 */
export const offsetMsMax = 0.4 * skewMs;

export const resources = ["jobs/1", "jobs/2", "jobs/3"];
export const alone: readonly Task[] = resources.map((name) => ({ form: "exclusive", name }));

/** The other forms of lease: several holders of one lease, or several leases of one holder. */
export const forms: readonly Task[] = [
  { form: "shared", name: "catalogue/~rw", readers: 0.75 },
  { form: "counted", name: "seats", limits: [2, 2, 3] },
  { form: "several", names: ["accounts/1", "accounts/2", "accounts/3"], count: 2 },
  { form: "fair", name: "ramp" },
];

/** Ends a run that hangs. On a busy machine each wait may take minutes. */
export const waitMsMax = 600_000;

/** The port on which each member listens in its network namespace. */
export const memberPort = 7400;

export const cluster = "blackbox";
