import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ScriptedProvider } from "../../../../../test/support/scripted-provider.js";
import type { ScriptedGrant } from "../../../../../test/support/scripted-provider.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseholdError, type LeaseLostError } from "../errors.js";
import { LeaseManager } from "../manager/lease-manager.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { AttemptOutcome, AttemptRequest, Cancellation, Grant } from "../provider.js";
import type { Lease } from "../types.js";

// The waist alone, over a provider whose every answer comes from a random script, at any microtask. Callers
// act as programs do; a model knows which requests the provider may get, which caller may be served, and what
// each caller may be answered.

const resources = ["a", "b"] as const;
type Resource = (typeof resources)[number];

class Surrender extends Error {}

/**
 * Enough for every deadline that a call may have (`3 * 1_000` ms), and for the callers behind it in its
 * queue.
 */
const endStepMs = 50;
const endRoundsMax = 500;

/** Number of random scripts; set `RUNS` for a longer search. */
const RUNS = Number(process.env["RUNS"] ?? 1_000);

/** The expected state of one resource: requests to the provider and answers to callers. */
class Model {
  /** The one request in flight. */
  request: "attempt" | "renew" | "release" | undefined;
  /** Granted, and not released yet. */
  grant: Grant | undefined;
  /** Another was reported to have it, or a caller of this process had it. */
  wasTaken = false;
  /** Calls of `acquire` that wait, in order. */
  readonly waiting = new Set<Call>();
  readonly given = new Set<Lease>();
}

interface Call {
  readonly resource: Resource;
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
}

/** Consults the model before it acts on the script. */
class JudgedProvider extends ScriptedProvider {
  readonly wrong: string[];
  isClosing = false;
  readonly #models: ReadonlyMap<string, Model>;

  constructor(world: VirtualWorld, models: ReadonlyMap<string, Model>, wrong: string[]) {
    super(world.clock);
    this.holdReleases = true;
    this.#models = models;
    this.wrong = wrong;
  }

  override async attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    if (this.isClosing)
      this.wrong.push(`an attempt for ${request.resource} begins although the participant is closing`);
    const model = this.#begin("attempt", request.resource, undefined);
    try {
      const outcome = await super.attempt(request, cancellation);
      if (outcome.kind === "granted") model.grant = outcome.grant;
      if (outcome.kind !== "failed") model.wasTaken = true;
      return outcome;
    } finally {
      model.request = undefined;
    }
  }

  override async renew(grant: Grant, ttlMs: number): Promise<boolean> {
    const model = this.#begin("renew", grant.resource, grant);
    try {
      return await super.renew(grant, ttlMs);
    } finally {
      model.request = undefined;
    }
  }

  override async release(grant: Grant): Promise<void> {
    const model = this.#begin("release", grant.resource, grant);
    await super.release(grant);
    model.request = undefined;
    model.grant = undefined;
  }

  #begin(request: NonNullable<Model["request"]>, resource: string, grant: Grant | undefined): Model {
    const model = this.#models.get(resource)!;
    if (model.request !== undefined) this.wrong.push(`${request} of ${resource} during ${model.request}`);
    if (model.grant !== grant) this.wrong.push(`${request} of ${resource} by the wrong grant`);
    model.request = request;
    return model;
  }
}

const step = fc.record({
  kind: fc.constantFrom(
    "acquire",
    "try",
    "tries",
    "any",
    "semaphore",
    "again",
    "release",
    "release",
    "abort",
    "abort",
    "grant",
    "grant",
    "held",
    "failed",
    "throws",
    "given-back",
    "given-back",
    "renewed",
    "hint",
    "lost",
    "close",
    "pass",
  ),
  resource: fc.constantFrom(...resources),
  pick: fc.nat(1_000),
  /** Microtasks until the next step. */
  turns: fc.nat(12),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Run {
  readonly world = new VirtualWorld();
  readonly models = new Map<string, Model>(resources.map((name) => [name, new Model()]));
  readonly wrong: string[] = [];
  readonly provider = new JudgedProvider(this.world, this.models, this.wrong);
  readonly leases = new LeaseManager(this.provider, this.world);
  readonly minds = new Set<AbortController>();
  readonly held: Lease[] = [];
  unsettled = 0;
  served = 0;
  ending = false;
  /** Calls that a listener has aborted when it was notified of their lease. */
  readonly abortedByListener = new Set<AbortSignal>();

  constructor() {
    this.leases.on("acquired", ({ lease }) => {
      const { waiting } = this.models.get(lease.resource)!;
      const [mind] = this.minds;
      if (this.minds.size > 1 || mind === undefined || waiting.size !== 1 || lease.token % 3n > 0n) return;
      for (const { signal } of waiting) if (signal === mind.signal) this.abortedByListener.add(signal);
      mind.abort(new Surrender());
    });
  }

  take({ kind, resource, pick }: Step): void {
    const { provider } = this;
    switch (kind) {
      case "acquire":
        return this.program(this.mind((signal) => this.acquire(resource, signal, pick)));
      case "try":
        return this.program(this.mind((signal) => this.try(resource, signal)));
      case "tries":
        return this.program(this.mind((signal) => this.tries(resource, signal, 1 + (pick % 4))));
      case "any":
        return this.program(this.any(pick));
      case "semaphore":
        return this.program(this.semaphore(pick));
      case "again":
        return this.program(this.again(pick));
      case "release":
        return this.release(pick);
      case "abort":
        return chosen([...this.minds], pick)?.abort(new Surrender());
      case "grant":
        return void taken(provider.attempts, pick)?.grant();
      case "held":
        return taken(provider.attempts, pick)?.held(pick);
      case "failed":
        return taken(provider.attempts, pick)?.fail();
      case "throws":
        return taken(provider.attempts, pick)?.fail("CONFIG_MISMATCH");
      case "given-back":
        return taken(provider.releases, pick)?.answer();
      case "renewed":
        return taken(provider.renewals, pick)?.answer(pick % 2 === 0);
      case "hint":
        return void provider.events!.hint(resource);
      case "lost":
        return this.lose(pick);
      case "close":
        // In a few scripts only: nothing can be acquired after it.
        return pick % 8 === 0 ? this.close() : undefined;
      case "pass":
        return this.world.block(pick);
    }
  }

  lose(pick: number): void {
    const grants = [...this.models.values()].flatMap(({ grant }) => grant ?? []);
    const grant = chosen(grants, pick) as ScriptedGrant | undefined;
    if (grant !== undefined) grant.endMs = -Infinity;
  }

  close(): void {
    this.provider.isClosing = true;
    void this.leases.close();
  }

  /** A caller's program must end, with an error that the waist may throw. */
  program(running: Promise<unknown>): void {
    this.unsettled += 1;
    void running
      .catch((error: unknown) => {
        const known = error instanceof Surrender || error instanceof AggregateError;
        const codes = ["TIMEOUT", "NO_QUORUM", "CONFIG_MISMATCH"];
        if (this.provider.isClosing) codes.push("CLOSED");
        if (!known && !(error instanceof LeaseholdError && codes.includes(error.code)))
          this.wrong.push(`a caller gets ${String(error)}`);
      })
      .finally(() => this.unsettled--);
  }

  async mind<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const mind = new AbortController();
    this.minds.add(mind);
    try {
      return await run(mind.signal);
    } finally {
      this.minds.delete(mind);
    }
  }

  async acquire(resource: Resource, signal: AbortSignal, pick: number): Promise<Lease> {
    const waitMs = 1 + pick * 3;
    const { waiting } = this.models.get(resource)!;
    const call = { resource, signal, deadlineMs: this.world.clock.monotonicMs() + waitMs };
    waiting.add(call);
    try {
      const lease = await this.leases.acquire(resource, { signal, wait: waitMs, autoRenew: pick % 2 === 0 });
      if (this.abortedByListener.has(signal)) this.wrong.push("a call that a listener aborted has a lease");
      const before = [...waiting].slice(0, [...waiting].indexOf(call));
      if (before.some((other) => this.stillWants(other)))
        this.wrong.push(`a caller is served before another that came first for ${resource}`);
      return this.enter(lease);
    } finally {
      waiting.delete(call);
    }
  }

  stillWants({ signal, deadlineMs }: Call): boolean {
    return !signal.aborted && this.world.clock.monotonicMs() < deadlineMs;
  }

  async try(resource: Resource, signal?: AbortSignal): Promise<Lease | undefined> {
    const lease = await this.leases.tryAcquire(resource, signal && { signal });
    if (lease !== undefined) return this.enter(lease);
    if (!this.models.get(resource)!.wasTaken) this.wrong.push(`${resource} was refused and nobody had it`);
    return undefined;
  }

  async tries(resource: Resource, signal: AbortSignal, times: number): Promise<Lease | undefined> {
    let lease: Lease | undefined;
    for (let each = 0; each < times && lease === undefined; each += 1)
      lease = await this.try(resource, signal);
    return lease;
  }

  /** The first name that can be acquired; the others are given up, or released. */
  any(pick: number): Promise<Lease> {
    return this.mind(async (signal) => {
      const others = new AbortController();
      const both = AbortSignal.any([signal, others.signal]);
      const calls = resources.map((resource) => this.acquire(resource, both, pick));
      const first = await Promise.any(calls);
      others.abort(new Surrender());
      for (const call of calls)
        void call.then(
          (lease) => void (lease !== first && lease.release()),
          () => undefined,
        );
      return first;
    });
  }

  /** One of as many permits as there are names. */
  async semaphore(pick: number): Promise<Lease> {
    for (const resource of resources) {
      const lease = await this.try(resource);
      if (lease !== undefined) return lease;
    }
    return this.any(pick);
  }

  /** Releases its lease and wants it again in the same turn. */
  async again(pick: number): Promise<Lease | undefined> {
    const lease = chosen(this.held, pick);
    if (lease === undefined) return undefined;
    this.release(pick);
    return this.mind((signal) => this.acquire(lease.resource as Resource, signal, pick));
  }

  release(pick: number): void {
    const [lease] = this.held.splice(pick % Math.max(1, this.held.length), 1);
    void lease?.release();
  }

  enter(lease: Lease): Lease {
    this.served += 1;
    const { given } = this.models.get(lease.resource)!;
    // Each caller checks whether it still has it, as a program does before it continues.
    for (const other of given) {
      if (other.remaining() > 0 && lease.remaining() > 0)
        this.wrong.push(`two callers have ${lease.resource}`);
      if (lease.token <= other.token) this.wrong.push(`the token of ${lease.resource} is not greater`);
    }
    given.add(lease);
    // Some want it back as soon as they are notified of its loss.
    if (lease.token % 2n === 0n) lease.signal.addEventListener("abort", () => this.wantBack(lease));
    if (this.ending) void lease.release();
    else this.held.push(lease);
    return lease;
  }

  wantBack({ resource, signal, token }: Lease): void {
    if (this.ending || (signal.reason as LeaseLostError).reason === "released") return;
    this.program(this.mind((mind) => this.acquire(resource as Resource, mind, Number(token))));
  }

  /**
   * Everything is answered from here on, and nobody keeps a lease: all must be served or end, and nothing may
   * be left.
   */
  async end(): Promise<void> {
    this.ending = true;
    while (this.held.length > 0) this.release(0);
    for (let round = 0; round < endRoundsMax; round += 1) {
      await this.world.settle();
      if (this.answerAll() > 0) continue;
      if (this.unsettled === 0) break;
      await this.world.advance(endStepMs);
    }
    if (this.unsettled > 0) this.wrong.push(`${this.unsettled} callers hear nothing`);
    const seen = { closed: false };
    void this.leases.close().then(() => (seen.closed = true));
    await this.world.settle();
    if (!seen.closed) this.wrong.push("a queue is left behind");
    if (this.world.pendingTimers > 0) this.wrong.push("a timer is left behind");
  }

  answerAll(): number {
    const { attempts, releases, renewals } = this.provider;
    const pending = attempts.length + releases.length + renewals.length;
    for (const attempt of attempts.splice(0)) attempt.grant();
    for (const release of releases.splice(0)) release.answer();
    for (const renewal of renewals.splice(0)) renewal.answer(false);
    return pending;
  }
}

function chosen<T>(all: readonly T[], pick: number): T | undefined {
  return all[pick % Math.max(1, all.length)];
}

function taken<T>(all: T[], pick: number): T | undefined {
  return all.splice(pick % Math.max(1, all.length), 1)[0];
}

const scripts = fc.array(step, { minLength: 10, maxLength: 60 });

async function play(steps: readonly Step[]): Promise<Run> {
  const run = new Run();
  for (const each of steps) {
    run.take(each);
    for (let turn = 0; turn < each.turns; turn += 1) await undefined;
    if (each.turns === 12) await run.world.advance(0);
  }
  await run.end();
  return run;
}

/** Plays random scripts until one fails. */
const playMany = (runs: number, look: (run: Run) => void = () => {}, seed?: number) =>
  fc.check(
    fc.asyncProperty(scripts, async (steps) => {
      const run = await play(steps);
      look(run);
      expect(run.wrong).toEqual([]);
    }),
    { numRuns: runs, endOnFailure: true, ...(seed !== undefined && { seed }) },
  );

test("whatever callers do, there is one request and one holder at a time, in order, and nothing is left behind", async () => {
  let served = 0;
  const { failed, counterexample, errorInstance } = await playMany(RUNS, (run) => (served += run.served));
  expect({ failed, counterexample, errorInstance }).toMatchObject({ failed: false });
  expect(served).toBeGreaterThan(2 * RUNS);
});

/** Scripts from this seed find both mistakes soon; other seeds need up to some thousands. */
const seed = 12;

test("without the count of its users a stale queue drops a newer one, and random scripts find it", async () => {
  const found = await duringFaults({ emptyQueueIsDropped: true }, () => playMany(40 * RUNS, undefined, seed));
  expect(found.failed).toBe(true);
});

test("a caller that calls again during the close is found by random scripts, if it may", async () => {
  const found = await duringFaults({ closesBeforeItIsKnown: true }, () =>
    playMany(40 * RUNS, undefined, seed),
  );
  const what = expect.stringContaining("although the participant is closing");
  expect(found.errorInstance).toMatchObject({ actual: expect.arrayContaining([what]) });
});

test("a call that has a lease although a listener aborted it is found by random scripts", async () => {
  const found = await duringFaults({ listenerCannotAbort: true }, () => playMany(40 * RUNS, undefined, seed));
  const what = "a call that a listener aborted has a lease";
  expect(found.errorInstance).toMatchObject({ actual: expect.arrayContaining([what]) });
});
