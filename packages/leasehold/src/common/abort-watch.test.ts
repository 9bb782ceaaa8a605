import { expect, test, vi } from "vitest";
import { unwatchAbort, watchAbort } from "./abort-watch.js";

test("a signal has one listener however many callers wait for it, and none when nobody does", () => {
  const controller = new AbortController();
  const added = vi.spyOn(controller.signal, "addEventListener");
  const removed = vi.spyOn(controller.signal, "removeEventListener");
  const runs = Array.from({ length: 100 }, () => vi.fn<() => void>());
  for (const run of runs) watchAbort(controller.signal, run);
  expect(added).toHaveBeenCalledTimes(1);
  for (const run of runs.slice(1)) unwatchAbort(controller.signal, run);
  expect(removed).not.toHaveBeenCalled();
  unwatchAbort(controller.signal, runs[0]!);
  expect(removed).toHaveBeenCalledTimes(1);
  controller.abort();
  for (const run of runs) expect(run).not.toHaveBeenCalled();
});

test("a caller that comes after the abort is called at once, and leaves no listener", () => {
  const signal = AbortSignal.abort();
  const added = vi.spyOn(signal, "addEventListener");
  const run = vi.fn<() => void>();
  watchAbort(signal, run);
  expect([run.mock.calls.length, added.mock.calls.length]).toEqual([1, 0]);
  unwatchAbort(signal, run);
});

test("every waiting caller is called once", () => {
  const controller = new AbortController();
  const runs = Array.from({ length: 3 }, () => vi.fn<() => void>());
  for (const run of runs) watchAbort(controller.signal, run);
  controller.abort();
  for (const run of runs) expect(run).toHaveBeenCalledTimes(1);
  unwatchAbort(controller.signal, runs[0]!);
});
