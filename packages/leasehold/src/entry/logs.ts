/**
 * Logs: `leasehold/logs`. Log lines about a program's leases, for people and programs. `docs/log-events.md`
 * lists the events.
 */
import type { Leases } from "../lease/types.js";
import { logLeases as observe } from "../logs/lease-logs.js";
import { type LineLogger, lineLogger, type LoggerOptions } from "../logs/line-logger.js";
import type { Logger } from "../runtime/logger.js";
import { realWorld } from "../runtime/world.js";

export type { LineLogger, LoggerOptions } from "../logs/line-logger.js";
export type { LogFormat, LogLevel } from "../runtime/event-log.js";
export type { LogEvent, Logger } from "../runtime/logger.js";

/**
 * Creates a logger that writes lines, for the option `logger` and {@link logLeases}. Its `level` can be set
 * at any time. Audit lines are written at every level.
 *
 * @throws LeaseholdError `INVALID_CONFIG` for an unknown format or level.
 * @example
 * ```ts
 * import { open } from "leasehold";
 * import { createLogger, logLeases } from "leasehold/logs";
 *
 * const lines: string[] = [];
 * const logger = createLogger({ format: "json", write: (line) => lines.push(line) });
 * const leases = await open("memory:logged");
 * const stop = logLeases(leases, logger);
 * await leases.using("reports/nightly", () => undefined);
 * console.log(lines.map((line) => JSON.parse(line).event)); // [ 'lease-acquired', 'lease-released' ]
 * stop();
 * await leases.close();
 * ```
 */
export function createLogger(options: LoggerOptions = {}): LineLogger {
  return lineLogger(options);
}

/**
 * Logs the events of a participant's leases from now on: `lease-acquired`, `lease-released`, `lease-late`,
 * `lease-lost` and `lease-refused`, with resource, holder and token.
 *
 * @returns a function that stops it
 */
export function logLeases(leases: Leases, logger: Logger): () => void {
  return observe(leases, logger, realWorld().clock);
}
