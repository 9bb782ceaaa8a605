import type { Timers } from "../../../common/ports.js";
import type { Transport } from "./transport.js";
import type { Logger } from "../../../runtime/logger.js";

/** Delay between two attempts. */
const listenAgainMs = 1_000;

/**
 * Listens at the address of a former transport of this process. A member that does not listen is
 * unreachable, so this retries until it succeeds or is no longer wanted.
 */
export async function listenAgain(
  transport: Transport,
  address: string,
  isWanted: () => boolean,
  timers: Timers,
  logger: Logger,
): Promise<void> {
  while (isWanted()) {
    try {
      await transport.listen(address);
      return;
    } catch (error) {
      if (!isWanted()) return;
      logger.error(`cannot listen on ${address} any more, and tries again: ${String(error)}`);
      await new Promise<void>((resolve) => timers.after(listenAgainMs, resolve));
    }
  }
}
