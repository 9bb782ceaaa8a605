import type { AcquireOptions, Leases } from "../../lease/types.js";
import { check, rejection, type Stage } from "./stage.js";

export const fairnessCases = {
  "callers that wait with `fair` are served in the order of their calls, or such calls are refused": async (
    stage: Stage,
  ) => {
    const alice = await stage.open("alice");
    const others = [await stage.open("bob"), await stage.open("carol"), await stage.open("dave")];
    const held = await stage.take(alice, "fair");
    if (alice.guarantees.fair === "none") {
      await stage.rejectsWith(acquire(stage, alice, "fair"), "UNSUPPORTED", "a fair acquisition");
      return;
    }
    // If the order is strict, each caller has its own place.
    const calls = alice.guarantees.fair === "strict" ? [...others, ...others.toReversed()] : others;
    const order: number[] = [];
    const waiting = calls.map(async (leases, at) => {
      await stage.pass((at * stage.ttlMs) / 4);
      const lease = await acquire(stage, leases, "fair");
      order.push(at);
      await lease.release();
    });
    const all = Promise.all(waiting);
    all.catch(() => undefined);
    await stage.pass((calls.length * stage.ttlMs) / 4);
    await stage.until(held.release(), "release");
    await stage.until(all, "the callers that wait with fair", calls.length * stage.takeoverMs(alice));
    const wanted = calls.map((_, at) => at);
    check(order.join() === wanted.join(), `calls ${wanted.join()} were served in the order ${order.join()}`);
  },

  "a caller in the queue that leaves, or stops, blocks nobody": async (stage: Stage) => {
    const [alice, bob] = [await stage.open("alice"), await stage.open("bob")];
    if (alice.guarantees.fair === "none") return;
    const [carol, dave, erin] = [
      await stage.open("carol"),
      await stage.open("dave"),
      await stage.open("erin"),
    ];
    const held = await stage.take(alice, "line");
    const reason = new Error("the caller gave up");
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = rejection(acquire(stage, bob, "line", { signal }));
    await stage.pass(stage.ttlMs / 4);
    const closed = rejection(acquire(stage, carol, "line"));
    await stage.pass(stage.ttlMs / 4);
    const stopped = acquire(stage, dave, "line");
    stopped.catch(() => undefined);
    await stage.pass(stage.ttlMs / 4);
    const last = acquire(stage, erin, "line");
    last.catch(() => undefined);
    await stage.pass(stage.ttlMs / 4);
    controller.abort(reason);
    check(
      (await stage.until(aborted, "the abort of a place in the queue")) === reason,
      "another reason than the signal's",
    );
    await stage.until(carol.close(), "close");
    await stage.rejectsWith(raise(closed), "CLOSED", "a place in the queue during close");
    await stage.until(held.release(), "release");
    if (stage.ground.freeze === undefined) {
      const lease = await stage.until(stopped, "the next in the queue", stage.takeoverMs(alice));
      await stage.until(lease.release(), "release");
    } else {
      await stage.ground.freeze(dave, stage.takeoverMs(alice));
    }
    const lease = await stage.until(last, "the last in the queue", stage.takeoverMs(alice));
    lease.assertHeld();
  },

  "a caller that does not wait has no place in the queue (INVALID_CONFIG)": async (stage: Stage) => {
    const alice = await stage.open("alice");
    await stage.rejectsWith(
      acquire(stage, alice, "nowait", { wait: 0 }),
      "INVALID_CONFIG",
      "fair with wait: 0",
    );
    const bad = { fair: "yes" } as unknown as AcquireOptions;
    await stage.rejectsWith(acquire(stage, alice, "bad", bad), "INVALID_CONFIG", "fair: yes");
    const lease = await stage.take(alice, "fair/false");
    await stage.until(lease.release(), "release");
  },
};

function acquire(stage: Stage, leases: Leases, resource: string, options: AcquireOptions = {}) {
  const common = { ttl: stage.ttlMs, wait: 40 * stage.takeoverMs(leases), fair: true };
  return leases.acquire(stage.name(resource), { ...common, ...options });
}

async function raise(failure: Promise<unknown>): Promise<void> {
  const error = await failure;
  if (error !== undefined) throw error;
}
