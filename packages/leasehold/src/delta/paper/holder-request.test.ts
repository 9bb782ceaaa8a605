import { describe, expect, test } from "vitest";
import {
  type Player,
  PaperBench,
  delayMs,
  leaseMs,
  seenOf,
} from "../../../../../test/support/paper-bench.js";
import type { HolderView } from "../lease-protocol.js";
import { requestRegister } from "../record/registers.js";
import { RequestsUnderWay, leaveRequest, requestTo } from "./holder-request.js";

const farms = {
  slots: ["slotted", "slotted", "slotted"],
  "compare-and-set": ["atomic", "atomic", "atomic"],
  "both kinds": ["slotted", "atomic", "atomic"],
} as const;

/** Processes that leave requests for the holder that they see. */
class Stage {
  readonly bench: PaperBench;

  constructor(kinds: (typeof farms)[keyof typeof farms]) {
    this.bench = new PaperBench(kinds);
  }

  process(name: string) {
    const player = this.bench.player(name);
    const underWay = new RequestsUnderWay();
    const leave = (token: bigint, broken: boolean) =>
      player.run(
        leaveRequest(player.environment, underWay, "r", { by: name, broken }, this.#heldWith(player, token)),
      );
    return {
      begin: leave,
      /** Returns whether the request was left. */
      leave: async (token: bigint, broken: boolean) =>
        (await this.bench.wait(leave(token, broken))).stores > 0,
    };
  }

  async asked(token: bigint) {
    const { environment, run } = this.bench.player("holder");
    const { asked } = await this.bench.wait(run(requestTo(environment, "r", token)));
    return asked;
  }

  async isBroken(token: bigint) {
    return (await this.asked(token))?.broken === true;
  }

  #heldWith(player: Player, token: bigint): HolderView {
    const record = { ...player.site().recordAfter(seenOf()), epoch: token };
    return { state: "held", confirmed: false, record, remainingMs: leaseMs, stores: [] };
  }
}

describe.each(Object.entries(farms))("on %s", (_, kinds) => {
  test.each(["bob", "carol"])("a break stays when %s makes a request of an earlier tenure", async (name) => {
    const stage = new Stage(kinds);
    expect(await stage.process("bob").leave(4n, true)).toBe(true);
    const later = stage.process(name);
    expect([await later.leave(2n, true), await later.leave(3n, false)]).toEqual([true, true]);
    expect([await stage.isBroken(4n), await stage.isBroken(5n)]).toEqual([true, false]);
  });

  test.each(["bob", "carol"])("a break stays when %s asks a later tenure to release", async (name) => {
    const stage = new Stage(kinds);
    expect(await stage.process("bob").leave(2n, true)).toBe(true);
    expect(await stage.process(name).leave(4n, false)).toBe(true);
    expect([await stage.isBroken(2n), await stage.isBroken(3n)]).toEqual([true, false]);
    expect(await stage.asked(4n)).toEqual({ by: name, broken: false });
  });

  test.each([2n, 4n])(
    "of two calls at once the request to %s that is written last leaves the break",
    async (token) => {
      const stage = new Stage(kinds);
      const bob = stage.process("bob");
      for (const medium of stage.bench.media) medium.latencyMs = { request: 1, answer: delayMs - 2 };
      const slow = bob.begin(token, false);
      await stage.bench.world.advance(1);
      for (const medium of stage.bench.media) medium.latencyMs = { request: 1, answer: 1 };
      expect(await bob.leave(4n, true)).toBe(true);
      expect(await stage.isBroken(4n)).toBe(true);
      await stage.bench.wait(slow);
      expect(await stage.isBroken(4n)).toBe(true);
    },
  );
});

test("a greater number replaces no break that its sender has not seen", async () => {
  const stage = new Stage(farms["compare-and-set"]);
  const [first, second, third] = stage.bench.media;
  // One store has a request with a greater number, which carol sees and bob does not.
  const other = new Stage(farms["compare-and-set"]);
  for (const token of [1n, 2n, 3n]) await other.process("zoe").leave(token, false);
  second!.plant(requestRegister("r"), other.bench.media[1]!.cells(requestRegister("r"))[0]!, "zoe");
  const slowly = { request: 1, answer: delayMs - 2 };
  for (const medium of [first!, second!]) medium.latencyMs = slowly;
  third!.latencyMs = { request: delayMs, answer: delayMs };
  const slow = stage.process("carol").begin(2n, true);
  await stage.bench.world.advance(1);
  second!.latencyMs = { request: delayMs, answer: delayMs };
  for (const medium of [first!, third!]) medium.latencyMs = { request: 1, answer: 1 };
  expect(await stage.process("bob").leave(4n, true)).toBe(true);
  for (const medium of stage.bench.media) medium.latencyMs = { request: 1, answer: 1 };
  await stage.bench.wait(slow);
  await stage.bench.world.advance(4 * delayMs);
  expect(await stage.isBroken(4n)).toBe(true);
});
