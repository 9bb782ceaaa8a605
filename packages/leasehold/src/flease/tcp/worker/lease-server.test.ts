import { expect, test } from "vitest";
import { emptyReading } from "../../protocol/clock.js";
import type { FleaseProvider } from "../../provider.js";
import { ProgramClock, SharedThreads, SharedValidity } from "../../threads.js";
import { LeaseholdError } from "../../../lease/errors.js";
import { LeaseManager } from "../../../lease/manager/lease-manager.js";
import type { Grant, Provider } from "../../../lease/provider.js";
import { VirtualWorld } from "../../../testing/virtual-world.js";
import { LeaseServer } from "./lease-server.js";
import type { AttemptAnswer, FromWorker } from "./messages.js";

const ttlMs = 900;

/** The renewing thread on a ground that grants everything, and the fate of the grant. */
function serve(world: VirtualWorld) {
  const { clock } = world;
  const threads = new SharedThreads();
  const posted: FromWorker[] = [];
  const seen = { releasedAtMs: 0, remainingAtRelease: -1, letRunOut: 0, distrusted: 0 };
  let [endMs, untilMs] = [0, 0];
  const extend = () => {
    endMs = clock.monotonicMs() + ttlMs;
    untilMs = clock.wallMs() + ttlMs;
  };
  const grant: Grant = {
    resource: "r",
    token: 7n,
    remainingMs: () => Math.max(0, endMs - clock.monotonicMs()),
  };
  let watcher = () => 0;
  const ground: Partial<FleaseProvider> = {
    holder: "c.1",
    attach: () => undefined,
    attempt: async () => {
      extend();
      return { kind: "granted", grant };
    },
    renew: async () => {
      extend();
      return true;
    },
    release: async () => {
      seen.releasedAtMs = clock.monotonicMs();
      seen.remainingAtRelease = watcher();
    },
    validity: () => ({ expiresWallMs: untilMs, expiresMonoMs: endMs, broken: false }),
    clockStart: (epoch) => ({ epoch, monoMs: clock.monotonicMs(), carriedMs: clock.wallMs() }),
    letRunOut: () => void (seen.letRunOut += 1),
    distrustClocks: () => void (seen.distrusted += 1),
  };
  const now = () => {
    const [mono, wall] = [clock.monotonicMs(), clock.wallMs()];
    return { ...emptyReading(), mono, wall, lo: wall, hi: wall };
  };
  threads.signOfLifeMs = clock.monotonicMs();
  const post = (message: FromWorker) => void posted.push(message);
  const flease = ground as FleaseProvider;
  const server = new LeaseServer({ flease, world, now, threads, busyMsMax: 60_000, post });
  /** The program's side of a grant. */
  const taken = (maxHoldMs: number) => {
    const upkeep = { autoRenew: true, maxHoldMs };
    const request = {
      resource: "r",
      ttlMs,
      timeoutMs: 100,
      contended: false,
      waiting: false,
      upkeep,
    };
    server.receive({ type: "attempt", call: 1, request });
  };
  const grantOf = () => {
    const answer = posted.find((message) => message.type === "answer");
    const granted = answer?.value as AttemptAnswer & { kind: "granted" };
    const validity = new SharedValidity(granted.validity);
    const settings = { maxClockSkewMs: 100, clockRateError: 0 };
    const programClock = new ProgramClock(threads, granted.clock, settings, clock);
    const remainingMs = () => validity.remainingMs(() => programClock.read());
    watcher = remainingMs;
    return { id: granted.grant, validity, remainingMs };
  };
  return { server, threads, seen, taken, grantOf, ground, posted };
}

test("maxHold has a single end: a program that learns of its grant late sees no time beyond the release", async () => {
  const world = new VirtualWorld();
  const { seen, taken, grantOf } = serve(world);
  taken(2_000);
  // The program was busy, and its thread learns of the grant only now.
  await world.advance(1_016);
  const { validity, remainingMs } = grantOf();
  const provider: Partial<Provider> = { renewsByItself: true, holder: "c.1", attach: () => undefined };
  const grant = {
    resource: "r",
    token: 7n,
    remainingMs,
    get lossReason() {
      return validity.lossReason;
    },
  };
  provider.attempt = async () => ({ kind: "granted", grant });
  provider.release = async () => undefined;
  (provider as { guarantees: object }).guarantees = { ttlMaxMs: 1_000, ttlMinMs: 1 };
  const leases = new LeaseManager(provider as Provider, world);
  const lease = await leases.acquire("r", { ttl: ttlMs, maxHold: 2_000 });
  await world.advance(700);
  const promisedUntilMs = world.clock.monotonicMs() + lease.remaining();
  await world.advance(1_000);
  expect(seen.releasedAtMs).toBe(2_000);
  expect(promisedUntilMs).toBeLessThanOrEqual(seen.releasedAtMs);
  expect(seen.remainingAtRelease).toBe(0);
  expect(lease.signal.reason).toMatchObject({ reason: "max-hold" });
});

test("clocks that disagree in the program's check are distrusted before its release, which notifies nobody", async () => {
  const world = new VirtualWorld();
  const { server, seen, taken, grantOf } = serve(world);
  taken(Infinity);
  await world.advance(10);
  const { id, remainingMs } = grantOf();
  expect(remainingMs()).toBeGreaterThan(0);
  world.stepWall(-500);
  expect(remainingMs()).toBe(0);
  world.stepWall(500);
  expect(remainingMs()).toBe(0);
  server.receive({ type: "release", call: 2, grant: id, early: true });
  await world.advance(10);
  expect([seen.distrusted, seen.letRunOut, seen.releasedAtMs]).toEqual([1, 1, 10]);
});

test("a queued renewal does not delay a release", async () => {
  const world = new VirtualWorld();
  const { server, seen, taken, grantOf, ground } = serve(world);
  let settle: (longer: boolean) => void = () => undefined;
  ground.renew = () => new Promise((resolve) => (settle = resolve));
  ground.forgoRenewal = () => settle(false);
  taken(Infinity);
  await world.advance(ttlMs / 2);
  server.receive({ type: "release", call: 2, grant: grantOf().id, early: false });
  await world.advance(0);
  expect(seen.releasedAtMs).toBe(ttlMs / 2);
});

test("the thread reports when to retry a refused attempt", async () => {
  const world = new VirtualWorld();
  const { taken, ground, posted } = serve(world);
  ground.attempt = async () => ({
    kind: "failed",
    error: new LeaseholdError("OVERLOADED"),
    retryInMs: 1_000,
  });
  taken(Infinity);
  await world.advance(0);
  expect(posted).toMatchObject([
    { type: "answer", value: { kind: "failed", error: { code: "OVERLOADED" }, retryInMs: 1_000 } },
  ]);
});

test.each([
  [{ autoRenew: true, maxHoldMs: 1_500 }, 10_000 + 1_500],
  [{ autoRenew: false, maxHoldMs: Infinity }, 10_000 + ttlMs],
])("a writer's terms %j begin when its readers have gone, here as well", async (upkeep, endMs) => {
  const world = new VirtualWorld();
  const { server, seen, taken, grantOf, posted } = serve(world);
  taken(Infinity);
  await world.advance(10_000);
  const { id, remainingMs } = grantOf();
  expect(remainingMs()).toBeGreaterThan(0);
  server.receive({ type: "keep", call: 2, grant: id, upkeep });
  await world.advance(10);
  expect(posted).toContainEqual({ type: "answer", call: 2, value: true });
  await world.advance(500);
  expect(remainingMs()).toBeGreaterThan(0);
  await world.advance(5_000);
  expect(remainingMs()).toBe(0);
  expect(seen.releasedAtMs).toBeGreaterThanOrEqual(endMs);
  expect(seen.releasedAtMs).toBeLessThan(endMs + 20);
});
