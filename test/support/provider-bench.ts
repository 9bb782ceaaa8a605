import { FleasePeer } from "../../src/flease/peer.js";
import { Kind, Message, copyMessage } from "../../src/flease/protocol/message.js";
import { FleaseProvider, outcomesFor } from "../../src/flease/provider.js";
import type { FleaseDriver } from "../../src/flease/provider.js";
import { VirtualWorld } from "../../src/testing/virtual-world.js";
import { baseMs, benchSettings, message } from "./flease-bench.js";

/** A provider whose members answer when a test says so, and whose peer nobody wakes but the test. */
export function benchProvider() {
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
    ...outcomesFor(() => provider),
  };
  const options = { owner: "p.1", seed: 1, acceptor: false };
  const peer = new FleasePeer(benchSettings(), options, baseMs, world.clock.wallMs(), sink);
  Object.assign(driver, { peer });
  provider = new FleaseProvider(driver);
  /** Two of the three members answer a request. */
  const answer = (to: Message, kind: Kind, fields: Partial<Message> = {}) => {
    const { view, slot, number, sequence } = to;
    const reply = message(kind, { view, slot, number, sequence, ...fields });
    for (const from of [0, 1]) peer.receive(from, reply, driver.now(), new Message());
  };
  const ack = () => answer(sent.at(-1)!, Kind.ack);
  return { world, peer, driver, provider, answer, ack, sent };
}
