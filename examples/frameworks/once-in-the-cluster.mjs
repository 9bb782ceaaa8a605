// Wraps the work of a scheduler that runs on every machine, so that only one of them does the work of each
// run. Afterwards the lease is detached, not released: it blocks the name until it expires, for machines
// whose clocks are late. The ttl must be longer than the difference between clocks, and shorter than the time
// to the next run.
import { open } from "leasehold";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");

export function onceInTheCluster(name, work) {
  return async () => {
    const lease = await leases.tryAcquire(`cron/${name}`);
    if (lease === undefined) return; // another machine is doing it or has just done it
    try {
      await work(name, lease);
    } finally {
      await lease.detach().catch(() => undefined); // rejects if the lease is lost; it then expires, too
    }
  };
}
