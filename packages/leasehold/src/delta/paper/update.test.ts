import { expect, test } from "vitest";
import { PaperBench } from "../../../../../test/support/paper-bench.js";
import { LeaseholdError } from "../../lease/errors.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import type { StoreTraits } from "../store.js";
import { update } from "./update.js";

const register = "x";
const [old, next] = [new Uint8Array([1]), new Uint8Array([2])];
const delayMs = 50;

/**
 * Writes `next` to five stores, the k-th of which answers after `latenciesMs[k]`. The contents of the first
 * two are unknown.
 */
function stage(latenciesMs: readonly number[], first: StoreTraits["kind"] = "atomic") {
  const bench = new PaperBench([first, "atomic", "atomic", "atomic", "atomic"]);
  const contents = bench.media.map((medium, store) => {
    medium.latencyMs = { request: 0, answer: latenciesMs[store]! };
    if (medium.traits.kind === "slotted") return undefined;
    medium.plant(register, old);
    return store < 2 ? undefined : old;
  });
  const step = () => ({ kind: "write", next }) as const;
  const begun = bench.now();
  const wanted = { register, contents, step, begun, timeoutMs: delayMs };
  const run = async () => {
    const { kind, ended } = await bench.wait(bench.player("alice").driver.run(update(bench.farm, wanted)));
    return `${kind} after ${ended.monotonicMs - begun.monotonicMs} ms`;
  };
  return { bench, contents, run };
}

test("a store that acknowledges an earlier round counts, and the write ends when that makes a majority", async () => {
  // Two conflicts and an acknowledgement begin a new round; the other stores answer right after.
  const latenciesMs = [20, 20, 20, 21, 22];
  expect(await stage(latenciesMs).run()).toBe("done after 22 ms");
  await duringFaults({ lateAnswersForgotten: true }, async () =>
    expect(await stage(latenciesMs).run()).toBe("done after 40 ms"),
  );
});

test("an acknowledgement of an earlier round after the write has ended changes nothing", async () => {
  const { bench, contents, run } = stage([20, 20, 20, 21, 45]);
  expect(await run()).toBe("done after 40 ms");
  const known = contents.slice();
  await bench.world.advance(100);
  expect(contents).toEqual(known);
  expect(contents).toEqual([next, old, next, next, old]);
});

test.each([undefined, new LeaseholdError("STORE_UNAVAILABLE")])(
  "a store that acknowledges an earlier round counts once, even if it answers this one (with failure: %s)",
  async (failing) => {
    const { bench, run } = stage([21, 20, 20, 20, 1_000], "slotted");
    // The assumed content differs from the actual one. The second refusal begins a new round.
    bench.media[3]!.plant(register, new Uint8Array([3]));
    const running = run();
    await bench.world.advance(19);
    bench.media[0]!.failing = failing;
    for (const store of [1, 3]) bench.media[store]!.latencyMs.answer = 24 + store;
    expect(await running).toBe("done after 45 ms");
    expect(bench.media.map(({ performed }) => performed.replace)).toEqual([0, 2, 1, 2, 2]);
  },
);
