import { inspect } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Lease, Leases, ResourceHint } from "../packages/leasehold/src/lease/types.js";
import type { ConformanceGround } from "../packages/leasehold/src/testing/conformance.js";
import { MemoryProvider } from "../packages/leasehold/src/testing/memory-provider.js";
import { duringFaults, type Fault } from "./planted/switches.js";
import { effort } from "./support/effort.js";
import { virtualCoreGround } from "./support/memory-core.js";
import { virtualFarmGround } from "./support/memory-farm.js";
import { virtualGridGround } from "./support/memory-grid.js";
import { virtualGround } from "./support/virtual-ground.js";

/**
 * The data of tenures as other participants read it, on each ground that works in virtual time, with random
 * calls in between.
 */

const names = ["a", "a", "b"];
const people = ["alice", "bob"];
const farms = {
  "stores that compare and set": ["atomic", "atomic"],
  "stores that can only write": ["slotted", "slotted"],
} as const;

const grounds: Record<string, () => ConformanceGround> = {
  memory: () =>
    virtualGround(
      ({ ground, world, name, process }) =>
        new MemoryProvider(ground, world, { name, ttlMaxMs: 2_000, process }),
    ),
  core: () => virtualCoreGround(),
  "stores that compare and set": () => virtualFarmGround({ kinds: farms["stores that compare and set"] }),
  "stores that can only write": () => virtualFarmGround({ kinds: farms["stores that can only write"] }),
  grid: () => virtualGridGround(),
};

const step = fc.record({
  kind: fc.constantFrom(
    "acquire",
    "acquire",
    "plain",
    "renew",
    "release",
    "release",
    "ask",
    "wish",
    "freeze",
    "pass",
  ),
  who: fc.nat(people.length - 1),
  name: fc.constantFrom(...names),
  ms: fc.nat(1_500),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Told = Partial<Pick<ResourceHint, "data" | "token">>;

class Run {
  readonly violations: string[] = [];
  /**
   * For each piece of data, which is a unique number: the name for which it was given, and the token that it
   * got.
   */
  readonly #given = new Map<unknown, { name: string; token?: bigint }>();
  readonly #held: { lease: Lease; data?: number }[] = [];
  readonly #told: { name: string; call: string; told: Told }[] = [];
  readonly #newest = new Map<string, Told>();
  readonly #ground: ConformanceGround;
  readonly #people: Leases[];
  heard = 0;

  constructor(ground: ConformanceGround, opened: Leases[]) {
    this.#ground = ground;
    this.#people = opened;
    void this.#listen(opened[0]!);
  }

  async #listen(leases: Leases): Promise<void> {
    for await (const change of leases.watch("")) {
      this.#newest.set(change.resource, change);
      this.#note(change.resource, "watch()", change);
    }
  }

  #note(name: string, call: string, told: Told): void {
    if (told.data !== undefined) this.#told.push({ name, call, told });
  }

  take({ kind, who, name, ms }: Step): Promise<void> | void {
    const leases = this.#people[who]!;
    const { lease } = this.#held[ms % this.#held.length] ?? {};
    if (kind === "acquire" || kind === "plain") return this.#acquire(leases, name, kind === "plain", ms);
    if (kind === "renew") return void lease?.renew().catch(() => undefined);
    if (kind === "release") return void lease?.release();
    if (kind === "ask") return void this.#ask(leases, name);
    if (kind === "wish") return void leases.requestRelease(name).catch(() => undefined);
    if (kind === "freeze") return this.#ground.freeze!(leases, ms);
    return this.#ground.pass(ms);
  }

  /** Waits for the answer in most cases, since the next call is often about the lease acquired. */
  async #acquire(leases: Leases, name: string, isPlain: boolean, patienceMs: number): Promise<void> {
    const data = isPlain ? undefined : this.#given.size;
    const given: { name: string; token?: bigint } = { name };
    if (data !== undefined) this.#given.set(data, given);
    const seen = { isAnswered: false };
    const call = leases.tryAcquire(name, { ttl: this.#ground.ttlMs, ...(data !== undefined && { data }) });
    const answered = (lease?: Lease) => {
      seen.isAnswered = true;
      if (lease === undefined) return;
      given.token = lease.token;
      this.#held.push({ lease, ...(data !== undefined && { data }) });
    };
    call.then(answered, () => answered());
    for (let passedMs = 0; !seen.isAnswered && passedMs < patienceMs; passedMs += 10)
      await this.#ground.pass(10);
  }

  async #ask(leases: Leases, name: string): Promise<Told[]> {
    const asked = {
      "holder()": leases.holder(name),
      "list()": leases.list(name).then((list) => list.find(({ resource }) => resource === name) ?? {}),
      "explain()": leases.explain(name),
    };
    return Promise.all(
      Object.entries(asked).map(async ([call, answer]) => {
        const told: Told = await answer.catch(() => ({}));
        this.#note(name, call, told);
        return told;
      }),
    );
  }

  /**
   * Data that was read must have the token with which it was given, and all calls must show the data of
   * leases held now.
   */
  async judge(): Promise<void> {
    await this.#ground.pass(4 * this.#ground.ttlMs);
    for (const { lease, data } of this.#held) if (lease.remaining() > 0) await this.#judgeHeld(lease, data);
    for (const { name, call, told } of this.#told) {
      const given = this.#given.get(told.data);
      const isOwn = given?.name === name && (given.token === undefined || given.token === told.token);
      if (!isOwn) this.violations.push(`${call} of ${name} returns another tenure's data`);
    }
    this.heard = this.#told.length;
  }

  async #judgeHeld({ resource, token }: Lease, data: number | undefined): Promise<void> {
    const asking = Promise.all(this.#people.map((leases) => this.#ask(leases, resource)));
    await this.#ground.pass(this.#ground.ttlMs / 4);
    for (const told of [...(await asking).flat(), this.#newest.get(resource)])
      if (told?.token === token && told.data !== data)
        this.violations.push(
          `the data of a tenure of ${resource} is ${inspect(data)}, but was reported as ${inspect(told.data)}`,
        );
  }
}

async function play(open: () => ConformanceGround, steps: readonly Step[]): Promise<Run> {
  const ground = open();
  const opened: Leases[] = [];
  for (const name of people) {
    const opening = ground.open(name).then((leases) => opened.push(leases));
    await ground.pass(100);
    await opening;
  }
  const run = new Run(ground, opened);
  for (const each of steps) {
    await run.take(each);
    await ground.pass(each.ms % 200);
  }
  await run.judge();
  await ground.close();
  if (run.violations.length > 0) throw new Error(run.violations.join("; "));
  return run;
}

const search = (
  open: () => ConformanceGround,
  numRuns: number,
  onRun: (run: Run) => unknown = () => undefined,
  seed?: number,
) =>
  fc.check(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 20 }),
      async (steps) => void onRun(await play(open, steps)),
    ),
    { numRuns, endOnFailure: true, ...(seed !== undefined && { seed }) },
  );

const runs = 6 * effort;

test.each(Object.entries(grounds))(
  "on %s the data of a tenure stays with it, and comes with no other token",
  async (_name, open) => {
    let heard = 0;
    const { failed, counterexample, errorInstance } = await search(open, runs, (run) => (heard += run.heard));
    expect({ failed, counterexample, errorInstance }).toMatchObject({ failed: false });
    // The run proves something only if data was read. With sixty seeds, six runs read data 12 to 65 times.
    expect(heard).toBeGreaterThan(runs / 2);
  },
);

/** With this seed each mistake is found soon. */
const seed = 1;

describe("random calls find", () => {
  test.each<[Fault, keyof typeof grounds]>([
    ["waistKeepsFormerData", "memory"],
    ["wishDropsData", "core"],
    ["renewalLosesData", "stores that compare and set"],
    ["paperKeepsFormerData", "stores that can only write"],
    ["gridKeepsFormerData", "grid"],
    ["gridRenewalLosesData", "grid"],
  ])("the mistake %s", async (fault, ground) => {
    const found = await duringFaults({ [fault]: true }, () => search(grounds[ground]!, 600, undefined, seed));
    expect(inspect(found.errorInstance)).toContain("data");
  });
});
