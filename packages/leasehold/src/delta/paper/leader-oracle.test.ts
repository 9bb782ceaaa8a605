import { expect, test } from "vitest";
import {
  atomic,
  delayMs,
  leaseMs,
  PaperBench,
  recordOf,
  slotted,
} from "../../../../../test/support/paper-bench.js";
import { decodeRecord, encodeRecord } from "../record/codec.js";
import { leaseRegister } from "../record/registers.js";
import { LeaderOracle } from "./leader-oracle.js";

class Candidates {
  readonly bench = new PaperBench(slotted);
  readonly all = ["alice", "bob", "carol"].map((name) => {
    const player = this.bench.player(name);
    const oracle = new LeaderOracle(player.site({ resource: "leader" }));
    const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
    return { name, oracle, cancellation, ended: player.run(oracle.run(), cancellation) };
  });

  leaders(): string[] {
    return this.all.filter(({ oracle }) => oracle.isLeader(this.bench.now())).map(({ name }) => name);
  }

  /** Every process that led within this time, in order. */
  async led(ms: number): Promise<string[]> {
    const led = new Set<string>();
    for (let passedMs = 0; passedMs < ms; passedMs += 10) {
      await this.bench.world.advance(10);
      const leaders = this.leaders();
      if (leaders.length > 1) throw new Error(`${leaders.join(" and ")} both lead`);
      for (const leader of leaders) led.add(leader);
    }
    return [...led];
  }

  end(name: string): void {
    const { cancellation } = this.all.find((each) => each.name === name)!;
    cancellation.cancelled = true;
    cancellation.onCancel?.();
  }
}

const takeoverMs = leaseMs + 8 * delayMs;

test("one of the candidates leads, never two, and it is the same as long as it renews", async () => {
  const candidates = new Candidates();
  const led = await candidates.led(6 * takeoverMs);
  expect(led.length).toBe(1);
  expect(candidates.leaders()).toEqual(led);
});

test("a leader renews at a third of Δ", async () => {
  const { bench, all } = new Candidates();
  await bench.world.advance(takeoverMs + 1);
  const leader = all.find(({ oracle }) => oracle.isLeader(bench.now()))!;
  const { state } = leader.oracle;
  const before = state.state === "hold" ? state.record.number : 0n;
  await bench.world.advance(3 * (leaseMs / 3 + 1));
  const after = leader.oracle.state;
  expect(after.state === "hold" && after.record.number - before).toBe(3n);
});

test("a leader that ends gives up its leadership, and another follows", async () => {
  const candidates = new Candidates();
  const [first] = await candidates.led(takeoverMs + 50);
  candidates.end(first!);
  await candidates.bench.world.settle();
  expect(candidates.leaders()).toEqual([]);
  const [second, ...others] = await candidates.led(2 * takeoverMs);
  expect(second).toBeDefined();
  expect(second).not.toBe(first);
  expect(others).toEqual([]);
  expect(await candidates.all.find(({ name }) => name === first)!.ended).toMatchObject({ state: "idle" });
});

test("a leader whose renewal fails no longer leads, and contends again", async () => {
  const candidates = new Candidates();
  const { bench } = candidates;
  const [first] = await candidates.led(takeoverMs + 50);
  const usurper = encodeRecord(recordOf({ resource: "leader", writer: "usurper", number: 1_000n }));
  for (const medium of bench.media) medium.plant(leaseRegister("leader"), usurper, "usurper");
  await bench.world.advance(leaseMs / 3 + delayMs);
  expect(candidates.leaders()).toEqual([]);
  expect(candidates.all.find(({ name }) => name === first)!.oracle.state).toMatchObject({ because: "lost" });
  expect((await candidates.led(2 * takeoverMs)).length).toBe(1);
});

test("a leader that was stopped until its lease expired does not lead when it resumes", async () => {
  const candidates = new Candidates();
  const { bench } = candidates;
  const [first] = await candidates.led(takeoverMs + 50);
  const { oracle } = candidates.all.find(({ name }) => name === first)!;
  expect(oracle.isLeader(bench.now())).toBe(true);
  const { state } = oracle;
  const leftMs = state.state === "hold" ? state.remainingMs(bench.now()) : 0;
  // The process has been stopped without noticing it yet.
  bench.world.block(leftMs);
  expect(oracle.isLeader(bench.now())).toBe(false);
});

test.each(Object.entries({ slotted, atomic }))(
  "a process that ends at any moment, even in the middle of a renewal, leaves no majority held: %s stores",
  async (_kind, kinds) => {
    // Contending, a third of Δ, and a renewal. Where stores can only write, a failed claim expires by itself.
    const contendMs = kinds === atomic ? 0 : leaseMs + 8 * delayMs + 100;
    for (let ms = contendMs; ms < contendMs + leaseMs / 3 + 4 * delayMs; ms += 7) {
      const bench = new PaperBench(kinds);
      for (const medium of bench.media) medium.latencyMs = { request: 10, answer: 10 };
      const player = bench.player("alice");
      const oracle = new LeaderOracle(player.site({ resource: "leader" }));
      const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
      const ended = player.run(oracle.run(), cancellation);
      await bench.world.advance(ms);
      cancellation.cancelled = true;
      cancellation.onCancel?.();
      await bench.wait(ended);
      await bench.world.advance(delayMs);
      const states = bench.media.flatMap((medium) =>
        medium.cells(leaseRegister("leader")).map((cell) => decodeRecord(cell).state),
      );
      const held = states.filter((state) => state === "held").length;
      expect({ ms, isHeld: held >= bench.farm.majority }).toEqual({ ms, isHeld: false });
    }
  },
);
