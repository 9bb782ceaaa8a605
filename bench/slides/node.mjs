// One node of the cluster, in a process of its own: it acquires leases of its own and releases them, a given
// number at a time, as fast as it can or at a given rate. It is a member of Flease, or a client of ZooKeeper.
// Its parent controls it by messages and gets an answer to each.
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

/** Runs `inFlight` loops, each as fast as it can, until the next order. */
function asFastAsPossible(inFlight, { signal }) {
  const loop = async () => {
    while (!signal.aborted) await pair();
  };
  for (let index = 0; index < inFlight; index += 1) void loop();
}

/**
 * Starts `perSecond` operations a second, regardless of their results and with at most `inFlight` at a time,
 * until the next order.
 */
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
