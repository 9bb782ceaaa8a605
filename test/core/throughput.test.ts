import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test } from "vitest";
import {
  LeaseGrantRequestSchema,
  type LeaseGrantResponse,
  type LeaseKeepAliveRequest,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { report } from "../stores/support.js";
import { CoreCluster, type Program } from "./support/core-cluster.js";

/** Figures measured in the same run. They are printed; only a clear fault fails the test. */
let clusters: CoreCluster[] = [];
afterEach(async () => {
  await Promise.all(clusters.map((cluster) => cluster[Symbol.asyncDispose]()));
  clusters = [];
});

const inFlight = 64;
const leases = 1_000;
const refreshesInFlight = 256;
const roundMs = 3_000;

test.each([1, 3])(
  "%i servers do more than a hundred unary puts a second, with 64 in flight, beside a real etcd",
  async (count) => {
    const ours = await sideBySide(count, `${inFlight} puts in flight`, putsPerSecond);
    expect(ours).toBeGreaterThan(100);
  },
);

test.each([1, 3])(
  "%i servers do more than a hundred keep-alives a second over one stream, beside a real etcd",
  async (count) => {
    const ours = await sideBySide(
      count,
      `${refreshesInFlight} keep-alives on one stream`,
      keepAlivesPerSecond,
    );
    expect(ours).toBeGreaterThan(100);
  },
);

/** @returns what our server achieves per second */
async function sideBySide(
  count: number,
  what: string,
  measure: (cluster: CoreCluster) => Promise<number>,
): Promise<number> {
  const programs: Program[] = ["leasehold", "etcd"];
  for (const program of programs) clusters.push(await CoreCluster.start(count, { program }));
  const best = [0, 0];
  // Alternates between them, so that other load on the machine affects both.
  for (let round = 0; round < 3; round++)
    for (const [index, cluster] of clusters.entries())
      best[index] = Math.max(best[index]!, await measure(cluster));
  const [ours, theirs] = best as [number, number];
  report(
    `${count} servers, ${what}: leasehold ${Math.round(ours)}/s, etcd ${Math.round(theirs)}/s, ratio ${(ours / theirs).toFixed(2)}`,
  );
  return ours;
}

async function keepAlivesPerSecond(cluster: CoreCluster): Promise<number> {
  const { client } = await cluster.leader();
  const ids = await Promise.all(
    Array.from({ length: leases }, async () => {
      const request = create(LeaseGrantRequestSchema, { TTL: 60n });
      return (await client.call<LeaseGrantResponse>("Lease", "LeaseGrant", request)).ID;
    }),
  );
  const stream = client.stream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>("Lease", "LeaseKeepAlive");
  let [asked, done] = [0, 0];
  const ask = () => {
    const ID = ids[asked++ % ids.length]!;
    stream.write(create(LeaseKeepAliveRequestSchema, { ID }));
  };
  const startMs = performance.now();
  await new Promise<void>((resolve, reject) => {
    stream.on("error", reject);
    stream.on("data", ({ ID, TTL }: LeaseKeepAliveResponse) => {
      expect([ID, TTL]).toEqual([ids[done++ % ids.length], 60n]);
      if (performance.now() - startMs < roundMs) ask();
      else if (done === asked) resolve();
    });
    for (let index = 0; index < refreshesInFlight; index++) ask();
  });
  const perSecond = (done * 1_000) / (performance.now() - startMs);
  stream.end();
  return perSecond;
}

async function putsPerSecond(cluster: CoreCluster): Promise<number> {
  const { client } = await cluster.leader();
  let done = 0;
  const startMs = performance.now();
  const worker = async (number: number) => {
    while (performance.now() - startMs < roundMs) {
      await client.put(`key-${number}`, "x".repeat(64));
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, number) => worker(number)));
  return (done * 1_000) / (performance.now() - startMs);
}
