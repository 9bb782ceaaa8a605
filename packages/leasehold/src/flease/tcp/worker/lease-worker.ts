import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { keptAlive } from "../../../common/keep-alive.js";
import { openFleaseClient } from "../client.js";
import { realWorld } from "../../../runtime/world.js";
import type { LogLevel } from "../../../runtime/event-log.js";
import type { LogEvent, Logger } from "../../../runtime/logger.js";
import { LeaseServer } from "./lease-server.js";
import { plainError } from "./messages.js";
import type { FromWorker, ToWorker, WorkerOrders } from "./messages.js";
import { SharedThreads } from "../../threads.js";
import { sharedMonotonicMs } from "./steady-clock.js";

/**
 * The renewing thread, from its start: opens a client of the cluster and serves the leases of the program.
 */

/** Interval at which the other thread is sent this thread's clock reading. */
const noteClockEveryMs = 100;

async function main(port: MessagePort): Promise<void> {
  const { addresses, options, threads: buffer, busyMsMax } = workerData as WorkerOrders;
  const post = (message: FromWorker) => port.postMessage(message);
  const logAt = (level: LogLevel) => (message: string, event: LogEvent) =>
    post({ type: "log", level, message, event });
  const logger: Logger = {
    debug: logAt("debug"),
    info: logAt("info"),
    warn: logAt("warn"),
    error: logAt("error"),
  };
  const world = realWorld(sharedMonotonicMs);
  try {
    const opening = () => openFleaseClient(addresses, { ...options, logger }, world);
    const node = await keptAlive(world.keepAlive, opening);
    const { provider: flease } = node;
    const threads = new SharedThreads(buffer);
    const server = new LeaseServer({ flease, world, now: () => node.now(), threads, busyMsMax, post });
    server.noteClock();
    const clock = setInterval(() => server.noteClock(), noteClockEveryMs);
    port.on("message", (message: ToWorker) => {
      if (message.type !== "close") {
        server.receive(message);
        return;
      }
      clearInterval(clock);
      void flease.close().then(() => port.close());
    });
    const { maxClockSkewMs, clockRateError } = node.peer.settings;
    const clocks = { maxClockSkewMs, clockRateError };
    post({ type: "opened", holder: flease.holder, guarantees: flease.guarantees, clocks });
  } catch (error) {
    post({ type: "failed", error: plainError(error) });
    port.close();
  }
}

// Importing this file outside of a worker does nothing.
if (parentPort !== null) void main(parentPort);
