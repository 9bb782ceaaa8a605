import { expect, test } from "vitest";
import { baseMs, benchSettings, message } from "../../test/support/flease-bench.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { Kind, Message, copyMessage } from "./message.js";
import { FleasePeer } from "./peer.js";
import { FleaseProvider } from "./provider.js";
import type { FleaseDriver } from "./provider.js";

/** A provider whose members answer when a test says so, and whose peer nobody wakes. */
function benchProvider() {
  const world = new VirtualWorld();
  const sent: Message[] = [];
  const driver: FleaseDriver = {
    peer: undefined as unknown as FleasePeer,
    now: () => peer.read(baseMs + world.clock.monotonicMs(), world.clock.wallMs()),
    poke: () => undefined,
    ask: () => Promise.reject(new Error("nobody answers")),
    address: () => "",
    timers: world.timers,
    random: world.random,
    reachable: () => 3,
    refusal: () => undefined,
    close: () => Promise.resolve(),
  };
  let provider: FleaseProvider;
  const sink = {
    send: (_to: number, out: Message) => sent.push(copyMessage(out)),
    tell: () => true,
    hinted: () => false,
    clockFault: () => undefined,
    acquired: (slot: Parameters<FleaseProvider["acquired"]>[0]) => provider.acquired(slot),
    refused: (...told: Parameters<FleaseProvider["refused"]>) => provider.refused(...told),
    unanswered: (...told: Parameters<FleaseProvider["unanswered"]>) => provider.unanswered(...told),
    renewed: (...told: Parameters<FleaseProvider["renewed"]>) => provider.renewed(...told),
    lapsed: (...told: Parameters<FleaseProvider["lapsed"]>) => provider.lapsed(...told),
  };
  const options = { owner: "p.1", seed: 1, acceptor: false };
  const peer = new FleasePeer(benchSettings(), options, baseMs, world.clock.wallMs(), sink);
  Object.assign(driver, { peer });
  provider = new FleaseProvider(driver);
  const ack = () => {
    const { view, slot, number, sequence } = sent.at(-1)!;
    for (const from of [0, 1])
      peer.receive(from, message(Kind.ack, { view, slot, number, sequence }), driver.now(), new Message());
  };
  return { provider, ack, sent };
}

test("what still waits when it closes is answered: nobody wakes the peer any more", async () => {
  const { provider, ack } = benchProvider();
  const request = { resource: "r", ttlMs: 500, timeoutMs: 500, contended: false, waiting: false };
  const attempted = provider.attempt(request);
  ack();
  const outcome = await attempted;
  if (outcome.kind !== "granted") throw new Error(outcome.kind);
  const renewed = provider.renew(outcome.grant, 500);
  const asked = provider.query("r", 500);
  await provider.close();
  expect(await Promise.all([renewed, asked])).toEqual([false, { state: "unknown" }]);
});

test("a renewal that waits for its turn does not keep a release waiting", async () => {
  const { provider, ack, sent } = benchProvider();
  const request = { resource: "r", ttlMs: 500, timeoutMs: 500, contended: false, waiting: false };
  const attempted = provider.attempt(request);
  ack();
  const outcome = await attempted;
  if (outcome.kind !== "granted") throw new Error(outcome.kind);
  const renewed = provider.renew(outcome.grant, 500);
  provider.forgoRenewal(outcome.grant);
  const before = sent.length;
  expect(await renewed).toBe(false);
  expect(sent.length).toBe(before);
  // One that has begun is waited for.
  const begun = provider.renew(outcome.grant, 500);
  await Promise.resolve();
  provider.forgoRenewal(outcome.grant);
  ack();
  expect(await begun).toBe(true);
});
