import { expect, test } from "vitest";
import { VirtualWorld } from "../testing/virtual-world.js";
import { numberAt } from "./protocol/ballot.js";
import { fleaseSettings } from "./protocol/settings.js";
import { Kind, Message } from "./protocol/message.js";
import { FleaseRunner } from "./runner.js";

const settings = fleaseSettings({
  members: ["a", "b", "c"],
  maxClockSkewMs: 10,
  clockRateError: 0,
  ttlMaxMs: 1_000,
  rpcTimeoutMs: 100,
});

/** A member that counts its maintenance runs. */
function member() {
  const world = new VirtualWorld();
  const counts = { looks: 0 };
  const may = { restUntil: Infinity };
  const runner: FleaseRunner = new FleaseRunner({
    settings,
    acceptor: true,
    world,
    medium: { send: () => {}, reaches: () => true, notify: () => true },
    owner: () => "a.1",
    clockFault: () => {},
    maintained: () => void (counts.looks += 1),
    restsUntil: (mono) => mono <= may.restUntil,
  });
  const looksIn = async (ms: number) => {
    const before = counts.looks;
    await world.advance(ms);
    return counts.looks - before;
  };
  /** A client acquires: one chunk arrives. */
  const asked = () => {
    const { wall } = runner.arrived();
    const number = numberAt(wall);
    const request = { view: 1, resource: "r", owner: "p.1", kind: Kind.acquire, number };
    runner.receive(1_000, Object.assign(new Message(), request, { until: wall + 500, duration: 500 }));
    runner.poke();
  };
  runner.maintain();
  return { world, runner, may, looksIn, asked };
}

test("an idle member runs its maintenance once a second, not ten times", async () => {
  const { looksIn } = member();
  expect(await looksIn(900)).toBe(9); // The peer is in its recovery wait.
  await looksIn(5_000);
  expect(await looksIn(10_000)).toBe(10);
});

test("a resting member wakes at once for a request, and then runs as often as before", async () => {
  const { world, runner, looksIn, asked } = member();
  await looksIn(6_500);
  asked();
  expect(runner.peer.acceptor!.size).toBe(1);
  expect(await looksIn(1)).toBe(1);
  expect(await looksIn(1_000)).toBe(10);
  // It rests again when the lease is over and its entry has been discarded.
  await world.advance(10_000);
  expect(runner.peer.acceptor!.size).toBe(0);
  expect(await looksIn(10_000)).toBe(10);
});

test("a member whose vote is certain for less than a second does not rest; a resting one that learns this checks at once", async () => {
  const { world, runner, may, looksIn } = member();
  await looksIn(6_500);
  may.restUntil = world.clock.monotonicMs() + 100;
  runner.poke();
  expect(await looksIn(1)).toBe(1);
  expect(await looksIn(1_000)).toBe(10);
  runner.end();
  expect(await looksIn(1_000)).toBe(0);
});
