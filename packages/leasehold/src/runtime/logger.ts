/** The target of the library's messages. `console` fits, and so does a pino logger. Default: silence. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Discards all messages: a library does not print unless it was given a target. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
