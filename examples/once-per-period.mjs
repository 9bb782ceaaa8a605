// A job that cron starts on every machine, and that is done once for each time at which it is due:
//
//   */5 * * * * node once-per-period.mjs
//
// A lease only ensures that no two machines do the job at the same time. Three rules ensure that they don't
// do it one after the other: the lease is named after the time at which the job is due, no machine begins
// later than `window` after it, and the machine that has done the job holds the lease until the window is
// over on every machine's clock. Other machines wait meanwhile. If the first crashes within the window, one
// of them does the job again from its beginning.
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";

const periodMs = 300_000; // as in the crontab
const windowMs = Number(process.env.WINDOW_MS ?? 30_000); // longer than cron and Node take to start
const skewMs = Number(process.env.SKEW_MS ?? 2_000); // more than any two system clocks differ

const due = new Date(process.argv[2] ?? Math.floor(Date.now() / periodMs) * periodMs);
const windowEnd = due.getTime() + windowMs;

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
try {
  const wait = Math.max(0, windowEnd - Date.now());
  await leases.using(`jobs/cleanup@${due.toISOString()}`, { wait }, async (lease) => {
    // Check only now: the wait may have been long, and the holder before us may have done the job.
    if (Date.now() >= windowEnd) return console.log("too late for this period");
    console.log(`begins with token ${lease.token}`);
    await cleanUp(lease);
    console.log("done");
    // Hold the lease until the window is over on every machine's clock. Rejects when the lease is lost.
    await sleep(Math.max(0, windowEnd + skewMs - Date.now()), undefined, { signal: lease.signal });
  });
} catch (error) {
  if (error.code !== "TIMEOUT" && error.code !== "LEASE_HELD") throw error;
  console.log("another has done it");
} finally {
  await leases.close();
}

async function cleanUp(lease) {
  for (let part = 0; part < 3; part++) {
    lease.assertHeld(200); // enough for the next part
    await sleep(Number(process.env.PART_MS ?? 50));
  }
}
