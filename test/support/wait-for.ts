import type { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";

const waitMsMax = 10_000;

/** Lets time pass in steps of a millisecond until the promise has settled. */
export async function waitFor<T>(world: VirtualWorld, promise: Promise<T>): Promise<T> {
  const seen = { isSettled: false };
  const settle = () => (seen.isSettled = true);
  promise.then(settle, settle);
  await world.settle();
  for (let passedMs = 0; !seen.isSettled && passedMs < waitMsMax; passedMs++) await world.advance(1);
  return promise;
}
