import { inspect } from "node:util";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { duringFaults, type Fault } from "../../../../../test/planted/switches.js";
import { MemoryCluster } from "../../testing/memory-cluster.js";
import type { Change, Lease } from "../types.js";

/** Observers of one name while leaders come and go, under that name and under longer ones. */

const names = ["a", "a", "ab"];
const people = ["alice", "bob"];
const runs = 100;

const step = fc.record({
  kind: fc.constantFrom("acquire", "acquire", "release", "cutOff", "reconnect", "lose", "read", "pass"),
  who: fc.constantFrom(...people),
  name: fc.constantFrom(...names),
  ms: fc.nat(2_500),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Run {
  readonly cluster = new MemoryCluster({ ttlMax: "1s" });
  readonly opened = new Map(people.map((name) => [name, this.cluster.open(name)]));
  readonly leader = this.cluster.open("carol").leader("a");
  readonly read: Change[] = [];
  readonly leases: Lease[] = [];
  #isReading = false;

  async take({ kind, who, name, ms }: Step): Promise<void> {
    if (kind === "acquire") {
      const keep = (lease: Lease | undefined) => lease !== undefined && this.leases.push(lease);
      void this.opened
        .get(who)!
        .tryAcquire(name)
        .then(keep, () => undefined);
      await this.cluster.advance(0);
    } else if (kind === "release") void this.leases[ms % this.leases.length]?.release();
    else if (kind === "lose") this.cluster.lose(name);
    else if (kind === "read") this.readOne();
    else if (kind === "pass") await this.cluster.advance(ms);
    else this.cluster[kind](who);
  }

  readOne(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    void this.leader.next().then(({ value }) => {
      if (value !== undefined) this.read.push(value);
      this.#isReading = false;
    });
  }

  /** Violations that remain after a quiet period. */
  async violations(): Promise<string[]> {
    const found: string[] = [];
    for (const { resource } of this.read) if (resource !== "a") found.push(`reported ${resource}`);
    const tokens = this.read.map(({ token = 0n }) => token);
    if (tokens.some((token, index) => index > 0 && token < tokens[index - 1]!)) found.push("tokens go back");
    const held = this.leases.find((lease) => lease.resource === "a" && lease.remaining() > 0);
    const { current } = this.leader;
    if (current?.state !== (held === undefined ? "free" : "held") || (held && current.token !== held.token))
      found.push(`${inspect(current)} is thought to lead`);
    for (let round = 0; round < 3; round += 1) {
      this.readOne();
      await this.cluster.advance(10);
    }
    const last = this.read.at(-1);
    if (last?.state !== current?.state || last?.token !== current?.token)
      found.push("the last change was not read");
    return found;
  }
}

function search(numRuns: number) {
  const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
    const run = new Run();
    for (const each of steps) await run.take(each);
    await run.cluster.advance("5s");
    expect(await run.violations()).toEqual([]);
    await run.cluster.close();
  });
  return fc.check(property, { numRuns, endOnFailure: true });
}

test("an observer learns who leads, and is sent no other name and no older tenure", async () => {
  const { failed, counterexample, errorInstance } = await search(runs);
  expect({ failed, counterexample, errorInstance }).toMatchObject({ failed: false });
});

test.each<[Fault, string | RegExp]>([
  ["exactIsAPrefix", /reported ab|resource: 'ab'/],
  ["olderLeaderIsKept", "the last change was not read"],
  ["nobodyIsNotTold", "is thought to lead"],
])("the mistake %s is found by random scripts", async (fault, what) => {
  const found = await duringFaults({ [fault]: true }, () => search(20 * runs));
  expect(inspect(found.errorInstance)).toMatch(what);
});
