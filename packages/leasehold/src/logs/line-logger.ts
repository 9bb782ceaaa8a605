import { LeaseholdError } from "../lease/errors.js";
import { type LogFormat, type LogLevel, logFormats, logLevels } from "../runtime/event-log.js";
import type { LogEvent, Logger } from "../runtime/logger.js";

export interface LoggerOptions {
  /**
   * `"json"`: one object per line, with `level`, `ts` (ISO 8601, UTC), `event`, `msg`, and the event's
   * fields. `"text"`: the same in a form for people, without the fields. Default `"json"`.
   */
  readonly format?: LogFormat | undefined;
  /** The minimum level of lines; audit lines are always written. Default `"info"`. */
  readonly level?: LogLevel | undefined;
  /** Receives each line, without a line feed. Default: writes it to standard error. */
  readonly write?: ((line: string, level: LogLevel) => void) | undefined;
  /** Milliseconds since 1970. Default: the system clock. */
  readonly nowMs?: (() => number) | undefined;
}

/** A logger whose level can be changed. */
export interface LineLogger extends Required<Logger> {
  level: LogLevel;
}

/** Control characters, which could begin another line or control a terminal. */
const controls = /[\p{Cc}\u2028\u2029]/gu;

/** As `createLogger` of `leasehold/logs`. */
export function lineLogger(options: LoggerOptions = {}): LineLogger {
  const { format = "json", level = "info", nowMs = Date.now } = options;
  const { write = (line) => void process.stderr.write(`${line}\n`) } = options;
  const known = (value: string, all: readonly string[], name: string): void => {
    if (!all.includes(value))
      throw new LeaseholdError("INVALID_CONFIG", `${name} is ${JSON.stringify(value)}: ${all.join(", ")}`);
  };
  known(format, logFormats, "the format of logs");
  known(level, logLevels, "the level of logs");
  const lineOf = format === "json" ? jsonLine : textLine;
  const at = (of: LogLevel) => (message: string, event: LogEvent) => {
    const isWanted = logLevels.indexOf(of) >= logLevels.indexOf(logger.level) || event?.audit === true;
    if (isWanted) write(lineOf(of, new Date(nowMs()).toISOString(), message, event), of);
  };
  const logger: LineLogger = {
    level,
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
  return logger;
}

function jsonLine(level: LogLevel, ts: string, msg: string, event: LogEvent): string {
  const { event: id, ...fields } = event;
  return JSON.stringify({ level, ts, event: id, msg, ...fields });
}

function textLine(level: LogLevel, ts: string, msg: string, { audit, event: id }: LogEvent): string {
  const kind = audit === true ? "audit" : level;
  return `${ts} ${kind.padEnd(5)} ${id}: ${msg.replace(controls, " ")}`;
}
