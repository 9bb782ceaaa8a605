// At most n at a time: a counted lease.
//
//   node semaphore.mjs & node semaphore.mjs & node semaphore.mjs &        two at a time
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
const lease = await leases.acquire("pool", { limit: 2, wait: "1m" });
console.log(`has place ${lease.slot}`);
lease.assertHeld(500);
await sleep(Number(process.env.WORK_MS ?? 200));
console.log(`leaves place ${lease.slot}`);
await lease.release();
await leases.close();
