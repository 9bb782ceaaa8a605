// Workers, of which one leads and the others stand by. On SIGTERM the leader first finishes what it is doing,
// and then another takes over at once. If the leader is killed, another takes over as soon as its lease has
// expired.
//
//   node leader.mjs & node leader.mjs & node leader.mjs &
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";

const say = (text) => console.log(`${process.pid}: ${text}`);
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
say("standing by");

await leases.lead(
  "examples/scheduler",
  async (lease) => {
    say(`leads with token ${lease.token}`);
    // The signal aborts when the lease is lost, and also when this process is asked to stop.
    while (!lease.signal.aborted) {
      lease.assertHeld(100); // the job below takes less than this
      await runOneJob();
    }
    // When this process is asked to stop, the lease is held until this function returns, so there is time to
    // clean up. When the lease was lost instead, assertHeld throws; `lead` treats that as the end after a
    // loss, and campaigns again.
    lease.assertHeld();
    await saveProgress();
    say("handed over");
  },
  { signal: stop.signal },
);
await leases.close();

async function runOneJob() {
  await sleep(20);
}

async function saveProgress() {
  await sleep(20);
}
