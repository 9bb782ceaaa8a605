/** Where the library says what it notices. `console` fits, and so does a pino logger. Default: silence. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Says nothing: a library does not print unless it was given somewhere to print to. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
