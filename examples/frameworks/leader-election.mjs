// Leader election with the callbacks of Kubernetes' client-go. Unlike there, the leader has stopped, by its
// own clocks, before another starts, and the resource can check its token.
import { open } from "leasehold";
import { work } from "./work.mjs";

async function runLeaderElection(leases, name, { signal, onStartedLeading, onStoppedLeading, onNewLeader }) {
  const observe = async () => {
    let known;
    for await (const { state, holder } of leases.leader(name, { signal }))
      if (state === "held" && holder !== known) onNewLeader((known = holder));
  };
  const lead = async (lease) => {
    try {
      await onStartedLeading(lease);
    } finally {
      onStoppedLeading(); // the lease is released after this, unless it is lost
    }
  };
  await Promise.all([observe(), leases.lead(name, lead, { signal })]);
}

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
await runLeaderElection(leases, "controllers/main", {
  signal: stop.signal,
  onStartedLeading: async (lease) => {
    while (!lease.signal.aborted) await work("reconcile", lease);
  },
  onStoppedLeading: () => console.log("stopped leading"),
  onNewLeader: (holder) => console.log(`${holder === leases.self ? "this process" : holder} leads`),
});
await leases.close();
