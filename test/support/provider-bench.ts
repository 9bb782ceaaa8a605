import { Kind, Message, copyMessage } from "../../packages/leasehold/src/flease/protocol/message.js";
import { FleaseProvider } from "../../packages/leasehold/src/flease/provider.js";
import type { FleaseDriver } from "../../packages/leasehold/src/flease/provider.js";
import { FleaseRunner } from "../../packages/leasehold/src/flease/runner.js";
import { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";
import { baseMs, benchSettings, message } from "./flease-bench.js";

/** A provider whose members answer when a test decides. */
export function benchProvider(role?: FleaseDriver["role"]) {
  const world = new VirtualWorld();
  const sent: Message[] = [];
  const { timers, random } = world;
  const clock = {
    monotonicMs: () => baseMs + world.clock.monotonicMs(),
    wallMs: () => world.clock.wallMs(),
  };
  const runner = new FleaseRunner({
    settings: benchSettings(),
    acceptor: false,
    world: { clock, timers, random },
    medium: { send: (_to, out) => void sent.push(copyMessage(out)), reaches: () => true, notify: () => true },
    owner: () => "p.1",
    clockFault: () => undefined,
    maintained: () => undefined,
  });
  const driver: FleaseDriver = {
    runner,
    ...(role && { role }),
    ask: () => Promise.reject(new Error("nobody answers")),
    address: () => "",
    reachable: () => 3,
    refusal: () => undefined,
    close: () => Promise.resolve(runner.end()),
  };
  const provider = new FleaseProvider(driver);
  /** Lets two of the three members answer a request. */
  const answer = (to: Message, kind: Kind, fields: Partial<Message> = {}) => {
    const { view, instance, number, sequence } = to;
    const reply = message(kind, { view, instance, number, sequence, ...fields });
    runner.arrived();
    for (const from of [0, 1]) runner.receive(from, reply);
    runner.poke();
  };
  const ack = () => answer(sent.at(-1)!, Kind.ack);
  return { world, runner, peer: runner.peer, driver, provider, answer, ack, sent };
}
