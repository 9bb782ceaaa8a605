/** The event behind a log line, for programs: `docs/log-events.md` lists the ids and their fields. */
export interface LogEvent {
  /** A stable id, such as `member-lost`. */
  readonly event: string;
  /** True for lines of the audit trail, which records who has done what. */
  readonly audit?: boolean;
  readonly [field: string]: string | number | boolean | undefined;
}

/**
 * Receives the library's messages. `console` fits, and so do winston and `createLogger` of `leasehold/logs`;
 * pino expects the arguments in the opposite order. Default: no messages.
 */
export interface Logger {
  debug?(message: string, event: LogEvent): void;
  info(message: string, event: LogEvent): void;
  warn(message: string, event: LogEvent): void;
  error(message: string, event: LogEvent): void;
}

/** Discards all messages: a library prints nothing unless it is given a logger. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
