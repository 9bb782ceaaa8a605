// A million leases that one client holds and renews: `list` and `watch` of them; then one member is killed
// with SIGKILL, restarted, and recovers while they are renewed. Prints one JSON object a line; exits with 1
// if a lease is lost. Arguments: the number of leases (1000000), their ttl in s (60), parts
// (watch,list,restart).
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { clusterStatus, open } from "leasehold";
import { startCluster } from "./cluster.mjs";

const self = fileURLToPath(import.meta.url);
const progress = (text) => process.stderr.write(`${text}\n`);
const print = (figure, unit, value, more = {}) =>
  console.log(JSON.stringify({ figure, unit, value: Number(value.toPrecision(4)), ...more }));

/**
 * The holder's process. Each name has a prefix for its thousand and a number, so that a part of the leases
 * can be listed.
 */
async function hold(urls, count) {
  const leases = await open(...urls, { name: "holder" });
  const held = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next++;
      held.push(await leases.acquire(`held/${Math.floor(index / 1_000)}/${index}`));
    }
  };
  await Promise.all(Array.from({ length: 512 }, worker));
  process.on("message", (asked) => {
    if (asked === "gc") globalThis.gc?.();
    let least = Infinity;
    for (const lease of held) least = Math.min(least, lease.remaining());
    const { heapUsed, rss } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const lost = held.filter((lease) => lease.remaining() === 0).length;
    process.send({ lost, least, heapUsed, rss, cpuUs: user + system });
  });
  process.on("disconnect", () => process.exit());
  process.send("holding");
}

/** Runs queries in another process, so that its memory can be measured. */
async function asks(urls, what) {
  const leases = await open(...urls, { name: "observer", role: "observer" });
  const startedMs = performance.now();
  let result;
  if (what === "list") {
    const listed = await leases.list("", { timeout: "120s" });
    result = { listed: listed.length, confirmed: listed.filter(({ confirmed }) => confirmed).length };
  } else {
    let first = 0;
    try {
      for await (const _ of leases.watch(what === "watch all" ? "" : "held/77/", {
        signal: AbortSignal.timeout(15_000),
      }))
        first += 1;
    } catch (error) {
      result = { error: error.code ?? error.name, says: error.message };
    }
    result = { ...result, told: first };
  }
  process.send({ tookMs: performance.now() - startedMs, rssMB: process.memoryUsage().rss / 1e6, ...result });
  process.disconnect();
}

const asked = async (urls, what) => {
  const child = fork(self, ["ask", JSON.stringify(urls), what]);
  const [answer] = await once(child, "message");
  return answer;
};

async function main(count, ttlS, parts) {
  const cluster = await startCluster({
    ttlMax: `${ttlS}s`,
    maxClockSkew: "200ms",
    rpcTimeout: "500ms",
    resourcesMax: 2_000_000,
  });
  const startedMs = performance.now();
  const holder = fork(self, ["hold", JSON.stringify(cluster.urls), String(count)], {
    execArgv: ["--expose-gc"],
  });
  await once(holder, "message");
  print("acquired in", "s", (performance.now() - startedMs) / 1_000, { count });
  const holders = async (what = "state") => {
    holder.send(what);
    return (await once(holder, "message"))[0];
  };
  const usage = async (title) => {
    const [state, members] = [await holders("gc"), await cluster.collected()];
    print(`${title}: leases lost`, "leases", state.lost, { leastLeftMs: Math.round(state.least) });
    print(`${title}: memory of the holder, rss`, "MB", state.rss / 1e6, {
      heapMB: Math.round(state.heapUsed / 1e6),
    });
    print(
      `${title}: memory of a member, rss`,
      "MB",
      Math.max(...members.map(({ rssBytes }) => rssBytes)) / 1e6,
      {
        heapMB: Math.round(Math.max(...members.map(({ heapBytes }) => heapBytes)) / 1e6),
      },
    );
    return state.lost;
  };
  let lost = await usage("held");
  if (parts.includes("watch")) {
    for (const what of ["watch all", "watch one of a thousand parts"]) {
      const { tookMs, ...more } = await asked(cluster.urls, what);
      print(what, "ms", tookMs, more);
    }
    lost += await usage("after the watches");
  }
  if (parts.includes("list")) {
    const { tookMs, ...more } = await asked(cluster.urls, "list");
    print("list", "s", tookMs / 1_000, more);
    lost += await usage("after the list");
  }
  if (parts.includes("restart")) {
    cluster.kill("b");
    await sleep(1_000);
    const killedMs = performance.now();
    cluster.servers[1].restart();
    progress("one member was killed and starts again; its recovery wait is as long as a lease");
    for (;;) {
      await sleep(2_000);
      const status = (await clusterStatus(...cluster.urls)).map(({ status, error }) => ({
        state: status?.state ?? error?.code,
        resources: status?.resources,
      }));
      const { least, lost: now } = await holders();
      const seconds = (performance.now() - killedMs) / 1_000;
      progress(
        `${seconds.toFixed(0)} s: ${JSON.stringify(status)}, least left ${Math.round(least)} ms, lost ${now}`,
      );
      if (status[1].state === "ready" && status[1].resources >= 0.999 * count) {
        print("a member restarted: ready, and knows all leases again, after", "s", seconds, { ttlS });
        break;
      }
      if (seconds > 4 * ttlS) {
        print("a member restarted: not ready after", "s", seconds, { status: JSON.stringify(status) });
        lost += 1;
        break;
      }
    }
    lost += await usage("after the restart");
  }
  holder.disconnect();
  await cluster.stop();
  process.exitCode = lost === 0 ? 0 : 1;
}

const [part, ...rest] = process.argv.slice(2);
if (part === "hold") await hold(JSON.parse(rest[0]), Number(rest[1]));
else if (part === "ask") await asks(JSON.parse(rest[0]), rest[1]);
else
  await main(Number(part ?? 1_000_000), Number(rest[0] ?? 60), (rest[1] ?? "watch,list,restart").split(","));
