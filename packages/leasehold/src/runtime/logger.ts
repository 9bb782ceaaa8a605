/** The event behind a log line, for programs: `docs/log-events.md` lists the ids and their fields. */
export interface LogEvent {
  /** A stable id, such as `member-lost`. */
  readonly event: string;
  /** The line belongs to the audit trail: who has done what. */
  readonly audit?: boolean;
  readonly [field: string]: string | number | boolean | undefined;
}

/**
 * The target of the library's messages. `console` fits, and so do winston and `createLogger` of
 * `leasehold/logs`; pino takes the arguments the other way round. Default: silence.
 */
export interface Logger {
  debug?(message: string, event: LogEvent): void;
  info(message: string, event: LogEvent): void;
  warn(message: string, event: LogEvent): void;
  error(message: string, event: LogEvent): void;
}

/** Discards all messages: a library does not print unless it was given a target. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
