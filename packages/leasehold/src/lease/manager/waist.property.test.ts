import { inspect } from "node:util";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { duringFaults, type Fault } from "../../../../../test/planted/switches.js";
import { MemoryGround } from "../../testing/memory-ground.js";
import { MemoryProvider } from "../../testing/memory-provider.js";
import { ProcessSwitch } from "../../testing/process-switch.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import { LeaseManager } from "./lease-manager.js";
import type { World } from "../../common/ports.js";
import type { AttemptOutcome, AttemptRequest, Cancellation, Detachment, Grant } from "../provider.js";
import type { LeaseLostError } from "../errors.js";
import type { Lease, Leases } from "../types.js";

const TTL_MS = 1_000;
const resources = ["a", "b"];

/** Answers late, and records when the waist sends concurrent requests for one resource. */
class SlowProvider extends MemoryProvider {
  readonly overlaps: string[] = [];
  /** How often each tenure was renewed, keyed by token. */
  readonly renewals = new Map<bigint, number>();
  readonly #busy = new Map<string, string>();
  readonly #world: World;

  constructor(ground: MemoryGround, world: World, name: string, process: ProcessSwitch) {
    super(ground, world, { name, ttlMaxMs: TTL_MS, process });
    this.#world = world;
  }

  override attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    return this.#alone(request.resource, "attempt", () => super.attempt(request, cancellation));
  }

  override async renew(grant: Grant, ttlMs: number): Promise<boolean> {
    const isLonger = await this.#alone(grant.resource, "renew", () => super.renew(grant, ttlMs));
    if (isLonger) this.renewals.set(grant.token, (this.renewals.get(grant.token) ?? 0) + 1);
    return isLonger;
  }

  override detach(grant: Grant, pass: string): Promise<boolean> {
    return this.#alone(grant.resource, "detach", () => super.detach(grant, pass));
  }

  override adopt(
    request: AttemptRequest,
    detachment: Detachment,
    cancellation?: Cancellation,
  ): Promise<AttemptOutcome> {
    return this.#alone(request.resource, "adopt", () => super.adopt(request, detachment, cancellation));
  }

  override release(grant: Grant): Promise<void> {
    return this.#alone(grant.resource, "release", () => super.release(grant));
  }

  async #alone<T>(resource: string, call: string, run: () => Promise<T>): Promise<T> {
    const other = this.#busy.get(resource);
    if (other !== undefined) this.overlaps.push(`${call} of ${resource} during ${other}`);
    this.#busy.set(resource, call);
    try {
      await this.#pause();
      const result = await run();
      await this.#pause();
      return result;
    } finally {
      this.#busy.delete(resource);
    }
  }

  #pause(): Promise<void> {
    const delayMs = Math.floor(this.#world.random.next() * 40);
    return new Promise((resolve) => void this.#world.timers.after(delayMs, resolve));
  }
}

const step = fc.record({
  kind: fc.constantFrom(
    "acquire",
    "acquire",
    "try",
    "renew",
    "release",
    "release",
    "detach",
    "attach",
    "attach",
    "abort",
    "cut",
    "reconnect",
    "block",
    "suspend",
    "pass",
    "pass",
  ),
  who: fc.nat(1),
  resource: fc.constantFrom(...resources),
  ms: fc.nat(700),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A detached lease, and the time until which only its handle gives access to the resource. */
interface Blocked {
  readonly resource: string;
  readonly token: bigint;
  readonly handle: string | undefined;
  /** By the steady clock and by the system clock. */
  readonly ends: readonly [number, number];
  /** How often it was attached. */
  attached: number;
  /** A call that tried to attach it was aborted. */
  isGivenUp: boolean;
}

class Run {
  readonly world = new VirtualWorld();
  readonly ground = new MemoryGround();
  readonly switches = [new ProcessSwitch(), new ProcessSwitch()];
  readonly providers = this.switches.map(
    (each, index) => new SlowProvider(this.ground, this.world, `p${index}`, each),
  );
  readonly participants: Leases[] = this.providers.map((provider) => new LeaseManager(provider, this.world));
  readonly leases: Lease[] = [];
  readonly calls = new Set<AbortController>();
  readonly #stories = new Map<Lease, { ended: boolean; lateAfter: number }>();
  readonly #badStories: string[] = [];
  readonly #blocked: Blocked[] = [];
  detached = 0;
  attached = 0;
  unsettled = 0;
  late = 0;

  constructor() {
    for (const leases of this.participants) this.#listen(leases);
  }

  /** Checks that each lease begins once and ends once, and is late again only after a renewal. */
  #listen(leases: Leases): void {
    leases.on("acquired", ({ lease }) => {
      if (this.#stories.has(lease)) this.#badStories.push("a lease began twice");
      this.#stories.set(lease, { ended: false, lateAfter: -1 });
    });
    leases.on("renewal-late", ({ lease, remainingMs }) => {
      const story = this.#stories.get(lease);
      // Renewals are counted, as comparing the end with the former one would fail after a suspension, in
      // which only the system clock advances.
      const renewals = Math.max(...this.providers.map((each) => each.renewals.get(lease.token) ?? 0));
      if (story === undefined || story.ended) this.#badStories.push("late before its begin or after its end");
      else if (renewals === story.lateAfter) this.#badStories.push("late twice although it was not renewed");
      else story.lateAfter = renewals;
      this.late += 1;
      // Some programs release the lease instead of waiting for the outcome.
      if (Math.floor(remainingMs) % 3 === 0) void lease.release();
    });
    const end = (lease: Lease, isLoss: boolean) => {
      const story = this.#stories.get(lease);
      if (story === undefined || story.ended)
        this.#badStories.push("an end without a begin, or a second one");
      else story.ended = true;
      const { reason } = lease.signal.reason as LeaseLostError;
      if (isLoss === ["released", "detached", "closed"].includes(reason))
        this.#badStories.push(`an end (${reason}) that was reported as another`);
    };
    leases.on("lost", ({ lease }) => end(lease, true));
    leases.on("released", ({ lease }) => end(lease, false));
  }

  async take({ kind, who, resource, ms }: Step): Promise<void> {
    switch (kind) {
      case "acquire":
        return this.call((signal) => this.participants[who]!.acquire(resource, { signal, wait: ms * 3 }));
      case "try":
        return this.call((signal) =>
          this.participants[who]!.tryAcquire(resource, { signal, autoRenew: ms % 2 === 0 }),
        );
      case "renew":
        this.leases[ms % this.leases.length]?.renew().catch(() => undefined);
        return undefined;
      case "release":
        return void this.leases[ms % this.leases.length]?.release();
      case "detach":
        return this.detach(this.pick(ms), ms % 3);
      case "attach":
        return this.attach(this.#blocked[this.#blocked.length - 1 - (ms % 2)], who);
      case "abort":
        return void [...this.calls][ms % this.calls.size]?.abort();
      case "cut":
        return this.switches[who]!.cutOff();
      case "reconnect":
        return this.switches[who]!.reconnect();
      case "block":
        return this.world.block(ms);
      case "suspend":
        return this.world.suspend(ms);
      default:
        return this.world.advance(ms);
    }
  }

  /** A held lease, if there is one. */
  pick(ms: number): Lease | undefined {
    const held = this.leases.filter((lease) => lease.remaining() > 0);
    return held[ms % held.length];
  }

  /**
   * Detaches the lease: nobody may get the resource before the reported time is over, by whichever clock
   * reaches the end first.
   */
  detach(lease: Lease | undefined, attachers: number): void {
    lease?.detach().then(
      ({ resource, token, remainingMs, handle }) => {
        const { clock } = this.world;
        const ends = [clock.monotonicMs() + remainingMs, clock.wallMs() + remainingMs] as const;
        const blocked = { resource, token: BigInt(token), handle, ends, attached: 0, isGivenUp: false };
        this.#blocked.push(blocked);
        for (let who = 0; who < attachers; who += 1) this.attach(blocked, who);
        this.detached += 1;
      },
      () => undefined,
    );
  }

  /** Attaches the lease. The first attempt succeeds, unless the lease has expired by either clock. */
  attach(blocked: Blocked | undefined, who: number): void {
    const handle = blocked?.handle;
    if (blocked === undefined || handle === undefined) return;
    const wasRunning = this.#isRunning(blocked);
    this.call(async (signal) => {
      // The lease may have been attached already; it is then released.
      signal.addEventListener("abort", () => (blocked.isGivenUp = true));
      const lease = await this.participants[who]!.attach(handle, { signal });
      this.attached += 1;
      blocked.attached += 1;
      if (!wasRunning) this.#badStories.push("a lease was attached after its end");
      if (blocked.attached > 1) this.#badStories.push("a lease was attached twice");
      return lease;
    });
  }

  #isRunning({ ends }: Blocked): boolean {
    const { clock } = this.world;
    return clock.monotonicMs() < ends[0] && clock.wallMs() < ends[1];
  }

  call(start: (signal: AbortSignal) => Promise<Lease | undefined>): void {
    const controller = new AbortController();
    this.calls.add(controller);
    this.unsettled += 1;
    start(controller.signal)
      .then((lease) => lease !== undefined && this.leases.push(lease))
      .catch(() => undefined)
      .finally(() => {
        this.unsettled -= 1;
        this.calls.delete(controller);
      });
  }

  violations(): string[] {
    const found = [...this.providers.flatMap((provider) => provider.overlaps), ...this.#badStories];
    for (const lease of this.leases) {
      // This comes first, because the check itself may end the lease.
      const isOver = lease.remaining() === 0;
      if (this.#stories.get(lease)?.ended !== isOver)
        found.push(`the events of ${lease.resource} do not match its state`);
    }
    for (const blocked of this.#blocked) {
      const { resource, token, attached, isGivenUp } = blocked;
      const next = this.leases.find((lease) => lease.resource === resource && lease.token > token);
      if (attached === 0 && !isGivenUp && this.#isRunning(blocked) && next !== undefined)
        found.push(`${resource} was had while a detached lease ran`);
    }
    for (const resource of resources) {
      const leases = this.leases.filter((lease) => lease.resource === resource);
      if (leases.filter((lease) => lease.remaining() > 0).length > 1) found.push(`two hold ${resource}`);
      if (leases.some((lease, index) => index > 0 && lease.token <= leases[index - 1]!.token)) {
        found.push(`the tokens of ${resource} go back`);
      }
    }
    return found;
  }
}

let late = 0;
let tenures = 0;
let detached = 0;
let attached = 0;

async function play(steps: readonly Step[]): Promise<void> {
  const run = new Run();
  for (const each of steps) {
    await run.take(each);
    await run.world.settle();
    expect(run.violations()).toEqual([]);
  }
  const closing = Promise.all(run.participants.map((leases) => leases.close()));
  await run.world.advance("3s");
  await closing;
  expect(run.violations()).toEqual([]);
  expect(run.unsettled).toBe(0);
  expect(run.leases.every((lease) => lease.remaining() === 0 && lease.signal.aborted)).toBe(true);
  expect(run.world.pendingTimers).toBe(0);
  tenures += run.leases.length;
  late += run.late;
  detached += run.detached;
  attached += run.attached;
}

const search = (parameters: { readonly numRuns: number; readonly seed?: number }) =>
  fc.check(fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), play), {
    ...parameters,
    endOnFailure: true,
  });

test("whatever happens, there is one holder and one request at a time, every call ends, nothing is left behind, and listeners are notified of all of it", async () => {
  const { failed, counterexample, errorInstance } = await search({ numRuns: 200 });
  expect({ failed, counterexample, errorInstance }).toMatchObject({ failed: false });
  // The test proves something only if all of this happened. The bounds are far below the usual counts, to
  // allow for other seeds: twelve runs had at least 344, 23, 83 and 19.
  expect(tenures).toBeGreaterThan(100);
  expect(late).toBeGreaterThan(3);
  expect(detached).toBeGreaterThan(20);
  expect(attached).toBeGreaterThan(2);
});

test("a renewal that is late again after one that succeeded is reported again, although a suspension has consumed the extension", async () => {
  const script: Step[] = [
    { kind: "acquire", who: 1, resource: "a", ms: 414 },
    { kind: "pass", who: 1, resource: "b", ms: 371 },
    { kind: "acquire", who: 0, resource: "b", ms: 291 },
    { kind: "renew", who: 1, resource: "b", ms: 541 },
    { kind: "cut", who: 1, resource: "a", ms: 29 },
    { kind: "pass", who: 1, resource: "a", ms: 232 },
    { kind: "acquire", who: 0, resource: "a", ms: 614 },
    { kind: "pass", who: 1, resource: "b", ms: 103 },
    { kind: "reconnect", who: 1, resource: "b", ms: 697 },
    { kind: "suspend", who: 0, resource: "a", ms: 678 },
    { kind: "pass", who: 1, resource: "a", ms: 521 },
  ];
  await expect(play(script)).resolves.toBeUndefined();
});

/** With this seed, 200 scripts find each mistake below; other seeds may need several thousand. */
const seed = 10;

test.each<[Fault, RegExp]>([
  ["lossIsToldAsRelease", /that was reported as another/],
  // A listener may have released or detached the lease.
  ["releasedWhenLateIsRenewed", /during release|while a detached lease ran/],
  ["lateIsToldEachTime", /late twice although it was not renewed/],
  ["detachedBlocksOthersAlone", /the tokens of/],
  ["detachedIsHeld", /do not match its state/],
  ["attachedPassIsGood", /was attached twice/],
])("the mistake %s is found by random scripts", async (fault, what) => {
  const found = await duringFaults({ [fault]: true }, () => search({ numRuns: 2_000, seed }));
  expect(inspect(found.errorInstance)).toMatch(what);
});
