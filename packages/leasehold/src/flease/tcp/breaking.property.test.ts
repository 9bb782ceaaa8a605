import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ChangingCluster } from "../../../../../test/support/changing-cluster.js";
import { effort } from "../../../../../test/support/effort.js";
import type { FakeNet } from "../../../../../test/support/fake-net.js";
import { duringFaults, type Fault } from "../../../../../test/planted/switches.js";
import { LeaseholdError } from "../../lease/errors.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import type { Lease } from "../../lease/types.js";

/**
 * Leases are broken while members come and go, by a client with hanging connections. The product's own
 * members, clients and connections run in virtual time. A lease that is reported broken is no longer renewed.
 */

const fake = vi.hoisted(() => ({ net: undefined as unknown }));
vi.mock("node:net", async (original) => ({
  ...(await original<object>()),
  connect: (options: never) => (fake.net as FakeNet).connect(options),
  createServer: (accept: never) => (fake.net as FakeNet).createServer(accept),
}));
const use = (net: FakeNet) => void (fake.net = net);

beforeEach(() => void vi.spyOn(globalThis, "setInterval").mockImplementation((() => undefined) as never));
afterEach(() => void vi.restoreAllMocks());

const leasesHeld = 12;

/** All violations of what `break` reports, and how often it reports success. */
async function breakWhileMembersChange(seed: number) {
  const run = new ChangingCluster(use, seed, 3, 3, ["a", "b", "c", "d", "e", "f"]);
  const { world } = run;
  const next = (bound: number) => Math.floor(world.random.next() * bound);
  const sleep = (ms: number) => new Promise<void>((resolve) => world.timers.after(ms, resolve));
  await run.begin();
  const holder = run.startClient("holder");
  for (let index = 0; index < leasesHeld; index += 1) await run.hold(holder, `r${index}`);
  const asker = run.startClient("asker");
  const leases = new LeaseManager(asker.provider, world);
  await run.areConnected();
  // Calls are delayed in transit, or lost with their connection.
  const ask = asker.ask.bind(asker);
  asker.ask = async (member, method, params, timeoutMs) => {
    const isLost = method === "break" && next(2) === 0;
    if (next(5) === 0) await sleep(next(600));
    if (method === "explain") await sleep(explainMs);
    if (isLost) throw new LeaseholdError("UNREACHABLE", "it is lost");
    return ask(member, method, params, timeoutMs);
  };
  let explainMs = 0;

  const wrong: string[] = [];
  const counts = { done: 0, notDone: 0 };
  const breakOne = async (lease: Lease, afterMs: number) => {
    await sleep(afterMs);
    explainMs = next(4) === 0 ? next(2_000) : 0;
    const action = await leases.break(lease.resource, { timeout: "4s" }).catch(() => undefined);
    if (action?.done !== true) {
      counts.notDone += 1;
      return;
    }
    counts.done += 1;
    // All clocks are the same here.
    await sleep(action.remainingMs! + 1);
    if (lease.remaining() > 0)
      wrong.push(`${lease.resource} is held for ${lease.remaining()} ms more than was said`);
  };
  const breaking = Promise.all(run.leases.map((lease) => breakOne(lease, next(8_000))));
  let isBroken = false;
  void breaking.then(() => (isBroken = true));

  for (const kind of ["grows", "replaces", "shrinks"]) {
    const removed = run.pick(run.present);
    const add = kind === "shrinks" ? undefined : run.spare();
    if (add !== undefined) run.startMember(add, run.freePort());
    const change = { ...(add !== undefined && { add }), ...(kind !== "grows" && { remove: removed }) };
    const by = run.pick(run.present.filter((id) => id !== removed));
    if (!(await run.change(by, change))) wrong.push("a change does not end");
  }
  if (!(await run.until(() => isBroken))) wrong.push("a call does not end");
  run.end();
  return { wrong, counts };
}

/** The first seed that finds a violation, and the violation. */
async function search(seeds: number) {
  const total = { done: 0, notDone: 0 };
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { wrong, counts } = await breakWhileMembersChange(seed);
    if (wrong.length > 0) return { found: `seed ${seed}: ${wrong[0]}`, total };
    total.done += counts.done;
    total.notDone += counts.notDone;
  }
  return { found: undefined, total };
}

test("a lease reported broken while members change expires when the report said", async () => {
  const { found, total } = await search(6 * effort);
  expect(found).toBeUndefined();
  if (effort > 1) process.stdout.write(`${JSON.stringify(total)}\n`);
  expect(total.done).toBeGreaterThan(30 * effort);
  expect(total.notDone).toBeGreaterThan(20 * effort);
}, 300_000);

test.each<Fault>(["barGoesWithEntry", "brokenEndsAsItWasSeen"])(
  "the mistake %s is found",
  async (fault) => {
    const { found } = await duringFaults({ [fault]: true }, () => search(40));
    expect(found).toMatch(/ms more than was said/);
  },
  300_000,
);
