// Takes counted and shared leases, one after the other, and writes a line for each look at a lease: its
// number, kind, resource and token, and the times between which it was held, in nanoseconds. The times are on
// the machine's steady clock and are read before the lease is checked, so that the lease was held at these
// times.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";

const [journal, ...urls] = process.argv.slice(2);
const leases = await open(...urls, { name: `p${process.pid}` });
const passing = new Set(["TIMEOUT", "NO_QUORUM", "LEASE_LOST", "CLOCK_SKEW", "OVERLOADED", "UNREACHABLE"]);

for (let number = 0; ; number += 1) {
  const chance = Math.random();
  const kind = chance < 0.5 ? "reader" : chance < 0.7 ? "writer" : "pool";
  const form =
    kind === "pool"
      ? { limit: 1 + Math.floor(Math.random() * 3) }
      : kind === "reader"
        ? { mode: "shared" }
        : {};
  try {
    const lease = await leases.acquire(kind === "pool" ? "pool" : "book/~rw", { wait: "3s", ...form });
    const from = process.hrtime.bigint();
    for (let looks = Math.floor(Math.random() * 6); looks >= 0; looks -= 1) {
      const until = process.hrtime.bigint();
      if (lease.remaining() === 0) break;
      appendFileSync(
        journal,
        `${process.pid} ${number} ${kind} ${lease.resource} ${lease.token} ${from} ${until}\n`,
      );
      await sleep(Math.random() * 20);
    }
    await lease.release();
  } catch (error) {
    if (!passing.has(error.code)) throw error;
  }
}
