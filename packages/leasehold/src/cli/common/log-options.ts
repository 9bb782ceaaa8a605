export { type LineLogger, lineLogger } from "../../logs/line-logger.js";
import { type LineLogger, lineLogger } from "../../logs/line-logger.js";
import type { LogFormat, LogLevel } from "../../runtime/event-log.js";
import { printErrorLine } from "./write.js";

/** The options as commander passes them. */
export interface LogFlags {
  readonly logFormat?: LogFormat | undefined;
  readonly logLevel?: LogLevel | undefined;
}

/** The log of a command; `undefined` if none was requested. */
export function requestedLogger({ logFormat, logLevel }: LogFlags): LineLogger | undefined {
  if (logFormat === undefined && logLevel === undefined) return undefined;
  return lineLogger({ format: logFormat ?? "text", level: logLevel, write: printErrorLine });
}

/** The log of a server. Default: warnings as text. */
export function serverLogger(flags: LogFlags): LineLogger {
  return requestedLogger(flags) ?? lineLogger({ format: "text", level: "warn", write: printErrorLine });
}
