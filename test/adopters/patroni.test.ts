import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CoreCluster, type CoreProcess } from "../core/support/core-cluster.js";
import { eventually } from "../support/built.js";
import { Authority } from "../support/pki.js";
import { PatroniNode, settings } from "./support/patroni.js";
import { Writers } from "./support/writers.js";

/** Debian's Patroni with three PostgreSQL servers, on a core of three servers with mutual TLS and a user. */

const authority = new Authority();
const tls = authority.issue(["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"]);
const user = "patroni";
const password = "a secret";
/** The time, in seconds, that a busy machine may add to a bound of Patroni. */
const slackS = 10;
const ttlS = settings.ttl + settings.loop_wait + slackS;
/**
 * A new leader of the core restarts the ttl of every lease, and on a busy machine the leader may change at
 * any time.
 */
const failoverS = ttlS + settings.ttl;

let core: CoreCluster;
let nodes: PatroniNode[];
let writers: Writers;

async function etcdctl(endpoints: string, ...words: string[]): Promise<string> {
  const files = ["--cacert", authority.caFile, "--cert", String(tls.cert), "--key", String(tls.key)];
  const all = ["--endpoints", endpoints, "--dial-timeout=20s", "--command-timeout=20s", ...files, ...words];
  const { stdout } = await promisify(execFile)("etcdctl", all, { env: { ...process.env, ETCDCTL_API: "3" } });
  return stdout;
}

const endpointOf = ({ endpoint }: CoreProcess) => `https://${endpoint}`;
const byRoot = (...words: string[]) =>
  etcdctl(core.servers.map(endpointOf).join(","), "--user=root:rootpw", ...words);

async function leaderOfCore(): Promise<CoreProcess> {
  for (;;) {
    for (const server of core.servers) {
      const text = await etcdctl(
        endpointOf(server),
        "--command-timeout=3s",
        "--dial-timeout=3s",
        "endpoint",
        "status",
        "-w",
        "json",
      ).catch(() => "");
      // JSON.parse would round 64-bit numbers.
      const [, member] = /"member_id":(\d+)/.exec(text) ?? [];
      const [, leader] = /"leader":(\d+)/.exec(text) ?? [];
      if (member !== undefined && member === leader) return server;
    }
  }
}

const nodeOf = (name: string) => nodes.find((node) => node.name === name)!;

/** Waits for a row acknowledged since this moment, and returns its node. */
async function primary(sinceMs = performance.now(), withinS = ttlS): Promise<PatroniNode> {
  try {
    const { node } = await eventually("a row", () => writers.last(sinceMs), withinS * 1_000);
    return nodeOf(node);
  } catch (error) {
    const said = [...nodes, ...core.servers].map(({ name, output }) => `${name}: ${output.slice(-3_000)}`);
    throw new Error(said.join("\n\n"), { cause: error });
  }
}

/** Waits until all nodes run, one as the primary and one as its synchronous standby. */
async function whole(): Promise<void> {
  let seen = "";
  try {
    await eventually("a whole cluster", async () => {
      await sleep(300);
      const listed = await nodes[0]!.list().catch(() => []);
      seen = JSON.stringify(listed);
      const running = listed.filter(({ state }) => state === "running" || state === "streaming");
      const roles = running.map(({ role }) => role).sort();
      return roles.join() === "leader,replica,sync_standby";
    });
  } catch (error) {
    throw new Error(`${seen}\n${nodes.map(({ output }) => output.slice(-2_000)).join("\n\n")}`, {
      cause: error,
    });
  }
}

beforeAll(async () => {
  const files = { "cert-file": tls.cert, "key-file": tls.key, "trusted-ca-file": authority.caFile };
  const flags = ["", "peer-"].flatMap((kind) => [
    ...Object.entries(files).flatMap(([name, file]) => [`--${kind}${name}`, String(file)]),
    `--${kind}client-cert-auth`,
  ]);
  core = await CoreCluster.create(3, { flags, scheme: "https" });
  for (const server of core.servers) server.start();
  const endpoints = core.servers.map(endpointOf).join(",");
  await eventually("the core answers", () => etcdctl(endpoints, "put", "a", "1").catch(() => undefined));
  for (const words of [
    ["user", "add", "root:rootpw"],
    ["user", "grant-role", "root", "root"],
    ["user", "add", `${user}:${password}`],
    ["role", "add", "service"],
    ["role", "grant-permission", "service", "readwrite", "/service/", "--prefix"],
    ["user", "grant-role", user, "service"],
    ["auth", "enable"],
  ])
    await etcdctl(endpoints, ...words);
  const given = { endpoints: core.servers.map(({ endpoint }) => endpoint), tls, user, password };
  nodes = [];
  for (const name of ["n1", "n2", "n3"]) nodes.push(await PatroniNode.create(name, given));
  for (const node of nodes) node.start();
  await whole();
  const listed = await nodes[0]!.list();
  const first = nodeOf(listed.find(({ role }) => role === "leader")!.name).client();
  await first.connect();
  await first.query("create table written (id text primary key)");
  await first.end();
  writers = new Writers(nodes);
});

afterEach(async () => {
  for (const server of core.servers) {
    if (server.isRunning) server.signal("SIGCONT");
    else server.start();
  }
  for (const node of nodes) if (!node.isRunning) node.start();
  await whole();
});

afterAll(async () => {
  await writers?.stop();
  for (const node of nodes ?? []) await node.dispose();
  await core?.[Symbol.asyncDispose]();
  authority.remove();
});

/** Checks that there were never two primaries, and that no acknowledged row is lost. */
async function isSafe(): Promise<void> {
  expect(writers.doubleWrites()).toEqual([]);
  expect(await writers.lost(await primary())).toEqual([]);
}

describe("Patroni", () => {
  test("keeps its keys where its user may write, and is refused elsewhere", async () => {
    const keys = await byRoot("get", "/service/adopters/", "--prefix", "--keys-only");
    expect(keys).toMatch("/service/adopters/leader");
    expect(keys).toMatch("/service/adopters/sync");
    const asPatroni = ["--user", `${user}:${password}`];
    await expect(etcdctl(endpointOf(core.servers[0]!), ...asPatroni, "put", "other", "x")).rejects.toThrow(
      "permission denied",
    );
  });

  test("switches over by patronictl", async () => {
    const old = await primary();
    const beganMs = performance.now();
    const standby = (await old.list()).find(({ role }) => role === "sync_standby")!.name;
    await old.patronictl("switchover", "--master", old.name, "--candidate", standby, "--force");
    await expect.poll(() => writers.last()!.node, { timeout: ttlS * 1_000 }).toBe(standby);
    report("switchover", beganMs);
    await whole();
    await isSafe();
  });

  test("fails over when the primary's Patroni and PostgreSQL are killed, within its ttl", async () => {
    const old = await primary();
    const beganMs = performance.now();
    await old.kill();
    const killedMs = performance.now();
    expect((await primary(killedMs, failoverS)).name).not.toBe(old.name);
    report("primary killed", beganMs);
    expect(writers.longestGapS(beganMs)).toBeLessThan(failoverS);
    old.start();
    await whole();
    await isSafe();
  });

  test.each(["SIGKILL", "SIGSTOP"] as const)("continues when the core's leader gets %s", async (signal) => {
    const leader = await leaderOfCore();
    const beganMs = performance.now();
    leader.signal(signal);
    // Longer than the ttl, so that leases that were not renewed have expired.
    await sleep((settings.ttl + settings.loop_wait) * 1_000);
    await primary();
    report(`core's leader ${signal}`, beganMs);
    expect(writers.longestGapS(beganMs)).toBeLessThan(ttlS);
    await isSafe();
  });

  test("demotes its primary when the core has no majority, and has a primary again when it has one", async () => {
    const [first, second] = core.servers as [CoreProcess, CoreProcess];
    const beganMs = performance.now();
    for (const server of [first, second]) server.signal("SIGSTOP");
    const quietS = () => (performance.now() - writers.last()!.endedMs) / 1_000;
    await expect.poll(quietS, { timeout: ttlS * 1_000 }).toBeGreaterThan(5);
    const demotedS = (writers.last()!.endedMs - beganMs) / 1_000;
    expect(demotedS).toBeLessThan(settings.ttl);
    process.stderr.write(`no majority: last row after ${demotedS.toFixed(1)} s\n`);
    const thawedMs = performance.now();
    for (const server of [first, second]) server.signal("SIGCONT");
    await primary(thawedMs, 2 * ttlS);
    report("majority back", thawedMs);
    await isSafe();
  });
});

/** Prints the figures for docs/adopters.md, and the nodes that have acknowledged rows meanwhile. */
function report(event: string, sinceMs: number): void {
  const rows = writers.rows.filter(({ beganMs }) => beganMs >= sinceMs);
  const primaries = [...new Set(rows.map(({ node, timeline }) => `${node} (timeline ${timeline})`))].join(
    ", then ",
  );
  const gap = writers.longestGapS(sinceMs).toFixed(1);
  process.stderr.write(
    `${event}: longest time without a row ${gap} s; ${rows.length} rows at ${primaries}\n`,
  );
}
