import fc from "fast-check";
import { expect, test } from "vitest";
import { atomic, delayMs, PaperBench } from "../../../../../test/support/paper-bench.js";
import { Consensus } from "./consensus.js";
import { Nonces } from "./site.js";

function proposer(bench: PaperBench, writer: string, isLeader: () => boolean, nonces = new Nonces()) {
  const player = bench.player(writer);
  const { farm } = bench;
  const options = {
    farm,
    name: "consensus/c",
    timeoutMs: delayMs,
    writer,
    nonces,
    isLeader,
    pollMs: delayMs,
  };
  const cancellation = { cancelled: false, onCancel: undefined as (() => void) | undefined };
  const consensus = new Consensus(options);
  const decided = player.run(consensus.propose(`${writer}'s`), cancellation);
  return { decided, cancellation };
}

test("one leader decides its proposal, and processes that never lead learn it", async () => {
  const bench = new PaperBench(atomic);
  const all = ["a", "b", "c"].map((name) => proposer(bench, name, () => name === "b"));
  expect(await bench.wait(Promise.all(all.map(({ decided }) => decided)))).toEqual(["b's", "b's", "b's"]);
});

test("a leader adopts a value that was written before, and does not decide its own proposal", async () => {
  const bench = new PaperBench(atomic);
  expect(await bench.wait(proposer(bench, "a", () => true).decided)).toBe("a's");
  expect(await bench.wait(proposer(bench, "b", () => true).decided)).toBe("a's");
});

test("without a leader no process decides, and one that is cancelled ends without a decision", async () => {
  const bench = new PaperBench(atomic);
  const { decided, cancellation } = proposer(bench, "a", () => false);
  await bench.world.advance(20 * delayMs);
  cancellation.cancelled = true;
  cancellation.onCancel?.();
  expect(await bench.wait(decided)).toBeUndefined();
});

test("a leader decides even if a minority of stores never answers", async () => {
  const bench = new PaperBench(atomic);
  bench.media[1]!.stall("answers");
  expect(await bench.wait(proposer(bench, "a", () => true).decided)).toBe("a's");
});

test("any number of leaders at once agree, and all decide once there is one", async () => {
  const latency = fc.record({
    request: fc.integer({ min: 0, max: 90 }),
    answer: fc.integer({ min: 0, max: 90 }),
  });
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 1_000_000 }),
    fc.array(fc.tuple(latency, latency, latency), { minLength: 3, maxLength: 6 }),
    async (seed, storms) => {
      const bench = new PaperBench(atomic, seed);
      let isStorm = true;
      const names = ["a", "b", "c", "d"];
      const leads = (name: string) => (isStorm ? bench.world.random.next() < 0.7 : name === "c");
      const all = names.map((name) => proposer(bench, name, () => leads(name)));
      for (const storm of storms) {
        bench.media.forEach((medium, store) => (medium.latencyMs = storm[store]!));
        await bench.world.advance(3 * delayMs);
      }
      isStorm = false;
      for (const medium of bench.media) medium.latencyMs = { request: 1, answer: 1 };
      const decisions = await bench.wait(Promise.all(all.map(({ decided }) => decided)));
      expect(new Set(decisions).size).toBe(1);
      expect(names.map((name) => `${name}'s`)).toContain(decisions[0]);
    },
  );
  await fc.assert(property, { numRuns: 40 });
});

test("any number of objects of one process agree, each with its own ranks", async () => {
  const decisions = async (seed: number) => {
    const bench = new PaperBench(atomic, seed);
    bench.media.forEach(
      (medium, store) => (medium.latencyMs = { request: 5 * store, answer: 20 - 5 * store }),
    );
    const nonces = new Nonces();
    const proposed = ["one", "two"].map((name) => {
      const player = bench.player("a");
      const options = { farm: bench.farm, name: "c", timeoutMs: delayMs, writer: "a", nonces };
      const consensus = new Consensus({ ...options, isLeader: () => true, pollMs: delayMs });
      return player.run(consensus.propose(name));
    });
    return new Set(await bench.wait(Promise.all(proposed))).size;
  };
  expect(await decisions(1)).toBe(1);
});
