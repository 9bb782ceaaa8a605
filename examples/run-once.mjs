// A cron job that starts on every machine of a cluster and must be done once a day.
//
//   node run-once.mjs [YYYY-MM-DD]
//
// A lease decides who may work *now*. It does not record whether the work was done: if another machine's cron
// is three seconds late, the lease is free again and would be granted a second time. So there are two parts
// here. The lease keeps two machines from working at the same time. A marker, stored with the results under
// the day's date, records that the day is done. If a machine dies in the middle, there is no marker, and the
// next start does the day again.
import { access, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { open } from "leasehold";

const day = process.argv[2] ?? new Date().toISOString().slice(0, 10);
const results = process.env.RESULTS ?? "./nightly-results"; // shared by all machines; usually a table
const marker = join(results, `${day}.done`);

const isDone = () =>
  access(marker).then(
    () => true,
    () => false,
  );

async function work(lease) {
  for (const part of ["customers", "orders", "invoices"]) {
    lease.assertHeld(200); // before each step: is there enough time left for it?
    await writeFile(join(results, `${day}.${part}`), `${part} of ${day}\n`);
  }
}

await mkdir(results, { recursive: true });
const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
try {
  const lease = await leases.tryAcquire("jobs/nightly");
  if (lease === undefined) {
    console.log("another machine is at it");
  } else {
    try {
      // Check only now: before we had the lease, another machine may have been about to finish.
      if (await isDone()) {
        console.log(`${day} is done already`);
      } else {
        await work(lease);
        lease.assertHeld(200);
        // "wx" fails if the marker exists. In a database, write the marker and the results in one
        // transaction.
        await writeFile(marker, `token ${lease.token}\n`, { flag: "wx" });
        console.log(`${day} done, token ${lease.token}`);
      }
    } finally {
      await lease.release();
    }
  }
} finally {
  await leases.close();
}
