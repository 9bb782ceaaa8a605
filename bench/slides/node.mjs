// One node of the cluster, in a process of its own: it takes leases of its own and gives them back, so many at a time, as fast as
// it can or as often as it is told. It is a member of Flease, or a client of ZooKeeper.
// Its parent says what to do by messages, and each is answered.
import { startMember } from "../../packages/leasehold/dist/index.js";
import { setTimeout as sleep } from "node:timers/promises";

const { id, member, zookeeper } = JSON.parse(process.argv[2]);
const leaseMs = 4_000;
const paceMs = 10;

async function join() {
  if (member !== undefined) {
    const started = await startMember({ id, ...member });
    return {
      leases: started.leases,
      ready: () => started.ready(),
      handled: () => {
        const { counters } = started.status();
        return counters["messages.sent"] + counters["messages.received"];
      },
    };
  }
  const { ZooKeeperNodes } = await import("../systems/zookeeper-nodes.mjs");
  const leases = await ZooKeeperNodes.connect(zookeeper, leaseMs);
  return { leases, ready: async () => {}, handled: () => 0 };
}

const node = await join();
let working = new AbortController();
let done = 0;
let failed = 0;
let turn = 0;

async function pair() {
  turn += 1;
  try {
    const lease = await node.leases.acquire(`${id}/${turn}`, { ttl: leaseMs });
    await lease.release();
    done += 1;
  } catch {
    failed += 1;
    await sleep(paceMs);
  }
}

/** Until another order comes: so many loops, each as fast as it can. */
function asFastAsPossible(inFlight, { signal }) {
  const loop = async () => {
    while (!signal.aborted) await pair();
  };
  for (let index = 0; index < inFlight; index += 1) void loop();
}

/** Until another order comes: so many a second, whatever becomes of them; no more than `inFlight` at a time. */
async function paced(perSecond, inFlight, { signal }) {
  const started = performance.now();
  let begun = 0;
  let flying = 0;
  while (!signal.aborted) {
    const due = ((performance.now() - started) / 1_000) * perSecond;
    for (; begun < due; begun += 1) {
      if (flying >= inFlight) continue;
      flying += 1;
      void pair().then(() => (flying -= 1));
    }
    await sleep(paceMs);
  }
}

const usage = () => {
  const { user, system } = process.cpuUsage();
  return { done, failed, cpuUs: user + system, handled: node.handled() };
};

process.on("message", ({ order, inFlight, perSecond }) => {
  if (order !== "usage") {
    working.abort();
    working = new AbortController();
  }
  if (order === "run" && perSecond === undefined) asFastAsPossible(inFlight, working);
  if (order === "run" && perSecond !== undefined) void paced(perSecond, inFlight, working);
  process.send(usage());
});
process.on("disconnect", () => process.exit());
await node.ready();
process.send("ready");
