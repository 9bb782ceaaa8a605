import { setTimeout as sleep } from "node:timers/promises";
import { type CoreFlags, startCore } from "../../entry/core.js";
import type { Logger } from "../../runtime/logger.js";
import { exitCode } from "../common/exit-codes.js";
import { sayError, sayLine } from "../output/say.js";
import { stopRequested } from "../common/stop-requested.js";

/** A clean end takes at most this long; then the process ends anyway. */
const closeMsMax = 5_000;

const logger: Logger = {
  info: (message) => void sayLine(message),
  warn: (message) => sayError(`warning: ${message}`),
  error: (message) => sayError(message),
};

/** `leasehold core`: one server, until a signal, or until it cannot go on. */
export async function core(flags: CoreFlags): Promise<number> {
  const stopped = stopRequested();
  const server = await startCore({ ...flags, logger });
  sayLine(`${server.name} (${server.id.toString(16)}) serves clients at ${server.clientUrls.join(",")}`);
  await Promise.race([stopped, server.failed]);
  await Promise.race([server.close(), sleep(closeMsMax)]);
  return exitCode("ok");
}
