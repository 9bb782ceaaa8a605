// The cost of clients of a gateway to three members, which are processes of their own: sessions with one
// lease each that are renewed, watches, and acquisitions. Prints one JSON object a line: figure, unit, value.
// Arguments: the number of sessions (10,000) and of watches (10,000).
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";
import { startCluster } from "./cluster.mjs";

const [sessions = 10_000, watches = 10_000] = process.argv.slice(2).map(Number);
const print = (figure, unit, value) =>
  console.log(JSON.stringify({ figure, unit, value: Number(value.toPrecision(4)) }));
const progress = (text) => process.stderr.write(`${text}\n`);
const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * q)];

progress("starting three members");
const cluster = await startCluster({ ttlMax: "15s", maxClockSkew: "100ms", rpcTimeout: "1s" });
const main = fileURLToPath(new URL("../packages/leasehold/dist/cli/main.js", import.meta.url));
const words = ["gateway", "--endpoints", cluster.urls.join(","), "--address", "127.0.0.1:0"];
const gateway = spawn(process.execPath, [main, ...words], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve) => {
  gateway.stdout.on("data", (text) => resolve(/http:\S+/.exec(String(text))[0]));
});
const { port } = new URL(url);

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
function ask(method, path, body) {
  const text = body === undefined ? "" : JSON.stringify(body);
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers, agent }, (answer) => {
      let all = "";
      answer.setEncoding("utf8").on("data", (more) => (all += more));
      answer.on("end", () => {
        if (answer.statusCode >= 300) reject(new Error(`${answer.statusCode} ${all}`));
        else resolve(all === "" ? undefined : JSON.parse(all));
      });
    });
    sent.on("error", reject).end(text);
  });
}

/** Runs `work` for each item, 64 at a time. Returns the time of each, in ms. */
async function all(items, work) {
  const tookMs = [];
  const left = items[Symbol.iterator]();
  const one = async () => {
    for (const item of left) {
      const begun = performance.now();
      await work(item);
      tookMs.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: 64 }, one));
  return tookMs;
}

const ticks = 100;
const stat = () =>
  readFileSync(`/proc/${gateway.pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
const cpuMs = () => ((Number(stat()[11]) + Number(stat()[12])) / ticks) * 1_000;
const residentBytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))[1]) * 1_024;

async function measured(name, items, work) {
  const before = { cpu: cpuMs(), at: performance.now() };
  const tookMs = await all(items, work);
  const seconds = (performance.now() - before.at) / 1_000;
  print(`${name}, a second`, "requests", items.length / seconds);
  print(`${name}, median`, "ms", quantile(tookMs, 0.5));
  print(`${name}, 99th of 100`, "ms", quantile(tookMs, 0.99));
  print(`${name}, processor time of the gateway`, "ms", (cpuMs() - before.cpu) / items.length);
}

try {
  const names = Array.from({ length: sessions }, (_, index) => `bench/${index}`);
  const empty = residentBytes();
  const held = [];
  progress(`${sessions} sessions with a lease each`);
  await measured("acquisitions", names, async (resource) => {
    held.push((await ask("POST", "/v1/leases", { resource, ttl: "10m" })).session);
  });
  print("memory of a session with a lease", "bytes", (residentBytes() - empty) / sessions);
  await measured("renewals", held, (session) => ask("POST", `/v1/sessions/${session}/renew`));

  progress(`${watches} watches of one name each`);
  const before = residentBytes();
  const streams = [];
  let told = 0;
  await all(names.slice(0, watches), (name) => {
    return new Promise((resolve, reject) => {
      const path = `/v1/watch?resource=${encodeURIComponent(name)}`;
      const sent = request({ host: "127.0.0.1", port, path, agent: false }, (answer) => {
        answer.on("data", (text) => {
          if (String(text).includes("event: free")) told += 1;
        });
        answer.on("error", () => undefined);
        resolve();
      });
      sent.on("error", reject).end();
      streams.push(sent);
    });
  });
  print("memory of a watch", "bytes", (residentBytes() - before) / streams.length);
  const begun = performance.now();
  await measured("releases that are watched", held, (session) => ask("DELETE", `/v1/sessions/${session}`));
  while (told < streams.length && performance.now() - begun < 60_000)
    await new Promise((resolve) => setTimeout(resolve, 20));
  print("watches that were told of the release", "of all", told / streams.length);
  print("the last was told after", "s", (performance.now() - begun) / 1_000);
  for (const stream of streams) stream.destroy();
} finally {
  gateway.kill();
  agent.destroy();
  await cluster.stop();
}
