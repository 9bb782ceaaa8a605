import { getOrInsert } from "../common/maps.js";
import { LogLimit } from "./log-limit.js";
import type { LogEvent, Logger } from "./logger.js";

export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

export const logFormats = ["json", "text"] as const;
export type LogFormat = (typeof logFormats)[number];

/** One kind of log line. */
export interface EventDefinition {
  readonly level: LogLevel;
  /** An audit line, which says who has done what. It is written at every log level. */
  readonly isAudit?: true;
  readonly fields: readonly string[];
  readonly help: string;
}

export type EventCatalogue = Readonly<Record<string, EventDefinition>>;

/** One value for each field of an event; `undefined` if it is unknown. */
export type EventFields<All extends EventCatalogue, Id extends keyof All> = {
  readonly [Field in All[Id]["fields"][number]]: string | number | boolean | undefined;
};

/** Logs a catalogue's events. */
export class EventLog<All extends EventCatalogue> {
  readonly logger: Logger;
  readonly #events: All;
  readonly #nowMs: () => number;
  /** One limit for each event: causes chosen by strangers must not silence other events. */
  readonly #limits = new Map<string, LogLimit>();

  /** @param nowMs the steady clock */
  constructor(events: All, logger: Logger, nowMs: () => number) {
    this.logger = logger;
    this.#events = events;
    this.#nowMs = nowMs;
  }

  log<Id extends keyof All & string>(id: Id, message: string, fields: EventFields<All, Id>): void {
    const { level, isAudit }: EventDefinition = this.#events[id]!;
    const given = Object.entries<LogEvent[string]>(fields).filter(([, value]) => value !== undefined);
    const event: LogEvent = {
      event: id,
      ...(isAudit === true && { audit: true }),
      ...Object.fromEntries(given),
    };
    this.logger[level]?.(message, event);
  }

  /**
   * Logs an event that others can trigger, at most once a minute for each cause, with the number of
   * suppressed lines.
   */
  limited<Id extends keyof All & string>(
    id: Id,
    cause: string,
    message: string,
    fields: EventFields<All, Id>,
  ): void {
    const line = getOrInsert(this.#limits, id, () => new LogLimit()).line(cause, message, this.#nowMs());
    if (line !== undefined) this.log(id, line, fields);
  }
}
