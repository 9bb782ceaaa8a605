import { EventEmitter } from "node:events";
import type { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { SharedThreads } from "../../threads.js";
import { LeaseManager } from "../../../lease/manager/lease-manager.js";
import { benchProvider } from "../../../../../../test/support/provider-bench.js";
import { VirtualWorld } from "../../../testing/virtual-world.js";
import { silent } from "../../../runtime/logger.js";
import type { FromWorker, ToWorker } from "./messages.js";
import { WorkerProvider } from "./worker-provider.js";

/** The program's side of a thread whose exit and answers are controlled by the test. */
function overThread(answer?: (asked: ToWorker) => FromWorker) {
  const world = new VirtualWorld();
  const thread: EventEmitter & { postMessage(asked: ToWorker): void } = Object.assign(new EventEmitter(), {
    postMessage(asked: ToWorker) {
      if (answer !== undefined) queueMicrotask(() => thread.emit("message", answer(asked)));
    },
  });
  const opened = {
    type: "opened",
    holder: "c.1",
    guarantees: benchProvider().provider.guarantees,
    clocks: { maxClockSkewMs: 10, clockRateError: 0 },
  } as const;
  const started = { worker: thread as unknown as Worker, threads: new SharedThreads() };
  const provider = new WorkerProvider(started, opened, world, silent);
  return { thread, provider, leases: new LeaseManager(provider, world) };
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

test("the program's side reports when to retry a refused attempt", async () => {
  const error = { code: "OVERLOADED", message: "too much" } as const;
  const { provider } = overThread((asked) => ({
    type: "answer",
    call: (asked as { call: number }).call,
    value: { kind: "failed", error, retryInMs: 1_000 },
  }));
  const request = { resource: "r", ttlMs: 900, timeoutMs: 100, contended: false, waiting: false };
  expect(await provider.attempt(request)).toMatchObject({ kind: "failed", error, retryInMs: 1_000 });
});
