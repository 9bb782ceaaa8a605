// A service whose own processes are the members of the cluster, so nothing else has to run. Start it three
// times:
//
//   node embedded-member.mjs a & node embedded-member.mjs b & node embedded-member.mjs c &
//
// In production each runs on a machine of its own. Further copies of the service need not be members: they
// `open` the leases as clients, as in leader.mjs.
import { setTimeout as sleep } from "node:timers/promises";
import { startMember } from "leasehold";

const id = process.argv[2] ?? "a";
const [a, b, c] = (process.env.MEMBERS ?? "127.0.0.1:7411,127.0.0.1:7412,127.0.0.1:7413").split(",");

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

const member = await startMember({
  id,
  members: { a, b, c }, // these three options are the same on every member
  ttlMax: process.env.TTL_MAX ?? "15s",
  maxClockSkew: process.env.MAX_CLOCK_SKEW ?? "500ms",
});
// A restarted member has lost its promises, so it does not vote for a little more than ttlMax.
console.log(
  `${id} listens on ${member.address}, votes in ${(member.status().readyInMs / 1_000).toFixed(1)} s`,
);

// `member.leases` may be used at once. The campaign waits until a majority votes.
await member.leases.lead(
  "service/scheduler",
  async (lease) => {
    console.log(`${id} leads with token ${lease.token}`);
    while (!lease.signal.aborted) {
      lease.assertHeld(100);
      await sleep(20); // one piece of work
    }
  },
  { signal: stop.signal },
);
await member.close();
console.log(`${id} has stopped`);
