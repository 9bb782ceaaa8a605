import { execFileSync } from "node:child_process";
import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test } from "vitest";
import {
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { type Place, Site } from "../blackbox/site.js";
import { report } from "../stores/support.js";
import { CoreCluster, type CoreProcess } from "./support/core-cluster.js";
import { Load, callMs, sleep } from "./support/load.js";

/**
 * Three servers, each in its own network namespace. The leader is cut off from the other servers but not from
 * its clients: it must not give them stale answers.
 */
let site: Site | undefined;
let cluster: CoreCluster | undefined;
afterEach(async () => {
  await cluster?.[Symbol.asyncDispose]();
  site?.remove();
  site = undefined;
  cluster = undefined;
});

const electionMs = 1_000;
const table = "lhcore";

/** Blocks all traffic between servers, in both directions. Clients can still connect. */
function cut({ namespace }: Place): void {
  const rules = `table inet ${table} {
    chain i { type filter hook input priority 0; policy accept; tcp dport 2380 drop; tcp sport 2380 drop; }
    chain o { type filter hook output priority 0; policy accept; tcp dport 2380 drop; tcp sport 2380 drop; }
  }`;
  execFileSync("ip", ["netns", "exec", namespace, "nft", "-f", "-"], { input: rules });
}

function heal({ namespace }: Place): void {
  execFileSync("ip", ["netns", "exec", namespace, "nft", "delete", "table", "inet", table]);
}

async function open(): Promise<{ servers: readonly CoreProcess[]; placeOf: (server: CoreProcess) => Place }> {
  site = new Site();
  const places = [site.addPlace(), site.addPlace(), site.addPlace()];
  const hosts = places.map(({ namespace, address }) => ({
    address,
    prefix: ["ip", "netns", "exec", namespace],
  }));
  cluster = await CoreCluster.start(3, { hosts });
  const { servers } = cluster;
  return { servers, placeOf: (server) => places[servers.indexOf(server)]! };
}

test("a leader that is cut off answers no stale read; the others go on; healed, all agree", async () => {
  const { servers, placeOf } = await open();
  const load = new Load(servers, 9, 3);
  await sleep(800);
  for (let round = 0; round < 2; round++) {
    const leader = await cluster!.leader();
    cut(placeOf(leader));
    await sleep(3 * electionMs);
    heal(placeOf(leader));
    await cluster!.ready();
    await sleep(700);
  }
  await load.end();
  expect(load.judge()).toBe("linearizable");
  report(
    `leader cut off twice: ${load.history.length} operations, ${load.failures} failed, longest gap in writes ${Math.round(load.gapMs())} ms`,
  );
  expect(load.gapMs()).toBeLessThan(2 * electionMs + callMs);
});

test("a deposed leader refreshes no lease", async () => {
  const { servers, placeOf } = await open();
  const leader = await cluster!.leader();
  const grant = create(LeaseGrantRequestSchema, { ID: 7n, TTL: 60n });
  await leader.client.call("Lease", "LeaseGrant", grant);
  const stream = leader.client.stream<unknown, LeaseKeepAliveResponse>("Lease", "LeaseKeepAlive");
  const answers: bigint[] = [];
  stream.on("data", ({ TTL }: LeaseKeepAliveResponse) => answers.push(TTL));
  stream.on("error", () => undefined);
  const refresh = () => stream.write(create(LeaseKeepAliveRequestSchema, { ID: 7n }));
  refresh();
  await expect.poll(() => answers).toEqual([60n]);
  cut(placeOf(leader));
  // For this long the leader may rely on the promises of the others: nobody else leads yet.
  await sleep(electionMs);
  refresh();
  const survivor = servers.find((server) => server !== leader)!;
  await expect
    .poll(
      () =>
        survivor.client.put("a", "1", 500).then(
          () => true,
          () => false,
        ),
      { timeout: 10_000 },
    )
    .toBe(true);
  await sleep(2 * electionMs);
  expect(answers).toEqual([60n]);
  const read = leader.client.range("a", 1_500);
  await expect(read).rejects.toThrow("DEADLINE_EXCEEDED");
  heal(placeOf(leader));
  await cluster!.ready();
  expect(await leader.client.get("a")).toBe("1");
});
