// Workers of a queue. Two workers never do the same job at the same time, and no job is lost when a worker
// dies. The queue is a shared folder here: a file is a job, and is moved to done/ when the job is done.
//
//   mkdir -p queue/done && touch queue/mail-1 queue/mail-2
//   node queue-worker.mjs & node queue-worker.mjs &
import { access, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";

const queue = process.env.QUEUE ?? "./queue";
const waiting = async () =>
  (await readdir(queue, { withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name);
const isWaiting = (job) =>
  access(join(queue, job)).then(
    () => true,
    () => false,
  );

await mkdir(join(queue, "done"), { recursive: true });
const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
for (let jobs = await waiting(); jobs.length > 0; jobs = await waiting()) {
  let isIdle = true;
  for (const job of jobs) {
    const lease = await leases.tryAcquire(`queue/${job}`, { ttl: process.env.TTL });
    if (lease === undefined) continue; // another worker has it
    try {
      // Check only now: the job may have been done between our look at the queue and the lease.
      if (!(await isWaiting(job))) continue;
      isIdle = false;
      await work(job, lease);
      lease.assertHeld(200); // for the next step, which marks the job as done
      await rename(join(queue, job), join(queue, "done", job));
      console.log(`${job} done, token ${lease.token}`);
    } catch (error) {
      if (error.code !== "LEASE_LOST") throw error;
      console.log(`${job} is another's now`);
    } finally {
      await lease.release();
    }
  }
  if (isIdle) await sleep(100 + Math.random() * 100); // other workers have the remaining jobs, and may crash
}
await leases.close();

async function work(job, lease) {
  console.log(`${job} begins`);
  for (let part = 0; part < 3; part++) {
    lease.assertHeld(200);
    await sleep(Number(process.env.PART_MS ?? 20));
  }
}
