// The cost of an acquisition with more members, when cells have three: messages, bytes and processor time of
// all processes, with 3, 9 and 30 members and one client. Also the cost of idle members. Arguments: counts of
// members (3 9 30).
import { setTimeout as sleep } from "node:timers/promises";
import { open } from "leasehold";
import { startCluster } from "./cluster.mjs";
import { rowOf } from "./results.mjs";

const settings = { ttlMax: "3s", maxClockSkew: "50ms", rpcTimeout: "500ms", cellSize: 3 };
const rounds = 5;
const roundMs = 1_500;
const idleMs = 8_000;
/**
 * The members share two cores and compile their code while they work, so a large number of them takes longer.
 */
const warmUpMs = (count) => 1_500 + 250 * count;
const widths = [512, 1];

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** The totals of all members and this client so far: resources used and messages sent. */
async function totals(cluster) {
  const { user, system } = process.cpuUsage();
  const members = await cluster.usage();
  return {
    membersUs: sum(members.map(({ cpuUs }) => cpuUs)),
    clientUs: user + system,
    // The sum counts the members' traffic with the client and the heartbeats between members.
    messages: sum(members.map(({ counters }) => counters["messages.sent"] + counters["messages.received"])),
    bytes: sum(members.map(({ counters }) => counters["bytes.sent"] + counters["bytes.received"])),
  };
}

/** Acquires and releases for `forMs`, `width` at a time. Returns the number of acquisitions. */
async function work(leases, width, forMs) {
  const until = performance.now() + forMs;
  let done = 0;
  const loop = async () => {
    while (performance.now() < until) {
      await (await leases.acquire(`cost/${width}/${done++}/${until}`)).release();
    }
  };
  await Promise.all(Array.from({ length: width }, loop));
  return done;
}

async function measure(count, print) {
  const ids = Array.from({ length: count }, (_, index) => `m${String(index).padStart(2, "0")}`);
  const cluster = await startCluster(settings, undefined, ids);
  const leases = await open(...cluster.urls, { name: "bench" });
  for (const width of widths) {
    await work(leases, width, warmUpMs(count));
    const looks = [];
    for (let round = 0; round < rounds; round += 1) {
      const [before, startedMs] = [await totals(cluster), performance.now()];
      const done = await work(leases, width, roundMs);
      const seconds = (performance.now() - startedMs) / 1_000;
      const after = await totals(cluster);
      const each = Object.keys(after).map((key) => [key, (after[key] - before[key]) / done]);
      looks.push({ perSecond: done / seconds, ...Object.fromEntries(each) });
    }
    const row = (figure, unit, of) =>
      print(
        rowOf(figure, "leasehold", unit, looks.map(of), { members: count, cellSize: 3, inFlight: width }),
      );
    row("cells: pairs rate", "pairs/s", ({ perSecond }) => perSecond);
    row("cells: messages a pair", "messages/pair", ({ messages }) => messages);
    row("cells: bytes a pair", "bytes/pair", ({ bytes }) => bytes);
    row("cells: CPU of all members", "µs/pair", ({ membersUs }) => membersUs);
    row("cells: CPU of the client", "µs/pair", ({ clientUs }) => clientUs);
  }
  await leases.close();
  // Wait until members have dropped their entries and are idle.
  await sleep(idleMs);
  const before = await cluster.usage();
  await sleep(idleMs);
  const after = await cluster.usage();
  const percents = after.map(({ cpuUs }, index) => (cpuUs - before[index].cpuUs) / 10 / idleMs);
  print(
    rowOf("cells: an idle member", "leasehold", "% of a core", percents, { members: count, cellSize: 3 }),
  );
  await cluster.stop();
}

export async function measureCost(counts) {
  const rows = [];
  for (const count of counts.length > 0 ? counts : [3, 9, 30]) {
    process.stderr.write(`${count} members\n`);
    await measure(count, (row) => {
      rows.push(row);
      console.log(JSON.stringify(row));
    });
  }
  return rows;
}
