// Moves the keys of a prefix from one etcd or core to another while clients write: node move-keys.mjs FROM TO PREFIX
// FROM and TO are host:port, without TLS. Needs etcdctl 3.4 or later. docs/moving.md says what is kept and what not.
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const env = { ...process.env, ETCDCTL_API: "3" };
const [from, to, prefix] = process.argv.slice(2);
if (!prefix) throw new Error("usage: node move-keys.mjs FROM TO PREFIX");

async function etcdctl(endpoint, ...words) {
  const { stdout } = await run("etcdctl", ["--endpoints", endpoint, ...words], { env, maxBuffer: 2 ** 30 });
  return stdout;
}

async function look(endpoint) {
  const { header, kvs = [] } = JSON.parse(await etcdctl(endpoint, "get", prefix, "--prefix", "-w", "json"));
  return { revision: Number(header.revision), keys: new Map(kvs.map((each) => [each.key, each])) };
}

/** All keys of the source stand there with their values, and no others. */
async function isSame() {
  const [source, target] = await Promise.all([look(from), look(to)]);
  const differs = [...source.keys].some(([key, { value }]) => target.keys.get(key)?.value !== value);
  return !differs && source.keys.size === target.keys.size;
}

async function untilSame(what) {
  for (let tries = 0; !(await isSame()); tries += 1) {
    if (tries === 120) throw new Error(`${what}: ${from} and ${to} still differ after a minute`);
    await sleep(500);
  }
  console.log(`${what}: ${from} and ${to} have the same below ${prefix}`);
}

if ((await look(to)).keys.size > 0) throw new Error(`${to} has keys below ${prefix} already`);
const mirror = spawn("etcdctl", ["--endpoints", from, "make-mirror", "--prefix", prefix, to], {
  env,
  stdio: ["ignore", "ignore", "inherit"],
});
let died = false;
mirror.once("exit", () => (died = true));
try {
  console.log("copying, and following what is written; stop the programs that write, then press Enter");
  const input = createInterface({ input: process.stdin });
  await new Promise((resolve) => input.once("line", resolve).once("close", resolve));
  input.close();
  await untilSame("copied");
  if (died) throw new Error("etcdctl make-mirror has ended");
} finally {
  mirror.kill();
}

// A copy hangs on no lease: it would stay for ever, and say that somebody is there who is not.
const source = await look(from);
const leased = [...source.keys.values()].filter(({ lease }) => lease);
for (const { key } of leased) await etcdctl(to, "del", "--", Buffer.from(key, "base64").toString());
console.log(`${leased.length} keys that hang on leases were not moved: their programs make them anew`);

// Whoever compares revisions, as fencing tokens are compared, must never be given smaller ones.
let { revision } = await look(to);
while (revision <= source.revision) {
  const puts = Array.from({ length: Math.min(256, source.revision - revision + 1) }, () =>
    fetch(`http://${to}/v3/kv/put`, {
      method: "POST",
      body: JSON.stringify({ key: Buffer.from("moved").toString("base64") }),
    }).then((answer) => {
      if (!answer.ok) throw new Error(`${to} answers ${answer.status}`);
      return answer.arrayBuffer();
    }),
  );
  await Promise.all(puts);
  ({ revision } = await look(to));
}
await etcdctl(to, "del", "moved");
console.log(`revisions go on: ${from} is at ${source.revision}, ${to} above it`);
