import type { Timers } from "../../../common/ports.js";
import type { Transport } from "./transport.js";
import type { EventLog } from "../../../runtime/event-log.js";
import type { LogEvents } from "../../../runtime/log-events.js";

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
  events: Pick<EventLog<LogEvents>, "log">,
): Promise<void> {
  while (isWanted()) {
    try {
      await transport.listen(address);
      return;
    } catch (error) {
      if (!isWanted()) return;
      const text = `cannot listen on ${address} any more, and tries again: ${String(error)}`;
      events.log("listen-failed", text, { address, error: String(error) });
      await new Promise<void>((resolve) => timers.after(listenAgainMs, resolve));
    }
  }
}
