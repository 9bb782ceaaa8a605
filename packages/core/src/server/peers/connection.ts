import type { Socket } from "node:net";
import type { PeerWelcome } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import type { PeerCounts } from "../metrics/counters.js";
import { parseUrl } from "../wire/urls.js";
import { Frames, frame } from "./frames.js";
import { readWelcome } from "./hello.js";
import { dial } from "./sockets.js";

/** Number of unanswered heartbeats after which a dial in progress is given up. */
const dialBeatsMax = 2;

/** Smaller parts are copied together: for a socket, many buffers cost more than copying them. */
const copiedBytesMax = 64 * 1024;

/**
 * Bound of the bytes in the socket at a time, and of each piece. The socket joins everything queued into one
 * write, and reports only the end of that write. With more bytes, a slow connection would seem to make no
 * progress while a full window is sent.
 */
const handedBytesMax = 256 * 1024;

interface Write {
  readonly parts: Uint8Array[];
  bytes: number;
}

export interface ConnectionOptions {
  readonly url: string;
  readonly hello: Uint8Array;
  readonly tls: TlsFiles | undefined;
  /**
   * Number of heartbeats without an answer, and without a byte sent, after which the connection counts as cut
   * off.
   */
  readonly silentBeatsMax: number;
  readonly traffic: PeerCounts["traffic"];
  /** Notified of pings and their answers. */
  readonly pings?: Pick<PeerCounts, "answered" | "begun" | "pinged">;
  /** Returns the reason to refuse the other side; empty if there is none. */
  readonly judge: (welcome: PeerWelcome) => Promise<string>;
  readonly welcome: () => void;
  readonly lost: (problem: string) => void;
  /** Some of the output was sent. */
  readonly written: () => void;
}

/** One connection to another server, from the dial to its end. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #socket: Socket | undefined;
  /** The protocol version of both sides; 0 until the other side has answered. */
  version = 0;
  #isAnswered = false;
  #isWelcome = false;
  readonly #writes: Write[] = [];
  #queuedBytes = 0;
  #isFlushDue = false;
  #isLost = false;
  #isHeard = false;
  #silentBeats = 0;
  #leftBytes = 0;
  #problem = "the connection was closed";

  constructor(options: ConnectionOptions) {
    this.#options = options;
    try {
      const socket = dial(parseUrl("the peer's address", options.url), options.tls, () => {
        for (const part of frame([options.hello])) socket.write(part);
      });
      this.#socket = socket;
      options.traffic.follow(socket);
      options.pings?.begun();
    } catch (error) {
      // Certificates or a revocation list may be half written; callers would not catch that error.
      this.#problem = (error as Error).message;
      setImmediate(() => this.#lose());
      return;
    }
    const frames = new Frames((body) => this.#take(body));
    this.#socket.on("data", (chunk) => {
      this.#isHeard = true;
      try {
        frames.push(chunk);
      } catch {
        this.#end("what answers there is no server of a core");
      }
    });
    this.#socket.on("error", (error) => (this.#problem = error.message));
    this.#socket.on("close", () => this.#lose());
  }

  get isWelcome(): boolean {
    return this.#isWelcome;
  }

  /** Output queued for the other side. */
  get waitingBytes(): number {
    return this.#queuedBytes + (this.#socket?.writableLength ?? 0);
  }

  /** Output of one turn is written together. */
  write(parts: readonly Uint8Array[]): void {
    for (const part of frame(parts)) {
      if (part.length <= handedBytesMax) this.#queue(part);
      else
        for (let start = 0; start < part.length; start += handedBytesMax)
          this.#queue(part.subarray(start, start + handedBytesMax));
    }
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    process.nextTick(() => {
      this.#isFlushDue = false;
      this.#flush();
    });
  }

  /**
   * Counts heartbeats instead of time, since this process may have been suspended with answers unread: they
   * are read before immediates run.
   */
  beat(): void {
    setImmediate(() => this.#judgeSilence());
  }

  close(): void {
    this.#isLost = true;
    this.#socket?.destroy();
  }

  #judgeSilence(): void {
    const socket = this.#socket;
    if (socket === undefined || this.#isLost) return;
    const leftBytes = socket.bytesWritten - socket.writableLength;
    const isMoving = this.#isHeard || (socket.writableLength > 0 && leftBytes > this.#leftBytes);
    this.#leftBytes = leftBytes;
    this.#isHeard = false;
    this.#silentBeats = isMoving ? 0 : this.#silentBeats + 1;
    const { silentBeatsMax } = this.#options;
    if (this.#silentBeats >= (this.#isWelcome ? silentBeatsMax : dialBeatsMax))
      this.#end("it does not answer");
    else if (this.#isWelcome) {
      this.#options.pings?.pinged();
      this.write([]);
    }
  }

  #take(body: Buffer): void {
    if (body.length === 0) {
      this.#options.pings?.answered();
      return;
    }
    if (this.#isAnswered) throw new RangeError("it answered the hello twice");
    this.#isAnswered = true;
    const welcome = readWelcome(body);
    const { refusal } = welcome;
    // A server that refuses us hangs up, perhaps before our own check is done.
    if (refusal !== "") this.#problem = refusal;
    this.#options.judge(welcome).then(
      (own) => {
        if (this.#isLost) return;
        if (own !== "" || refusal !== "") this.#end(own === "" ? refusal : own);
        else {
          this.version = welcome.version;
          this.#isWelcome = true;
          this.#options.welcome();
        }
      },
      (error: unknown) => this.#end((error as Error).message),
    );
  }

  #end(problem: string): void {
    this.#problem = problem;
    this.#socket?.destroy();
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#isWelcome = false;
    this.#options.lost(this.#problem);
  }

  #queue(part: Uint8Array): void {
    let last = this.#writes.at(-1);
    if (last === undefined || last.bytes + part.length > copiedBytesMax) {
      last = { parts: [], bytes: 0 };
      this.#writes.push(last);
    }
    last.parts.push(part);
    last.bytes += part.length;
    this.#queuedBytes += part.length;
  }

  #flush(): void {
    const socket = this.#socket!;
    while (this.#writes.length > 0 && socket.writable && socket.writableLength < handedBytesMax) {
      const { bytes, parts } = this.#writes.shift()!;
      this.#queuedBytes -= bytes;
      const [only] = parts as [Uint8Array];
      socket.write(parts.length === 1 ? only : Buffer.concat(parts, bytes), this.#written);
    }
  }

  readonly #written = (): void => {
    this.#flush();
    this.#options.written();
  };
}
