import { execFileSync } from "node:child_process";
import { afterEach, expect, test } from "vitest";
import { Site } from "../blackbox/site.js";
import { report } from "../stores/support.js";
import { CoreCluster, type CoreProcess } from "./support/core-cluster.js";
import { sleep } from "./support/load.js";

/** Servers that stop for a moment, or whose connections are slow: etcd still answers every request. */
let site: Site | undefined;
let cluster: CoreCluster | undefined;
afterEach(async () => {
  await cluster?.[Symbol.asyncDispose]();
  site?.remove();
  site = undefined;
  cluster = undefined;
});

const callMs = 60_000;

/** @returns the failures, by message */
async function put(
  { client }: CoreProcess,
  puts: number,
  inFlight: number,
  bytes: number,
): Promise<string[]> {
  const failures: string[] = [];
  const value = "x".repeat(bytes);
  let next = 0;
  const work = async () => {
    while (next < puts) {
      const key = `k${next++}`;
      await client.put(key, value, callMs).catch((error: Error) => failures.push(error.message));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
  return failures;
}

async function places(): Promise<{ leader: CoreProcess; follower: CoreProcess }> {
  const leader = await cluster!.leader();
  const follower = cluster!.servers.find((server) => server !== leader)!;
  await follower.client.put("a", "b");
  return { leader, follower };
}

// Within what a request may take; longer than the former silence, and than the present one.
test.each([1_150, 5_800])("a follower that is stopped for %i ms times out no put", async (stoppedMs) => {
  cluster = await CoreCluster.start(3);
  const { follower } = await places();
  follower.signal("SIGSTOP");
  const failures = put(follower, 128, 128, 1);
  await sleep(stoppedMs);
  follower.signal("SIGCONT");
  expect(await failures).toEqual([]);
});

test.each([
  ["follower", 192, 40],
  ["leader", 288, 48],
] as const)("at 20 Mbit/s a %s times out none of %i puts of 100 KB", async (at, puts, inFlight) => {
  site = new Site();
  const namespaces = Array.from({ length: 3 }, () => site!.addPlace());
  const hosts = namespaces.map(({ namespace, address }) => ({
    address,
    prefix: ["ip", "netns", "exec", namespace],
  }));
  cluster = await CoreCluster.start(3, { hosts });
  const servers = await places();
  const words = "root tbf rate 20mbit burst 32kbit latency 400ms".split(" ");
  for (const { namespace } of namespaces)
    execFileSync("tc", ["-n", namespace, "qdisc", "add", "dev", "eth0", ...words]);
  const { raftTerm } = await servers.leader.client.status();
  const startMs = performance.now();
  expect(await put(servers[at], puts, inFlight, 100_000)).toEqual([]);
  report(`${puts} puts of 100 KB at the ${at}, 20 Mbit/s: ${Math.round(performance.now() - startMs)} ms`);
  expect((await servers.leader.client.status()).raftTerm).toBe(raftTerm);
});
