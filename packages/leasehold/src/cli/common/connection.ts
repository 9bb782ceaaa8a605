import { parseDuration } from "../../lease/duration.js";
import type { Leases } from "../../lease/types.js";
import { open } from "../../index.js";
import { type Settings, WAIT_DEFAULT, openOptions } from "./settings.js";
import { unlessAborted } from "../../common/abort-watch.js";
import type { Metrics } from "../../entry/metrics.js";
import { serveMetrics } from "./metrics.js";
import { few } from "../../common/lists.js";

/**
 * Opens the leases, uses them, and always closes them.
 *
 * @param signal cancels the opening; the promise rejects with its reason. Nothing is held then, and pending
 *   work ends with the process.
 */
export async function withLeases<T>(
  settings: Settings,
  use: (leases: Leases, metrics: Metrics | undefined) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const log = await loggingOf(settings);
  const options = openOptions(settings, log?.logger);
  // Metrics are served before the leases are open, so that probes of stores count, and are visible while they
  // fail.
  const found: { metrics?: Metrics } = {};
  const observe = (metrics: Metrics) => (found.metrics = metrics);
  const served = await serveMetrics(settings.metricsAddress, observe, log?.logger);
  try {
    const leases = await unlessAborted(open(...few(settings.endpoints), options), signal);
    try {
      log?.logLeases(leases, log.logger);
      found.metrics?.observe(leases);
      return await use(leases, found.metrics);
    } finally {
      await leases.close();
    }
  } finally {
    await served?.close();
  }
}

/** Loads the logging code, if the command should log. */
async function loggingOf({ log }: Settings) {
  if (Object.keys(log).length === 0) return undefined;
  const [{ requestedLogger }, { logLeases }] = await Promise.all([
    import("./log-options.js"),
    import("../../entry/logs.js"),
  ]);
  const logger = requestedLogger(log);
  return logger && { logger, logLeases };
}

/** The options of a command that waits for a lease. */
export interface WaitOptions {
  readonly wait?: string;
  readonly try?: boolean;
}

/** The minimum remaining wait, enough for one attempt. */
const WAIT_LEFT_MS_MIN = 1;

/**
 * The same for a command that waits for a lease: the wait begins here, and includes connecting to the members
 * or stores. An explicit `--wait` overrides `--timeout`: it may be longer because hundreds of commands start
 * at once, or shorter as a stricter limit.
 *
 * @param use receives the remaining wait, ms; 0 for a command that must not wait
 */
export function withLeasesInTurn<T>(
  settings: Settings,
  options: WaitOptions,
  signal: AbortSignal,
  use: (leases: Leases, waitMs: number) => Promise<T>,
): Promise<T> {
  const waitMs = options.try === true ? 0 : parseDuration(options.wait ?? WAIT_DEFAULT, "--wait");
  const begunMs = performance.now();
  const timeoutMs = options.wait === undefined || waitMs === 0 ? settings.timeoutMs : waitMs;
  const inTurn = (leases: Leases): Promise<T> => {
    const leftMs = waitMs - (performance.now() - begunMs);
    return use(leases, waitMs === 0 ? 0 : Math.max(WAIT_LEFT_MS_MIN, leftMs));
  };
  return withLeases({ ...settings, timeoutMs }, inTurn, signal);
}
