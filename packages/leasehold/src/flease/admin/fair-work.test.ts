import fc from "fast-check";
import { expect, test } from "vitest";
import { FairWork } from "./fair-work.js";
import type { Steps } from "./fair-work.js";
import { withFaults } from "../../../../../test/planted/switches.js";

const links = ["a", "b", "c", "d"];

/** A script: entries with steps queue a job for a connection, entries without do one step of work. */
const scripts = fc.array(
  fc.record({ link: fc.nat({ max: links.length - 1 }), steps: fc.nat({ max: 5 }), work: fc.boolean() }),
  { maxLength: 60 },
);

/**
 * Executes the script, and then all remaining work. Returns the most steps of others that a connection waited
 * for.
 */
function longestWait(script: readonly { link: number; steps: number; work: boolean }[]): number {
  const work = new FairWork<string>(() => {});
  const left = new Map<string, number>();
  const waited = new Map<string, number>();
  let longest = 0;
  function* job(link: string, steps: number): Steps<void> {
    for (let step = 1; step <= steps; step += 1) {
      left.set(link, left.get(link)! - 1);
      for (const other of links)
        if (other !== link && left.get(other)! > 0) waited.set(other, waited.get(other)! + 1);
      longest = Math.max(longest, waited.get(link)!);
      waited.set(link, 0);
      if (step < steps) yield;
    }
  }
  for (const link of links) {
    left.set(link, 0);
    waited.set(link, 0);
  }
  for (const { link, steps, work: works } of script) {
    const name = links[link]!;
    if (steps > 0) {
      left.set(name, left.get(name)! + steps);
      void work.add(name, job(name, steps));
    }
    if (works) work.run(() => false);
  }
  work.run(() => true);
  expect([work.isIdle, ...left.values()]).toEqual([true, 0, 0, 0, 0]);
  return longest;
}

const check = () => {
  const property = fc.property(scripts, (script) => {
    expect(longestWait(script)).toBeLessThan(links.length);
  });
  fc.assert(property);
};

test("a connection with work waits for one step of each other at most, under any load of these", () => {
  check();
  withFaults({ oneQueueForAll: true }, () => expect(check).toThrow("Property failed"));
});

test("jobs of one connection beyond its bound are refused, and no other's", async () => {
  const work = new FairWork<string>(() => {});
  function* job(): Steps<string> {
    yield;
    return "done";
  }
  const jobs = Array.from({ length: 65 }, () => work.add("a", job()));
  const other = work.add("b", job());
  await expect(jobs[64]).rejects.toMatchObject({ code: "UNREACHABLE" });
  work.run(() => true);
  expect(await Promise.all([...jobs.slice(0, 64), other])).toHaveLength(65);
});

test("a job that throws ends only itself; a connection that closes ends its own jobs", async () => {
  const work = new FairWork<string>(() => {});
  function* throwing(): Steps<void> {
    yield;
    throw new RangeError("too much");
  }
  function* job(): Steps<string> {
    yield;
    return "done";
  }
  const thrown = work.add("a", throwing());
  const [second, gone, other] = [work.add("a", job()), work.add("b", job()), work.add("c", job())];
  const outcomes = Promise.allSettled([thrown, second, gone, other]);
  work.run(() => false);
  work.drop("b");
  work.run(() => true);
  expect(
    (await outcomes).map((each) => (each.status === "fulfilled" ? each.value : each.reason.message)),
  ).toEqual(["too much", "done", "the connection is gone", "done"]);
});
