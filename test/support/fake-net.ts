import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter } from "node:events";
import type { TcpNetConnectOpts } from "node:net";
import type { Timer, World } from "../../packages/leasehold/src/common/ports.js";

/**
 * A network in memory and virtual time, below the product's own transport: the part of `node:net` that it
 * uses. Data sent between two hosts that are cut off from each other waits, as with TCP, and arrives when the
 * cut ends if both ends still exist.
 */
export class FakeNet {
  /** The host whose code is running, across its awaits. It owns the sockets that are opened. */
  readonly #running = new AsyncLocalStorage<Host>();
  readonly #cuts = new Set<string>();
  readonly #pipes = new Set<Pipe>();
  readonly world: World;
  /** The host that is reached by connecting to a port. */
  route: (from: Host, port: number) => Host | undefined = () => undefined;

  constructor(world: World) {
    this.world = world;
  }

  latencyMs(): number {
    return 0.2 + 3 * this.world.random.next();
  }

  run<T>(host: Host, body: () => T): T {
    return this.#running.run(host, body);
  }

  get running(): Host {
    const host = this.#running.getStore();
    if (host === undefined) throw new Error("a socket that belongs to nobody");
    return host;
  }

  cut(one: Host, other: Host): void {
    this.#cuts.add(pairOf(one, other));
  }

  heal(one: Host, other: Host): void {
    this.#cuts.delete(pairOf(one, other));
    this.#deliver();
  }

  healAll(): void {
    this.#cuts.clear();
    this.#deliver();
  }

  #deliver(): void {
    for (const pipe of this.#pipes) pipe.deliver();
  }

  isCut(one: Host, other: Host): boolean {
    return this.#cuts.has(pairOf(one, other));
  }

  pipe(from: Host, to: Host): Pipe {
    const pipe = new Pipe(this, from, to);
    this.#pipes.add(pipe);
    return pipe;
  }

  forget(pipe: Pipe): void {
    this.#pipes.delete(pipe);
  }

  /** These two replace the functions of `node:net`. */
  readonly createServer = (accept: (socket: FakeSocket) => void): FakeServer =>
    new FakeServer(this.running, accept);

  readonly connect = (options: TcpNetConnectOpts): FakeSocket => {
    const from = this.running;
    const to = this.route(from, options.port);
    const near = new FakeSocket(this, from, options);
    if (to === undefined) {
      this.world.timers.after(1, () => near.destroy());
      return near;
    }
    const far = new FakeSocket(this, to);
    near.join(far);
    // Sent first on the new connection, so that all data written follows it.
    near.say(() => {
      const server = to.server;
      if (server === undefined || !to.alive) far.destroy();
      else server.accept(far);
    });
    return near;
  };
}

function pairOf(one: Host, other: Host): string {
  return [one.name, other.name].toSorted().join(" ");
}

/** A process on a machine of its own. Killing it ends its connections and its timers. */
export class Host {
  readonly net: FakeNet;
  readonly name: string;
  readonly world: World;
  server: FakeServer | undefined;
  alive = true;
  readonly sockets = new Set<FakeSocket>();

  constructor(net: FakeNet, name: string) {
    this.net = net;
    this.name = name;
    const { world } = net;
    this.world = {
      ...world,
      timers: { after: (delayMs, run) => world.timers.after(delayMs, () => this.run(run)) },
    };
  }

  run(body: () => void): void {
    if (this.alive) this.net.run(this, body);
  }

  kill(): void {
    for (const socket of this.sockets) socket.destroy();
    this.alive = false;
  }
}

/**
 * One direction of a connection: delivers in order, each item after its latency, and nothing while the two
 * hosts are cut off.
 */
class Pipe {
  readonly #net: FakeNet;
  readonly #from: Host;
  readonly #to: Host;
  readonly #waiting: { readonly dueMs: number; readonly arrive: () => void }[] = [];
  #timer: Timer | undefined;
  #lastMs = 0;

  constructor(net: FakeNet, from: Host, to: Host) {
    this.#net = net;
    this.#from = from;
    this.#to = to;
  }

  push(arrive: () => void): void {
    this.#lastMs = Math.max(this.#lastMs, this.#net.world.clock.monotonicMs() + this.#net.latencyMs());
    this.#waiting.push({ dueMs: this.#lastMs, arrive });
    this.deliver();
  }

  readonly deliver = (): void => {
    this.#timer?.cancel();
    const nowMs = this.#net.world.clock.monotonicMs();
    for (;;) {
      const [next] = this.#waiting;
      if (next === undefined || this.#net.isCut(this.#from, this.#to)) return;
      if (next.dueMs > nowMs) {
        this.#timer = this.#net.world.timers.after(next.dueMs - nowMs, this.deliver);
        return;
      }
      this.#waiting.shift();
      this.#to.run(next.arrive);
    }
  };

  end(): void {
    this.#timer?.cancel();
    this.#waiting.length = 0;
    this.#net.forget(this);
  }
}

export class FakeSocket extends EventEmitter {
  readonly remoteAddress = "127.0.0.1";
  remotePort = 0;
  /** Data written is copied at once, so none waits here. */
  readonly writableLength = 0;
  readonly #net: FakeNet;
  readonly #host: Host;
  readonly #onread: TcpNetConnectOpts["onread"];
  #other: FakeSocket | undefined;
  #pipe: Pipe | undefined;
  #isOver = false;

  constructor(net: FakeNet, host: Host, options?: TcpNetConnectOpts) {
    super();
    this.#net = net;
    this.#host = host;
    this.#onread = options?.onread;
    host.sockets.add(this);
  }

  join(other: FakeSocket): void {
    this.#other = other;
    other.#other = this;
    this.#pipe = this.#net.pipe(this.#host, other.#host);
    other.#pipe = this.#net.pipe(other.#host, this.#host);
    other.remotePort = 40_000 + Math.floor(20_000 * this.#net.world.random.next());
  }

  setNoDelay(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  pause(): this {
    return this;
  }
  resume(): this {
    return this;
  }

  say(arrive: () => void): void {
    this.#pipe?.push(arrive);
  }

  write(bytes: Buffer, written: () => void): boolean {
    const copy = Buffer.from(bytes);
    queueMicrotask(written);
    if (!this.#isOver) this.say(() => this.#other?.receive(copy));
    return true;
  }

  receive(bytes: Buffer): void {
    if (this.#isOver) return;
    const onread = this.#onread;
    if (onread === undefined || onread === null) {
      this.emit("data", bytes);
      return;
    }
    const into = onread.buffer as Buffer;
    for (let at = 0; at < bytes.length; at += into.length) {
      const length = bytes.copy(into, 0, at, Math.min(bytes.length, at + into.length));
      onread.callback(length, into);
    }
  }

  /** Ends the connection once the other side has received everything. */
  end(): void {
    this.say(() => {
      this.#other?.destroy();
    });
  }

  destroy(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.sockets.delete(this);
    // Everything in flight arrives before the end does.
    this.say(() => {
      this.#other?.destroy();
      this.#pipe?.end();
    });
    this.#net.world.timers.after(0, () => this.#host.run(() => this.emit("close")));
  }
}

class FakeServer {
  readonly #host: Host;
  readonly #accept: (socket: FakeSocket) => void;
  #port = 0;

  constructor(host: Host, accept: (socket: FakeSocket) => void) {
    this.#host = host;
    this.#accept = accept;
  }

  accept(socket: FakeSocket): void {
    this.#accept(socket);
  }

  listen(options: { port: number }, listening: () => void): void {
    this.#port = options.port;
    this.#host.server = this;
    listening();
  }

  address(): { port: number } {
    return { port: this.#port };
  }

  once(): void {}
  on(): void {}
  off(): void {}

  close(closed: () => void): void {
    this.#host.server = undefined;
    closed();
  }
}
