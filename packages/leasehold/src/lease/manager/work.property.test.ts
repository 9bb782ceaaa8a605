import { inspect } from "node:util";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { duringFaults, type Fault } from "../../../../../test/planted/switches.js";
import { MemoryGround } from "../../testing/memory-ground.js";
import { MemoryProvider } from "../../testing/memory-provider.js";
import { ProcessSwitch } from "../../testing/process-switch.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseManager } from "./lease-manager.js";
import type { Lease, LeaseSet } from "../types.js";

/** Programs work under one lease or several while processes are cut off, are stopped or give up. */

const ttlMs = 1_000;
const names = ["a", "b", "c"];
const runs = 150;

const job = fc.record({
  startMs: fc.nat(1_500),
  who: fc.nat(1),
  names: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }),
  /** The work checks its lease after each of these pauses. */
  pausesMs: fc.array(fc.nat(400), { maxLength: 4 }),
  /** Whether its signal aborts, and when. */
  abortMs: fc.option(fc.nat(3_000), { freq: 3, nil: undefined }),
  /** Some wait without a bound; this only ends if nobody waits for them in turn. */
  waitMs: fc.oneof(fc.nat(800), fc.constant(Infinity)),
  ending: fc.constantFrom("return", "return", "throw", "stop"),
});
const trouble = fc.record({
  atMs: fc.nat(3_000),
  who: fc.nat(1),
  kind: fc.constantFrom("cutOff", "reconnect", "suspend", "lose", "loseNext"),
  ms: fc.nat(1_500),
});
const script = fc.record({
  jobs: fc.array(job, { minLength: 2, maxLength: 7 }),
  troubles: fc.array(trouble, { maxLength: 4 }),
});

type Job = typeof job extends fc.Arbitrary<infer T> ? T : never;
type Trouble = typeof trouble extends fc.Arbitrary<infer T> ? T : never;

const ownError = new Error("of the work");

class Run {
  readonly world = new VirtualWorld();
  readonly ground = new MemoryGround();
  readonly switches = [new ProcessSwitch(), new ProcessSwitch()];
  uses = 0;
  readonly keepAlive = { ref: () => void (this.uses += 1), unref: () => void (this.uses -= 1) };
  readonly participants = this.switches.map((process, index) => {
    const provider = new MemoryProvider(this.ground, this.world, {
      name: `p${index}`,
      ttlMaxMs: ttlMs,
      process,
    });
    const { clock, timers, random } = this.world;
    return new LeaseManager(provider, { clock, timers, random, keepAlive: this.keepAlive });
  });
  readonly violations: string[] = [];
  readonly #users = new Map<string, LeaseSet | Lease>();
  #losesNext = false;
  unsettled = 0;
  worked = 0;

  constructor() {
    for (const leases of this.participants)
      leases.on("acquired", ({ lease }) => {
        if (this.#losesNext) this.ground.lose(lease.resource);
        this.#losesNext = false;
      });
  }

  begin(given: Job): void {
    const controller = new AbortController();
    if (given.abortMs !== undefined)
      this.world.timers.after(given.abortMs, () => controller.abort(new Error("given up")));
    const seen = { heldAtEnd: false, ended: false };
    const options = { wait: given.waitMs, signal: controller.signal };
    const work = (held: LeaseSet | Lease) => this.#work(given, held, seen);
    const leases = this.participants[given.who]!;
    const [only] = given.names;
    this.unsettled += 1;
    const using =
      given.names.length === 1
        ? leases.using(only!, options, work)
        : leases.using(given.names, options, work);
    using
      .then(
        () => {
          if (!seen.heldAtEnd) this.violations.push("work that outlived its lease has a value");
        },
        (error: unknown) => {
          if (seen.ended && given.ending === "throw" && error !== ownError)
            this.violations.push(`the error of the work became ${String(error)}`);
        },
      )
      .finally(() => (this.unsettled -= 1));
  }

  async #work(given: Job, held: LeaseSet | Lease, seen: { heldAtEnd: boolean; ended: boolean }) {
    this.worked += 1;
    if (held.remaining() === 0) this.violations.push("work begins under a lease that is lost");
    this.#look(given, held);
    for (const ms of given.pausesMs) {
      await new Promise<void>((resolve) => void this.world.timers.after(ms, resolve));
      this.#look(given, held);
      if (given.ending === "stop" && held.signal.aborted) throw new DOMException("stopped", "AbortError");
    }
    seen.heldAtEnd = held.remaining() > 0;
    seen.ended = true;
    for (const name of given.names) if (this.#users.get(name) === held) this.#users.delete(name);
    if (given.ending === "throw") throw ownError;
    return held.remaining();
  }

  /** A job uses the resources that it holds. */
  #look(given: Job, held: LeaseSet | Lease): void {
    if (held.remaining() === 0) {
      if (!held.signal.aborted) this.violations.push("the signal does not know of a loss");
      return;
    }
    for (const name of given.names) {
      const other = this.#users.get(name);
      if (other !== undefined && other !== held && other.remaining() > 0)
        this.violations.push(`two hold ${name}`);
      this.#users.set(name, held);
      if ("get" in held && held.get(name).remaining() === 0)
        this.violations.push(`a set is held although ${name} is lost`);
    }
  }

  meet({ kind, who, ms }: Trouble): void {
    if (kind === "suspend") this.world.suspend(ms);
    else if (kind === "loseNext") this.#losesNext = true;
    else if (kind === "lose") this.ground.lose(names[ms % names.length]!);
    else this.switches[who]![kind]();
  }
}

async function play({
  jobs,
  troubles,
}: {
  jobs: readonly Job[];
  troubles: readonly Trouble[];
}): Promise<Run> {
  const run = new Run();
  for (const each of jobs) run.world.timers.after(each.startMs, () => run.begin(each));
  for (const each of troubles) run.world.timers.after(each.atMs, () => run.meet(each));
  await run.world.advance("6s");
  for (const process of run.switches) process.reconnect();
  await run.world.advance("2m");
  expect(run.violations).toEqual([]);
  expect(run.unsettled, "calls that never end").toBe(0);
  expect(run.ground.list(""), "leases that nobody gave back").toEqual([]);
  expect(run.world.pendingTimers).toBe(0);
  expect(run.uses, "calls and leases for which the process would live on").toBe(0);
  await Promise.all(run.participants.map((leases) => leases.close()));
  return run;
}

function search(numRuns: number, onRun: (run: Run) => unknown = () => undefined) {
  return fc.check(
    fc.asyncProperty(script, async (given) => void onRun(await play(given))),
    { numRuns, endOnFailure: true },
  );
}

test("whatever happens under `using`, nobody works beside another, each call ends, and everything is released", async () => {
  let worked = 0;
  const { failed, counterexample, errorInstance } = await search(runs, (run) => (worked += run.worked));
  expect({ failed, counterexample, errorInstance }).toMatchObject({ failed: false });
  expect(worked).toBeGreaterThan(runs);
});

test.each<[Fault, string | RegExp]>([
  ["setIsTakenAsGiven", "calls that never end"],
  ["valueOutlivesItsLease", "work that outlived its lease has a value"],
  ["workBeginsAfterALoss", "work begins under a lease that is lost"],
  ["partOfSetIsKept", /leases that nobody gave back|calls that never end/],
  ["setIsTheLongestLease", "a set is held although"],
])("the mistake %s is found by random scripts", async (fault, what) => {
  const found = await duringFaults({ [fault]: true }, () => search(20 * runs));
  expect(inspect(found.errorInstance)).toMatch(what);
});
