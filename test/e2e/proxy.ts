import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";
import { ByteReader } from "../../packages/leasehold/src/flease/tcp/wire/bytes.js";
import {
  FRAME_HEADER_BYTES,
  FrameDecoder,
  FrameKind,
} from "../../packages/leasehold/src/flease/tcp/wire/frame.js";
import { decodeHello } from "../../packages/leasehold/src/flease/tcp/wire/hello.js";

/**
 * The network between the processes of a test: a TCP proxy in front of each member. It learns the dialer's
 * name from the HELLO, and then applies the rule of each direction of the pair. It works on whole frames, so
 * that the receiver still understands a stream from which some were dropped.
 */
export class Network {
  /** The number of frames dropped by cuts. */
  swallowed = 0;
  /** The number of frames delayed, duplicated or reordered. */
  readonly treated = { delay: 0, duplication: 0, reordering: 0 };
  readonly #rules = new Map<string, Rule>();
  readonly #servers: Server[] = [];
  readonly #pipes = new Set<Pipe>();

  /** Opens a port in front of a member, to be published as the member's own address. */
  async openPort(
    member: string,
    host: string = loopback,
  ): Promise<{ address: string; connectTo: (port: number, host?: string) => void }> {
    let target: Target = { port: 0, host: loopback };
    const server = createServer((socket) => {
      const pipe = new Pipe(this, socket, member, target);
      this.#pipes.add(pipe);
      pipe.onClose = () => this.#pipes.delete(pipe);
    });
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    const address = `${host}:${(server.address() as AddressInfo).port}`;
    return { address, connectTo: (port, host = loopback) => (target = { port, host }) };
  }

  /**
   * From now on nothing from `from` (`"*"`: anybody) arrives at `to`, and neither side is notified.
   * Handshakes arrive when the cut heals, as TCP repeats them; other frames do so only if they are `held`.
   */
  cut(from: string, to: string, frames: "swallowed" | "held" = "swallowed"): void {
    this.#rules.set(keyOf(from, to), { cut: frames });
  }

  cutBothWays(one: string, other: string, frames: "swallowed" | "held" = "swallowed"): void {
    this.cut(one, other, frames);
    this.cut(other, one, frames);
  }

  /** Delays each frame by a random time of up to `delayMsMax`, without reordering. */
  delay(from: string, to: string, delayMsMax: number): void {
    this.treat(from, to, { delayMsMax });
  }

  /** Delays, duplicates or reorders the messages of one direction, by `rule`. */
  treat(from: string, to: string, rule: Omit<Rule, "cut">): void {
    this.#rules.set(keyOf(from, to), rule);
  }

  /** Removes every rule: cuts, delays, duplication and reordering. */
  heal(): void {
    this.#rules.clear();
    for (const pipe of this.#pipes) pipe.healed();
  }

  ruleFor(from: string, to: string): Rule {
    for (const key of [keyOf(from, to), keyOf("*", to), keyOf(from, "*")]) {
      const rule = this.#rules.get(key);
      if (rule !== undefined) return rule;
    }
    return noRule;
  }

  async close(): Promise<void> {
    const closed = this.#servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const pipe of this.#pipes) pipe.destroy();
    await Promise.all(closed);
  }
}

export interface Rule {
  readonly cut?: "swallowed" | "held";
  readonly delayMsMax?: number;
  /** The share of messages that arrive a second time, up to `delayMsMax` later. */
  readonly duplicated?: number;
  /** The share of messages delayed by up to `delayMsMax`, without holding up those behind them. */
  readonly reordered?: number;
}

interface Target {
  readonly port: number;
  readonly host: string;
}

const loopback = "127.0.0.1";
const noRule: Rule = {};

function keyOf(from: string, to: string): string {
  return `${from} > ${to}`;
}

/** One connection through the proxy: two sockets and the frames between them. */
class Pipe {
  onClose: () => void = () => undefined;
  readonly #member: string;
  readonly #target: Target;
  readonly #up: Way;
  readonly #down: Way;
  #client = "";

  constructor(network: Network, socket: Socket, member: string, target: Target) {
    this.#member = member;
    this.#target = target;
    this.#up = new Way(network, socket, (kind, body) => {
      if (kind === FrameKind.hello && this.#client === "") this.#introduced(body);
    });
    this.#down = new Way(network, undefined, () => undefined);
    this.#up.onEnd = () => this.#ended(this.#up, this.#down);
    this.#down.onEnd = () => this.#ended(this.#down, this.#up);
  }

  #introduced(body: Buffer): void {
    const reader = new ByteReader();
    reader.reset(body, 0, body.length);
    this.#client = decodeHello(reader).identity?.nodeId ?? "?";
    this.#up.between(this.#client, this.#member);
    this.#down.between(this.#member, this.#client);
    this.#reach();
  }

  /** Dials the member, unless the dialer is cut off from it: then the member doesn't notice the attempt. */
  #reach(): void {
    const known = this.#client !== "" && !this.#up.hasEnded;
    if (!known || this.#up.isCut || this.#up.target !== undefined) return;
    const socket = connect(this.#target);
    this.#down.readFrom(socket);
    this.#up.target = socket;
    this.#down.target = this.#up.source;
  }

  /** Passes the end of one side on to the other, unless there is a cut in between. */
  #ended(ended: Way, other: Way): void {
    if (ended.isCut) return;
    ended.deliverAll();
    other.source?.end();
    if (other.hasEnded || other.source === undefined) this.onClose();
  }

  healed(): void {
    this.#reach();
    this.#up.deliverAll();
    this.#down.deliverAll();
    if (this.#up.hasEnded) this.#ended(this.#up, this.#down);
    if (this.#down.hasEnded) this.#ended(this.#down, this.#up);
  }

  destroy(): void {
    this.#up.source?.destroy();
    this.#down.source?.destroy();
  }
}

type OnFrame = (kind: FrameKind, body: Buffer) => void;

/** One direction of a connection. */
class Way {
  source: Socket | undefined;
  target: Socket | undefined;
  hasEnded = false;
  onEnd: () => void = () => undefined;
  readonly #network: Network;
  readonly #onFrame: OnFrame;
  #from = "";
  #to = "";
  /** Frames in flight, and when each is due. The length of a test bounds their number. */
  #queue: { readonly frame: Buffer; readonly dueAt: number }[] = [];
  /** When the last of the frames in order is due. */
  #lastDueAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #timerDueAt = Infinity;

  constructor(network: Network, source: Socket | undefined, onFrame: OnFrame) {
    this.#network = network;
    this.#onFrame = onFrame;
    if (source !== undefined) this.readFrom(source);
  }

  between(from: string, to: string): void {
    this.#from = from;
    this.#to = to;
  }

  get isCut(): boolean {
    return this.#network.ruleFor(this.#from, this.#to).cut !== undefined;
  }

  readFrom(source: Socket): void {
    this.source = source;
    source.setNoDelay(true);
    const decoder = new FrameDecoder((kind, bytes, start, end) => {
      const frame = Buffer.from(bytes.subarray(start - FRAME_HEADER_BYTES, end));
      this.#onFrame(kind, frame.subarray(FRAME_HEADER_BYTES));
      this.#pass(kind, frame);
    });
    source.on("data", (chunk: Buffer) => decoder.push(chunk));
    source.on("error", () => undefined);
    source.on("close", () => {
      this.hasEnded = true;
      this.onEnd();
    });
  }

  #pass(kind: FrameKind, frame: Buffer): void {
    const rule = this.#network.ruleFor(this.#from, this.#to);
    const { cut, delayMsMax = 0, duplicated = 0, reordered = 0 } = rule;
    const isHandshake = kind !== FrameKind.batch && kind !== FrameKind.call && kind !== FrameKind.answer;
    if (cut === "swallowed" && !isHandshake) {
      this.#network.swallowed++;
      return;
    }
    // Requests and replies outside the protocol rely on the order of TCP; the protocol's messages don't rely
    // on anything.
    const isMessage = kind === FrameKind.batch;
    const nowMs = performance.now();
    const delayMs = (): number => (cut === undefined ? Math.random() * delayMsMax : Infinity);
    const { treated } = this.#network;
    if (isMessage && Math.random() < reordered) {
      treated.reordering++;
      this.#enqueue(frame, nowMs + delayMs());
    } else {
      const inTurnMs = reordered > 0 || duplicated > 0 ? 0 : delayMs();
      if (inTurnMs > 0) treated.delay++;
      this.#lastDueAt = Math.max(nowMs + inTurnMs, this.#lastDueAt);
      this.#enqueue(frame, this.#lastDueAt);
    }
    if (isMessage && Math.random() < duplicated) {
      treated.duplication++;
      this.#enqueue(frame, nowMs + delayMs());
    }
    this.#deliver();
    this.#deliverLater();
  }

  #enqueue(frame: Buffer, dueAt: number): void {
    const behind = this.#queue.findLastIndex((queued) => queued.dueAt <= dueAt);
    this.#queue.splice(behind + 1, 0, { frame, dueAt });
  }

  #deliver(): void {
    while (this.#queue.length > 0 && this.#queue[0]!.dueAt <= performance.now()) {
      this.target?.write(this.#queue.shift()!.frame);
    }
  }

  #deliverLater(): void {
    const next = this.#queue[0]?.dueAt ?? Infinity;
    if (next >= this.#timerDueAt) return;
    clearTimeout(this.#timer);
    this.#timerDueAt = next;
    this.#timer = setTimeout(() => {
      this.#timerDueAt = Infinity;
      this.#deliver();
      this.#deliverLater();
    }, next - performance.now());
  }

  /** Delivers all frames in flight at once. */
  deliverAll(): void {
    if (this.target === undefined) return;
    for (const { frame } of this.#queue) this.target.write(frame);
    this.#queue = [];
    this.#lastDueAt = 0;
  }
}
