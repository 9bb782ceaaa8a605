// Moves the keys of a prefix from one etcd or core to another while clients write: node move-keys.mjs FROM TO
// PREFIX
// FROM and TO are host:port. With TLS the variables FROM_CACERT, FROM_CERT and FROM_KEY name files, and
// FROM_USER is name:password where authentication is on; TO_… are the same for the target. Needs etcdctl 3.4
// or later. docs/moving.md lists what is kept and what is not.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const [fromPlace, toPlace, prefix] = process.argv.slice(2);
if (!prefix) throw new Error("usage: node move-keys.mjs FROM TO PREFIX");
const [from, to] = [sideOf("FROM", fromPlace), sideOf("TO", toPlace)];

/**
 * The source or the target, with its options. A password is in the environment, where no list of processes
 * shows it.
 */
function sideOf(name, place) {
  const [cacert, cert, key, user] = ["CACERT", "CERT", "KEY", "USER"].map(
    (part) => process.env[`${name}_${part}`],
  );
  const given = Object.entries({ cacert, cert, key, user }).filter(([, value]) => value);
  const url = `${cacert ? "https" : "http"}://${place}`;
  const own = Object.fromEntries(given.map(([part, value]) => [`ETCDCTL_${part.toUpperCase()}`, value]));
  return {
    place,
    url,
    files: { cacert, cert, key },
    user,
    env: { ...process.env, ETCDCTL_API: "3", ...own },
  };
}

async function etcdctl({ url, env }, ...words) {
  const all = ["--endpoints", url, "--dial-timeout=10s", "--command-timeout=60s", ...words];
  const { stdout } = await run("etcdctl", all, { env, maxBuffer: 2 ** 30 });
  return stdout;
}

async function look(side) {
  const { header, kvs = [] } = JSON.parse(await etcdctl(side, "get", prefix, "--prefix", "-w", "json"));
  return { revision: Number(header.revision), keys: new Map(kvs.map((each) => [each.key, each])) };
}

/** Whether the target has all keys of the source with their values, and no others. */
async function isSame() {
  const [source, target] = await Promise.all([look(from), look(to)]);
  const differs = [...source.keys].some(([key, { value }]) => target.keys.get(key)?.value !== value);
  return !differs && source.keys.size === target.keys.size;
}

async function untilSame(what) {
  for (let tries = 0; !(await isSame()); tries += 1) {
    if (died) throw new Error("etcdctl make-mirror has ended");
    if (tries === 120) throw new Error(`${what}: ${fromPlace} and ${toPlace} still differ after a minute`);
    await sleep(500);
  }
  console.log(`${what}: ${fromPlace} and ${toPlace} have the same below ${prefix}`);
}

/**
 * With authentication, the source's certificate names its user: etcdctl 3.4 has no option for a mirror
 * target's user.
 */
function mirrorWords() {
  const files = Object.entries(to.files).filter(([, file]) => file);
  const tls = files.flatMap(([part, file]) => [`--dest-${part}`, file]);
  if (tls.length > 0) tls.push("--dest-insecure-transport=false");
  return ["--endpoints", from.url, "--dial-timeout=10s", "make-mirror", "--prefix", prefix, ...tls, to.url];
}

const agent = new (to.files.cacert ? https : http).Agent({
  keepAlive: true,
  ca: to.files.cacert && readFileSync(to.files.cacert),
});

/** Sends a request to the target's JSON API and returns the answer. */
async function ask(path, body, token) {
  const headers = token === undefined ? {} : { authorization: token };
  const asked = (to.files.cacert ? https : http).request(`${to.url}${path}`, {
    method: "POST",
    agent,
    headers,
  });
  asked.end(JSON.stringify(body));
  const [answer] = await once(asked, "response");
  const text = (await answer.toArray()).join("");
  if (answer.statusCode !== 200) throw new Error(`${toPlace} answers ${answer.statusCode}: ${text}`);
  return JSON.parse(text);
}

/**
 * Returns a function for many puts of a key. It uses JSON, unless the client has a certificate: etcd's JSON
 * gateway refuses certificates with a common name.
 */
async function putter() {
  const { user, files } = to;
  const byName = { ...to, env: { ...to.env, ETCDCTL_USER: "" } };
  if (files.cert) return { atOnce: 16, put: (key) => etcdctl(byName, "put", "--", key, "") };
  const name = user?.split(":", 1)[0];
  const login = user && { name, password: user.slice(name.length + 1) };
  const token = login && (await ask("/v3/auth/authenticate", login)).token;
  const coded = (key) => Buffer.from(key).toString("base64");
  return { atOnce: 256, put: (key) => ask("/v3/kv/put", { key: coded(key) }, token) };
}

let died = false;
if ((await look(to)).keys.size > 0) throw new Error(`${toPlace} has keys below ${prefix} already`);
const { atOnce, put } = await putter();
const mirror = spawn("etcdctl", mirrorWords(), { env: from.env, stdio: ["ignore", "ignore", "inherit"] });
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

// The copies belong to no lease. They would stay for ever, and claim that a process is alive which is not.
const source = await look(from);
const leased = [...source.keys.values()].filter(({ lease }) => lease);
for (const { key } of leased) await etcdctl(to, "del", "--", Buffer.from(key, "base64").toString());
console.log(`${leased.length} keys that hang on leases were not moved: their programs make them anew`);

// Clients that compare revisions, as fencing tokens are compared, must never see smaller ones.
let moved = `${prefix}moved`;
while (source.keys.has(Buffer.from(moved).toString("base64"))) moved += "+";
let { revision } = await look(to);
while (revision <= source.revision) {
  const count = Math.min(atOnce, source.revision - revision + 1);
  await Promise.all(Array.from({ length: count }, () => put(moved)));
  ({ revision } = await look(to));
}
await etcdctl(to, "del", "--", moved);
agent.destroy();
console.log(`revisions go on: ${fromPlace} is at ${source.revision}, ${toPlace} above it`);
