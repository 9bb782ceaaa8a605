import { expect, test } from "vitest";
import { renewalsUnderWayMax, RenewalQueue } from "./renewal-queue.js";

const renewal = (name: number) => ({ name, heapIndex: -1 });

test("renewals begin in the order in which their leases end, with bounded concurrency", () => {
  const queue = new RenewalQueue<ReturnType<typeof renewal>>();
  const count = renewalsUnderWayMax + 2;
  for (let each = 0; each < count; each += 1) queue.add(renewal(each), 10_000 - each, 3_000);
  for (let each = 0; each < renewalsUnderWayMax; each += 1) expect(queue.next()?.name).toBe(count - 1 - each);
  expect(queue.next()).toBeUndefined();
  queue.ended();
  expect(queue.next()?.name).toBe(1);
  expect([queue.waits, queue.mayBegin]).toEqual([true, false]);
});

test("a renewal that waits until half of its lease is over is late", () => {
  const queue = new RenewalQueue<ReturnType<typeof renewal>>();
  const first = renewal(1);
  queue.add(first, 10_000, 3_000);
  expect(queue.isLate(8_499)).toBe(false);
  expect(queue.isLate(8_500)).toBe(true);
  expect(queue.remove(first)).toBe(true);
  expect(queue.remove(first)).toBe(false);
  expect(queue.isLate(9_000)).toBe(false);
});
