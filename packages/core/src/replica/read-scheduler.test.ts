import { expect, test } from "vitest";
import { failureOf, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { put, range } from "@leasehold/sim/inner/core/world/requests.js";
import { type Steps, Visits } from "../state/steps.js";
import { ReadScheduler } from "./read-scheduler.js";

function* steps(count: number, done: () => void): Steps<void> {
  for (let step = 1; step < count; step += 1) yield;
  done();
}

test("an abandoned long read is dropped at once, wherever it waits, and the next one takes its place", () => {
  const reads = new ReadScheduler();
  const visits = new Visits();
  const over: number[] = [];
  const askers = Array.from({ length: 1_000 }, (_, number) => number);
  for (const asker of askers)
    reads.add(
      asker,
      steps(3, () => over.push(asker)),
    );
  while (reads.isThere) reads.turn(1_000, visits);
  expect(over).toHaveLength(1_000);
  for (const asker of askers)
    reads.add(
      asker,
      steps(Infinity, () => undefined),
    );
  // Some reads run, and all others wait behind them.
  reads.turn(2_100 * 64, visits);
  expect(reads.size).toBe(1_000);
  for (const asker of askers.slice(0, 999)) reads.drop(asker);
  expect(reads.size).toBe(1);
  reads.drop(askers[999]!);
  reads.add(
    1_000,
    steps(70, () => over.push(-1)),
  );
  reads.turn(100_000, visits);
  expect(over.at(-1)).toBe(-1);
  expect(reads).toMatchObject({ size: 0, isThere: false });
});

test("a request that no client waits for is dropped, however long there is no leader", () => {
  const cluster = new VirtualCluster({ timeoutMs: 1_000 });
  const leader = cluster.leader();
  cluster.isolate(leader);
  cluster.run(5_000);
  const sent = Array.from({ length: 200 }, (_, number) =>
    cluster.send(leader, number % 2 === 0 ? put("a", "1") : range("a")),
  );
  cluster.run(3_000);
  expect(new Set(sent.map(({ outcome }) => failureOf(outcome)))).toEqual(new Set(["noLeader"]));
  expect(leader.replica!.requestsLeftBehind).toBe(0);
});
