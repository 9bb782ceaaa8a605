import { EventEmitter } from "node:events";
import type { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { SharedThreads } from "../../threads.js";
import { LeaseManager } from "../../../lease/manager/lease-manager.js";
import { benchProvider } from "../../../../test/support/provider-bench.js";
import { VirtualWorld } from "../../../testing/virtual-world.js";
import { silent } from "../../../runtime/logger.js";
import { WorkerProvider } from "./worker-provider.js";

/** The program's side of a thread whose end a test decides. */
function overThread() {
  const world = new VirtualWorld();
  const thread = Object.assign(new EventEmitter(), { postMessage: () => undefined });
  const opened = {
    type: "opened",
    holder: "c.1",
    guarantees: benchProvider().provider.guarantees,
    clocks: { maxClockSkewMs: 10, clockRateError: 0 },
  } as const;
  const started = { worker: thread as unknown as Worker, threads: new SharedThreads() };
  return { thread, leases: new LeaseManager(new WorkerProvider(started, opened, world, silent), world) };
}

test("when the thread dies, watches end with the error of all later calls", async () => {
  const { thread, leases } = overThread();
  const watch = leases.watch("");
  const waiting = watch.next();
  const asked = leases.list("");
  thread.emit("error", new Error("out of memory"));
  thread.emit("exit", 1);
  const died = { code: "CLOSED", message: expect.stringContaining("out of memory") as string };
  await expect(waiting).rejects.toMatchObject(died);
  await expect(asked).rejects.toMatchObject(died);
  expect(await watch.next()).toEqual({ done: true, value: undefined });
  await expect(leases.watch("").next()).rejects.toMatchObject(died);
});
