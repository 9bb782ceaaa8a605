// A worker of BullMQ. Only one worker at a time works for a customer, even when the queue delivers a job
// twice.
import { DelayedError, Worker } from "bullmq";
import { open } from "leasehold";
import { work } from "./work.mjs";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
const connection = { port: Number(process.env.REDIS_PORT ?? 6379), maxRetriesPerRequest: null };

const worker = new Worker(
  "mails",
  async (job, bullToken) => {
    const lease = await leases.tryAcquire(`customers/${job.data.customer}`);
    if (lease === undefined) {
      await job.moveToDelayed(Date.now() + 200, bullToken); // another worker works for this customer: retry later
      throw new DelayedError();
    }
    try {
      await work(`${job.data.customer} ${job.data.mail}`, lease);
    } finally {
      await lease.release();
    }
  },
  { connection, concurrency: 3 },
);

process.once("SIGTERM", async () => {
  await worker.close(); // waits for the jobs that have started
  await leases.close();
});
