import type { MemberId } from "@leasehold/core/inner/raft/types.js";
import { isBulk, isProposal } from "@leasehold/core/inner/replica/proposals/bulk.js";
import type { PeerMessage } from "@leasehold/core/inner/replica/types.js";
import type { SimRandom } from "../../kit/random.js";
import type { CorePlan } from "./plan.js";
import type { SimServer } from "./server.js";

/** The parts of the world that connections use. */
export interface ConnectedWorld {
  readonly plan: CorePlan;
  readonly random: SimRandom;
  readonly nowMs: number;
  readonly counters: { cuts: number; repeats: number; backPressure: number };
  after(delayMs: number, body: () => void): void;
  log(line: string): void;
  /** The server with that id; undefined if there is none. */
  called(sender: SimServer, to: MemberId): SimServer | undefined;
  isParted(from: MemberId, to: MemberId): boolean;
  /** Delivers a message, which the receiver may reject. */
  deliver(receiver: SimServer, sender: SimServer, message: PeerMessage): void;
}

/** The pause between dials, as in `core/server/peers`. */
const redialMs = 200;

/** An idle connection is closed after this time. */
const silenceMs = 5_000;

/** The unit of sending: later data waits until this much has been sent. */
const pieceBytes = 256;

const headBytes = 50;

interface Parcel {
  readonly message: PeerMessage;
  restBytes: number;
}

/** A connection between two processes: data arrives in order, or is lost with the connection. */
interface Connection {
  readonly receiver: SimServer;
  readonly receiverLife: number;
  /** Later arrivals are lost. */
  untilMs: number;
}

/** Everything that one process sends to another server. */
interface Way {
  readonly sender: SimServer;
  readonly life: number;
  readonly to: MemberId;
  connection: Connection | undefined;
  /** Two sockets share the bandwidth; the second one waits. */
  urgent: Parcel[];
  bulk: Parcel[];
  bulkBytes: number;
  isFull: boolean;
  isMoving: boolean;
  isDialing: boolean;
  movedMs: number;
  lastArrivalMs: number;
}

/**
 * A network of TCP connections. Data takes time, sockets have limited buffers, a message that does not fit is
 * returned, and a broken connection loses its data from some byte on.
 */
export class Connections {
  readonly #world: ConnectedWorld;
  readonly #ways = new Map<string, Way>();

  constructor(world: ConnectedWorld) {
    this.#world = world;
  }

  /** @returns whether the socket accepts it */
  send(sender: SimServer, message: PeerMessage): boolean {
    const way = this.#wayOf(sender, message.to);
    if (way.connection === undefined) return false;
    if (isProposal(message.kind) && way.isFull) {
      this.#world.counters.backPressure += 1;
      return false;
    }
    if ("again" in message && message.again) this.#world.counters.repeats += 1;
    const bytes = bytesOf(message);
    (isBulk(message) ? way.bulk : way.urgent).push({ message, restBytes: bytes });
    if (isBulk(message)) way.bulkBytes += bytes;
    way.isFull ||= way.bulkBytes >= this.#world.plan.socketBytes!;
    this.#move(way);
    return true;
  }

  /** Breaks one of the connections, if there are any. */
  cutOne(): void {
    const { counters, random } = this.#world;
    const open = [...this.#ways.values()].filter((way) => this.#isAlive(way) && way.connection !== undefined);
    if (open.length === 0) return;
    const way = random.pick(open);
    counters.cuts += 1;
    this.#world.log(`the connection ${way.sender.id} → ${way.to} is cut`);
    this.#cut(way);
  }

  #wayOf(sender: SimServer, to: MemberId): Way {
    const key = `${sender.id} ${to}`;
    const known = this.#ways.get(key);
    if (known !== undefined && known.sender === sender && known.life === sender.life) return known;
    const way: Way = {
      sender,
      life: sender.life,
      to,
      connection: undefined,
      urgent: [],
      bulk: [],
      bulkBytes: 0,
      isFull: false,
      isMoving: false,
      isDialing: false,
      movedMs: this.#world.nowMs,
      lastArrivalMs: 0,
    };
    this.#ways.set(key, way);
    this.#dial(way, 0);
    return way;
  }

  #isAlive({ life, sender }: Way): boolean {
    return sender.isUp && sender.life === life;
  }

  #dial(way: Way, delayMs: number): void {
    if (way.isDialing) return;
    way.isDialing = true;
    this.#world.after(delayMs + this.#world.random.exponential(this.#world.plan.latencyMs), () => {
      way.isDialing = false;
      if (!this.#isAlive(way)) return;
      const receiver = this.#world.called(way.sender, way.to);
      if (receiver?.isUp !== true || this.#world.isParted(way.sender.id, way.to)) this.#dial(way, redialMs);
      else this.#open(way, receiver);
    });
  }

  #open(way: Way, receiver: SimServer): void {
    way.connection = { receiver, receiverLife: receiver.life, untilMs: Infinity };
    way.movedMs = this.#world.nowMs;
    way.sender.step({ kind: "connected", member: way.to, takesRepeats: true });
  }

  /** Sent data may still arrive until the connection is replaced. */
  #cut(way: Way): void {
    const { nowMs, plan, random } = this.#world;
    way.connection!.untilMs = nowMs + Math.min(random.exponential(plan.latencyMs), redialMs);
    way.connection = undefined;
    [way.urgent, way.bulk, way.bulkBytes, way.isFull] = [[], [], 0, false];
    way.sender.step({ kind: "unreachable", member: way.to });
    this.#dial(way, redialMs);
  }

  /** Sends the next piece. */
  #move(way: Way): void {
    const { connection } = way;
    const queue = way.urgent.length > 0 ? way.urgent : way.bulk;
    const parcel = queue[0];
    if (way.isMoving || connection === undefined || parcel === undefined) return;
    way.isMoving = true;
    const bytes = Math.min(parcel.restBytes, pieceBytes);
    this.#world.after(bytes / this.#world.plan.bytesPerMs!, () => {
      way.isMoving = false;
      if (way.connection !== connection) this.#move(way);
      else if (this.#isBroken(way, connection)) this.#cut(way);
      else this.#moved(way, connection, queue, bytes);
    });
  }

  #isBroken({ movedMs, sender, to }: Way, { receiver, receiverLife }: Connection): boolean {
    const isSilent = this.#world.isParted(sender.id, to) && this.#world.nowMs > movedMs + silenceMs;
    return isSilent || !receiver.isUp || receiver.life !== receiverLife;
  }

  #moved(way: Way, connection: Connection, queue: Parcel[], bytes: number): void {
    if (this.#world.isParted(way.sender.id, way.to)) {
      this.#world.after(redialMs, () => this.#move(way));
      return;
    }
    const [parcel] = queue as [Parcel];
    way.movedMs = this.#world.nowMs;
    parcel.restBytes -= bytes;
    if (queue === way.bulk) this.#makeRoom(way, bytes);
    if (parcel.restBytes === 0) queue.shift();
    this.#arrive(way, connection, parcel);
    this.#move(way);
  }

  #makeRoom(way: Way, bytes: number): void {
    way.bulkBytes -= bytes;
    if (!way.isFull || way.bulkBytes > this.#world.plan.socketBytes! / 2) return;
    way.isFull = false;
    if (this.#isAlive(way)) way.sender.step({ kind: "drained", member: way.to });
  }

  #arrive(way: Way, connection: Connection, { message, restBytes }: Parcel): void {
    const { nowMs, plan, random } = this.#world;
    const arrivalMs = Math.max(way.lastArrivalMs, nowMs + random.exponential(plan.latencyMs));
    way.lastArrivalMs = arrivalMs;
    this.#world.after(arrivalMs - nowMs, () => {
      const { receiver, receiverLife } = connection;
      if (this.#world.nowMs > connection.untilMs || !receiver.isUp || receiver.life !== receiverLife) return;
      if (restBytes > 0) receiver.step({ kind: "arriving", member: way.sender.id });
      else this.#world.deliver(receiver, way.sender, message);
    });
  }
}

function bytesOf(message: PeerMessage): number {
  if (message.kind === "propose" || message.kind === "propose-change")
    return headBytes + message.command.length;
  if (message.kind !== "append") return headBytes;
  return message.entries.reduce((sum, { data }) => sum + headBytes + data.length, headBytes);
}
