import { describe, expect, test } from "vitest";
import {
  atomic,
  delayMs,
  leaseMs,
  PaperBench,
  seenOf,
  slotted,
} from "../../../../../test/support/paper-bench.js";
import { requestRegister } from "../record/registers.js";
import { PaperLease, type PaperTenure } from "./paper-lease.js";

class Stage {
  readonly bench = new PaperBench(slotted);

  process(name: string) {
    const { bench } = this;
    const player = bench.player(name);
    const lease = new PaperLease(player.environment);
    const attempt = (patienceMs: number) => {
      const deadlineMs = bench.nowMs + patienceMs;
      return bench.wait(player.run(lease.attempt({ resource: "r", leaseMs, deadlineMs })));
    };
    return {
      player,
      lease,
      attempt,
      renew: (tenure: PaperTenure) => bench.wait(player.run(lease.renew(tenure, leaseMs))),
      take: async () => {
        const result = await attempt(leaseMs + 8 * delayMs);
        if (result.kind !== "granted") throw new Error(result.kind);
        return result.tenure;
      },
    };
  }
}

describe("contend, split at its waits into attempts", () => {
  test("waits within the attempt for a free or never written register, if the deadline allows", async () => {
    const stage = new Stage();
    const { attempt } = stage.process("alice");
    expect((await attempt(leaseMs + 6 * delayMs - 1)).kind).toBe("held");
    expect(stage.bench.nowMs).toBe(0);
    expect((await attempt(leaseMs + 6 * delayMs + 1)).kind).toBe("granted");
    expect(stage.bench.nowMs).toBe(leaseMs + 8 * delayMs);
  });

  test("reports at once that another process holds, and when to check again", async () => {
    const stage = new Stage();
    await stage.process("alice").take();
    const nowMs = stage.bench.nowMs;
    const result = await stage.process("bob").attempt(100_000);
    expect(result).toEqual({ kind: "held", holder: "alice", retryInMs: 5 });
    expect(stage.bench.nowMs).toBe(nowMs);
  });

  test("continues from the last attempt: a crashed holder is replaced Δ + 6δ after it was seen", async () => {
    const stage = new Stage();
    await stage.process("alice").take();
    const bob = stage.process("bob");
    const seenMs = stage.bench.nowMs;
    for (;;) {
      const result = await bob.attempt(50);
      if (result.kind === "granted") break;
      await stage.bench.world.advance(result.kind === "held" ? result.retryInMs : delayMs);
    }
    const tookMs = stage.bench.nowMs - seenMs;
    expect(tookMs).toBeGreaterThanOrEqual(leaseMs + 8 * delayMs);
    expect(tookMs).toBeLessThanOrEqual(bob.lease.takeoverMsMax);
  });

  test("has rising tokens that identify the writer: two simultaneous winners never share one", async () => {
    const stage = new Stage();
    const alice = stage.process("alice");
    const first = await alice.take();
    await stage.bench.wait(alice.player.run(alice.lease.release(first)));
    const second = await stage.process("bob").take();
    expect(second.token >> 32n).toBe((first.token >> 32n) + 1n);
    expect(second.token & 0xffffffffn).not.toBe(first.token & 0xffffffffn);
    const plain = new PaperBench(atomic);
    const carol = plain.player("carol");
    const lease = new PaperLease(carol.environment);
    const result = await plain.wait(carol.run(lease.attempt({ resource: "r", leaseMs, deadlineMs: 1_000 })));
    expect(result.kind === "granted" && result.tenure.token).toBe(1n);
  });
});

test("a process never chooses the same token twice, whatever happened to its record", () => {
  const player = new PaperBench(slotted).player("alice");
  // While delays are not bounded, a process that had not seen it may have overwritten it.
  const epochs = [1, 2, 3].map(() => player.site().recordAfter(seenOf()).epoch);
  expect(new Set(epochs).size).toBe(3);
});

describe("a tenure", () => {
  test("is longer after a renewal, counted from before its write", async () => {
    const stage = new Stage();
    const alice = stage.process("alice");
    const tenure = await alice.take();
    await stage.bench.world.advance(500);
    expect(await alice.renew(tenure)).toBe(true);
    expect(tenure.remainingMs(stage.bench.now())).toBe(leaseMs - 2 * delayMs);
  });

  test("has ended at once when a renewal was slower than δ, and its record is not touched", async () => {
    const stage = new Stage();
    const alice = stage.process("alice");
    const tenure = await alice.take();
    for (const medium of stage.bench.media) medium.latencyMs = { request: delayMs, answer: delayMs };
    expect(await alice.renew(tenure)).toBe(false);
    expect(tenure.remainingMs(stage.bench.now())).toBe(0);
    const puts = stage.bench.media.map(({ performed }) => performed.put);
    await stage.bench.wait(alice.player.run(alice.lease.release(tenure)));
    await stage.bench.world.advance(4 * delayMs);
    expect(stage.bench.media.map(({ performed }) => performed.put)).toEqual(puts);
  });
});

describe("a request to a holder", () => {
  const asked = { by: "bob", broken: false };

  test("is received with the next renewal, once", async () => {
    const stage = new Stage();
    const [alice, bob] = [stage.process("alice"), stage.process("bob")];
    const tenure = await alice.take();
    const said = await stage.bench.wait(bob.player.run(bob.lease.ask("r", asked, delayMs)));
    expect(said).toMatchObject({ holderView: { state: "held" }, stores: 2 });
    expect(tenure.asked).toBeUndefined();
    await alice.renew(tenure);
    expect(tenure.asked).toEqual(asked);
    tenure.asked = undefined;
    await alice.renew(tenure);
    expect(tenure.asked).toBeUndefined();
  });

  test("to break is permanent: the tenure is no longer renewed, and expires as broken", async () => {
    const stage = new Stage();
    const [alice, bob] = [stage.process("alice"), stage.process("bob")];
    const tenure = await alice.take();
    await stage.bench.wait(bob.player.run(bob.lease.ask("r", { ...asked, broken: true }, delayMs)));
    await stage.bench.wait(bob.player.run(bob.lease.ask("r", asked, delayMs)));
    const before = tenure.remainingMs(stage.bench.now());
    expect(await alice.renew(tenure)).toBe(false);
    const leftMs = tenure.remainingMs(stage.bench.now());
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(before);
    const { record } = await stage.bench.wait(bob.player.run(bob.lease.look("r", delayMs)));
    expect(record?.asked?.broken).toBe(true);
    await stage.bench.world.advance(leaseMs);
    expect(tenure.remainingMs(stage.bench.now())).toBe(0);
    expect(tenure.lost).toBe("broken");
  });

  test("to an earlier tenure does not affect a later one", async () => {
    const stage = new Stage();
    const [alice, bob] = [stage.process("alice"), stage.process("bob")];
    const first = await alice.take();
    await stage.bench.wait(bob.player.run(bob.lease.ask("r", { ...asked, broken: true }, delayMs)));
    await stage.bench.wait(alice.player.run(alice.lease.release(first)));
    const second = await alice.take();
    expect(await alice.renew(second)).toBe(true);
    expect(second.asked).toBeUndefined();
  });

  /** The bytes of a request to the first tenure, which are the same in every stage. */
  async function requestOf(writer: string, broken: boolean): Promise<Uint8Array> {
    const stage = new Stage();
    const [alice, other] = [stage.process("alice"), stage.process(writer)];
    await alice.take();
    await stage.bench.wait(other.player.run(other.lease.ask("r", { by: writer, broken }, delayMs)));
    return stage.bench.media[0]!.cells(requestRegister("r"))[0]!;
  }

  test("to break that its sender left incomplete is repeated: one store is no majority", async () => {
    const stage = new Stage();
    const [alice, carol] = [stage.process("alice"), stage.process("carol")];
    await alice.take();
    stage.bench.media[0]!.plant(requestRegister("r"), await requestOf("bob", true), "bob");
    const wish = { by: "carol", broken: true };
    const said = await stage.bench.wait(carol.player.run(carol.lease.ask("r", wish, delayMs)));
    expect(said.stores).toBeGreaterThan(1);
    await stage.bench.world.advance(2 * delayMs);
    expect(stage.bench.media.map((medium) => medium.cells(requestRegister("r")).length)).toEqual([2, 1, 1]);
  });

  test("to break counts even next to one of the same number that only requests a release", async () => {
    const stage = new Stage();
    const alice = stage.process("alice");
    const tenure = await alice.take();
    for (const medium of stage.bench.media) {
      medium.plant(requestRegister("r"), await requestOf("bob", true), "bob");
      medium.plant(requestRegister("r"), await requestOf("zoe", false), "zoe");
    }
    expect(await alice.renew(tenure)).toBe(false);
    expect(tenure.asked).toEqual({ by: "bob", broken: true });
  });

  test("for a free resource reaches nobody", async () => {
    const stage = new Stage();
    const bob = stage.process("bob");
    const said = await stage.bench.wait(bob.player.run(bob.lease.ask("r", asked, delayMs)));
    expect(said).toMatchObject({ holderView: { state: "free" }, stores: 0 });
    expect(stage.bench.media.map(({ performed }) => performed.put)).toEqual([0, 0, 0]);
  });
});
