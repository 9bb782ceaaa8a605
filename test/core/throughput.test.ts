import { afterEach, expect, test } from "vitest";
import { report } from "../stores/support.js";
import { CoreCluster, type Program } from "./support/core-cluster.js";

/** Figures, side by side in one run: they are printed, and only what would be a fault fails. */
let clusters: CoreCluster[] = [];
afterEach(async () => {
  await Promise.all(clusters.map((cluster) => cluster[Symbol.asyncDispose]()));
  clusters = [];
});

const inFlight = 64;
const roundMs = 3_000;

test.each([1, 3])("unary puts with 64 in flight, %i servers, beside a real etcd", async (count) => {
  const programs: Program[] = ["leasehold", "etcd"];
  for (const program of programs) clusters.push(await CoreCluster.start(count, { program }));
  const best = [0, 0];
  // In turn, so that whatever else the machine does hits both.
  for (let round = 0; round < 3; round++)
    for (const [index, cluster] of clusters.entries())
      best[index] = Math.max(best[index]!, await putsPerSecond(cluster));
  const [ours, theirs] = best as [number, number];
  report(
    `${count} servers, ${inFlight} puts in flight: leasehold ${Math.round(ours)}/s, etcd ${Math.round(theirs)}/s, ratio ${(ours / theirs).toFixed(2)}`,
  );
  expect(ours).toBeGreaterThan(100);
});

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
