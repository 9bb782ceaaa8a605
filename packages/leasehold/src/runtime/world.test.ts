import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, vi } from "vitest";
import { incarnation, realWorld } from "./world.js";

// This clock is replaced by fake timers.
vi.mock("node:perf_hooks", async (original) => ({
  ...(await original<object>()),
  get performance() {
    return globalThis.performance;
  },
}));

/** Virtual time: if the process paused between two calls, their deadlines would be in a different order. */
async function inVirtualTime(body: () => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  try {
    await body();
  } finally {
    vi.useRealTimers();
  }
}

it("runs calls in the order of their deadlines, and no cancelled ones", () =>
  inVirtualTime(async () => {
    const { timers } = realWorld();
    const calls: string[] = [];
    const note = (name: string, delayMs: number) => timers.after(delayMs, () => calls.push(name));
    note("late", 30);
    note("soon", 5);
    const cancelled = note("cancelled", 10);
    note("middle", 15);
    note("at once", -1);
    cancelled.cancel();
    cancelled.cancel();
    await vi.advanceTimersByTimeAsync(60);
    expect(calls).toEqual(["at once", "soon", "middle", "late"]);
  }));

it("never calls early", async () => {
  const { clock, timers } = realWorld();
  const delaysMs = [0.3, 1, 1.7, 5, 15, 30];
  const earlyMs = delaysMs.map((delayMs) => {
    const deadlineMs = clock.monotonicMs() + delayMs;
    return new Promise<number>((resolve) => {
      timers.after(delayMs, () => resolve(Math.max(0, deadlineMs - clock.monotonicMs())));
    });
  });
  expect(await Promise.all(earlyMs)).toEqual(delaysMs.map(() => 0));
});

it("lets a call schedule and cancel others", () =>
  inVirtualTime(async () => {
    const { timers } = realWorld();
    const calls: string[] = [];
    const victim = timers.after(20, () => calls.push("victim"));
    timers.after(1, () => {
      calls.push("first");
      victim.cancel();
      timers.after(1, () => calls.push("second"));
    });
    await vi.advanceTimersByTimeAsync(50);
    expect(calls).toEqual(["first", "second"]);
  }));

it("keeps one timeout for all calls, and continues after one that throws", () =>
  inVirtualTime(async () => {
    const { timers } = realWorld();
    const calls: number[] = [];
    for (let index = 0; index < 1000; index += 1) timers.after(1000 + index, () => calls.push(index));
    expect(vi.getTimerCount()).toBe(1);
    timers.after(500, () => {
      throw new Error("a mistake in a call");
    });
    expect(vi.getTimerCount()).toBe(1);
    expect(() => vi.advanceTimersByTime(600)).toThrow("a mistake in a call");
    await vi.advanceTimersByTimeAsync(5000);
    expect(calls).toHaveLength(1000);
    expect(vi.getTimerCount()).toBe(0);
  }));

it("arms no timeout beyond the maximum of setTimeout, which would fire at once", () => {
  const spy = vi.spyOn(globalThis, "setTimeout");
  const { timers } = realWorld();
  const calls = [2 ** 40, Infinity].map((delayMs) => timers.after(delayMs, () => {}));
  const delaysMs = spy.mock.calls.map(([, delayMs]) => delayMs);
  const timeouts = spy.mock.results.map((result) => result.value as NodeJS.Timeout);
  spy.mockRestore();
  for (const call of calls) call.cancel();
  for (const timeout of timeouts) clearTimeout(timeout);
  expect(delaysMs).toEqual([2 ** 31 - 1]);
});

it("does not keep the process alive", () => {
  const timeouts: NodeJS.Timeout[] = [];
  const setTimeoutBefore = globalThis.setTimeout;
  const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms: number) => {
    const timeout = setTimeoutBefore(run, ms);
    timeouts.push(timeout);
    return timeout;
  }) as typeof setTimeout);
  const timer = realWorld().timers.after(60_000, () => {});
  spy.mockRestore();
  expect(timeouts).toHaveLength(1);
  expect(timeouts[0]!.hasRef()).toBe(false);
  timer.cancel();
  clearTimeout(timeouts[0]);
});

it("reads both clocks and draws numbers from 0 to below 1", () => {
  const { clock, random } = realWorld();
  const beforeMs = Date.now();
  const wallMs = clock.wallMs();
  expect(wallMs).toBeGreaterThan(beforeMs - 50);
  expect(wallMs).toBeLessThan(Date.now() + 50);
  const first = clock.monotonicMs();
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(first);
  for (let index = 0; index < 1000; index += 1) {
    const number = random.next();
    expect(number >= 0 && number < 1).toBe(true);
  }
});

it("draws incarnations of 64 bits", () => {
  const drawn = new Set(Array.from({ length: 1000 }, incarnation));
  expect(drawn.size).toBe(1000);
  for (const text of drawn) expect(text).toMatch(/^[0-9a-f]{16}$/);
});

it("reads arrived data before it times out calls, when it is late", async () => {
  const { timers } = realWorld();
  const order: string[] = [];
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [socket] = (await accepted) as [typeof client];
  const answered = new Promise<void>((resolve) => {
    client.on("data", () => {
      order.push("the answer");
      resolve();
    });
  });
  const ranOut = new Promise<void>((resolve) => {
    timers.after(10, () => {
      order.push("its time");
      resolve();
    });
  });
  socket.write("here it is");
  const untilMs = performance.now() + 100;
  while (performance.now() < untilMs);
  await Promise.all([answered, ranOut]);
  expect(order).toEqual(["the answer", "its time"]);
  client.destroy();
  server.close();
});
