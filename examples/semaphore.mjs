// At most n at a time, by n leases: pool/0 to pool/n-1. Who has any of them has a place.
//
//   node semaphore.mjs & node semaphore.mjs & node semaphore.mjs &        two at a time
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
const lease = await acquirePlace(leases, "pool", 2, 60_000);
console.log(`has ${lease.resource}`);
lease.assertHeld(500);
await sleep(Number(process.env.WORK_MS ?? 200));
console.log(`leaves ${lease.resource}`);
await lease.release();
await leases.close();

/** Tries all places, beginning anywhere so that not all go for the first, then waits a second for one of them. */
async function acquirePlace(leases, pool, places, waitMs) {
  const end = performance.now() + waitMs;
  for (;;) {
    const first = Math.floor(Math.random() * places);
    for (let step = 0; step < places; step++) {
      const lease = await leases.tryAcquire(`${pool}/${(first + step) % places}`);
      if (lease !== undefined) return lease;
    }
    const wait = Math.min(1_000, end - performance.now());
    if (wait <= 0) throw new Error(`no place of ${pool} within ${waitMs} ms`);
    try {
      return await leases.acquire(`${pool}/${first}`, { wait });
    } catch (error) {
      if (error.code !== "TIMEOUT") throw error;
    }
  }
}
