import { copyMessage, Kind } from "leasehold/inner/flease/protocol/message.js";
import type { ViewNote } from "leasehold/inner/flease/views/view.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";
import { EventCode, SimEvent } from "../../kit/events.js";
import { faultlessNetwork, type NetworkPlan } from "./plan.js";
import type { SimRandom } from "../../kit/random.js";

/** A message in flight. */
export class Packet extends SimEvent {
  readonly code = EventCode.packet;
  readonly from: number;
  readonly to: number;
  /** Undefined in a heartbeat, which carries clock bounds only. */
  readonly message: Message | undefined;
  /** The resource of the message; replies do not have it themselves. */
  readonly resource: string;
  /** The sender's incarnation, to which a reply is bound. */
  readonly fromIncarnation: number;
  /** Only this incarnation of the receiver gets it; 0 for any. */
  readonly toIncarnation: number;
  /** The sender's bounds on the time, and the receiver's own lower bound as the sender last heard it (3.10). */
  lo = 0;
  hi = 0;
  echoLo = 0;
  /** An admin RPC or its answer, on a stream: it can be lost, but not duplicated. */
  note = "";
  /** The sender's view, where members change. */
  view: ViewNote | undefined;
  readonly #arrive: (packet: Packet) => void;

  constructor(
    address: { from: number; to: number; fromIncarnation: number; toIncarnation: number; resource: string },
    message: Message | undefined,
    arrive: (packet: Packet) => void,
  ) {
    super();
    this.from = address.from;
    this.to = address.to;
    this.fromIncarnation = address.fromIncarnation;
    this.toIncarnation = address.toIncarnation;
    this.resource = address.resource;
    this.message = message;
    this.#arrive = arrive;
  }

  run(): void {
    this.#arrive(this);
  }

  again(): Packet {
    const copy = new Packet(this, this.message && copyMessage(this.message), this.#arrive);
    copy.lo = this.lo;
    copy.hi = this.hi;
    copy.echoLo = this.echoLo;
    copy.view = this.view;
    return copy;
  }
}

/** Even a message to oneself takes a moment: it is handled in an event of its own. */
const loopbackMs = 0.01;

/**
 * Loses, duplicates, delays and reorders messages, and cuts directions between nodes. A node can always reach
 * itself: nothing is lost inside a machine.
 */
export class Network {
  readonly #random: SimRandom;
  readonly #schedule: (packet: Packet, delayMs: number) => void;
  #plan: NetworkPlan;
  /** Directions that are cut, as `from * size + to`. A direction may be cut several times at once. */
  readonly #cuts: number[];
  readonly #size: number;
  readonly #lost: ((packet: Packet) => void) | undefined;

  constructor(
    size: number,
    plan: NetworkPlan,
    random: SimRandom,
    schedule: (packet: Packet, delayMs: number) => void,
    lost?: (packet: Packet) => void,
  ) {
    this.#lost = lost;
    this.#size = size;
    this.#plan = plan;
    this.#random = random;
    this.#schedule = schedule;
    this.#cuts = Array.from({ length: size * size }, () => 0);
  }

  send(packet: Packet): void {
    if (packet.from === packet.to) {
      this.#schedule(packet, loopbackMs);
      return;
    }
    const random = this.#random;
    if (this.isCut(packet.from, packet.to) || random.chance(this.#plan.lossRate)) return this.#lost?.(packet);
    const { releaseLossRate } = this.#plan;
    if (releaseLossRate > 0 && packet.message?.kind === Kind.release && random.chance(releaseLossRate))
      return this.#lost?.(packet);
    if (packet.note === "" && random.chance(this.#plan.duplicationRate))
      this.#schedule(packet.again(), this.#delayMs());
    this.#schedule(packet, this.#delayMs());
  }

  isCut(from: number, to: number): boolean {
    return this.#cuts[from * this.#size + to]! > 0;
  }

  cut(from: number, to: number): void {
    this.#cuts[from * this.#size + to]! += 1;
  }

  mend(from: number, to: number): void {
    const at = from * this.#size + to;
    this.#cuts[at] = Math.max(0, this.#cuts[at]! - 1);
  }

  /** From now on the network is good: nothing is cut or lost, and messages are fast. */
  heal(meanDelayMs: number): void {
    this.#cuts.fill(0);
    this.#plan = { ...this.#plan, ...faultlessNetwork, meanDelayMs };
  }

  #delayMs(): number {
    const random = this.#random;
    if (random.chance(this.#plan.tailRate)) return random.between(0, this.#plan.tailMaxMs);
    return random.exponential(this.#plan.meanDelayMs);
  }
}
