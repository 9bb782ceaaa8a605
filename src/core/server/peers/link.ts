import type { Socket } from "node:net";
import type { PeerMessage } from "../../replica/types.js";
import type { TlsFiles } from "../common/config.js";
import { PeerCounts } from "../common/counters.js";
import type { KnownMember } from "../common/identity.js";
import { parseUrl } from "../common/urls.js";
import { encodeMessage } from "./codec.js";
import { Frames, frame } from "./frames.js";
import { readWelcome } from "./hello.js";
import { dial } from "./sockets.js";

/**
 * What waits for a slow peer. Twice what the log has in flight to one; what has no room is dropped, and Raft
 * sends it again.
 */
const queueBytesMax = 32 * 1024 * 1024;

/** Between attempts: a server that comes back is found before an election would be over. */
const redialMs = 200;

export interface LinkOptions {
  readonly peer: KnownMember;
  readonly hello: () => Uint8Array;
  readonly tls: TlsFiles | undefined;
  /**
   * A server that sends nothing for so long counts as gone. A connection that was cut off silently would else
   * last for minutes.
   */
  readonly silenceMs: number;
  /** Nothing can be delivered. */
  readonly unreachable: () => void;
  /** For people: why there is no connection. */
  readonly trouble: (text: string) => void;
  readonly connected: () => void;
  /** It says that this server is no member any more. */
  readonly removed: () => void;
  /** Why we do not talk to a server with this disk; empty if we do. */
  readonly judge: (disk: bigint) => Promise<string>;
  readonly counts?: PeerCounts;
}

/** The way of all messages to one server: a connection of our own, made again for as long as it is wanted. */
export class PeerLink {
  readonly #options: LinkOptions;
  readonly #ping: NodeJS.Timeout;
  readonly #counts: PeerCounts;
  #socket: Socket | undefined;
  #isWelcome = false;
  #isClosed = false;
  #isCorked = false;
  #attempts = -1;
  #heardMs = 0;
  #redial: NodeJS.Timeout | undefined;
  #url = "";

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#counts = options.counts ?? new PeerCounts();
    this.#ping = setInterval(() => this.#beat(), options.silenceMs / 3);
    this.#connect();
  }

  /** Where it was called last. */
  get url(): string {
    return this.#url;
  }

  get isConnected(): boolean {
    return this.#isWelcome;
  }

  /**
   * What cannot be sent now is dropped: Raft sends again what matters, and nobody else's messages may come
   * twice.
   */
  send(message: PeerMessage): void {
    const socket = this.#socket;
    if (socket === undefined || !this.#isWelcome || socket.writableLength > queueBytesMax) {
      this.#counts.failures += 1;
      this.#options.unreachable();
      return;
    }
    this.#cork(socket);
    const parts = frame(encodeMessage(message));
    // Many small buffers cost a socket more to take over than to copy.
    socket.write(Buffer.concat(parts));
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#ping);
    clearTimeout(this.#redial);
    this.#socket?.destroy();
  }

  /** All messages of a turn go out as one write. */
  #cork(socket: Socket): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      socket.uncork();
    });
  }

  #connect(): void {
    const { hello, peer, tls } = this.#options;
    this.#attempts += 1;
    const url = peer.peerUrls[this.#attempts % peer.peerUrls.length]!;
    this.#url = url;
    let problem = "the connection was closed";
    let socket: Socket;
    try {
      socket = dial(parseUrl("the peer's address", url), tls, () => {
        for (const part of frame([hello()])) socket.write(part);
      });
    } catch (error) {
      // Certificates, or a list of revoked ones, that are just being written: nobody else would catch it here.
      this.#again(`${peer.name} at ${url}: ${(error as Error).message}`);
      return;
    }
    this.#socket = socket;
    this.#counts.traffic.follow(socket);
    this.#counts.begun();
    this.#heardMs = performance.now();
    const frames = new Frames((body) => {
      if (body.length === 0) {
        this.#counts.answered();
        return;
      }
      const { disk, refusal, removed } = readWelcome(body);
      // A server that refuses us hangs up, perhaps before our own disk is done.
      if (refusal !== "") problem = refusal;
      this.#options.judge(disk).then(
        (own) => {
          if (own !== "") problem = own;
          // Not from somebody else.
          else if (removed) this.#options.removed();
          if (own !== "" || refusal !== "") socket.destroy();
          else if (this.#socket === socket && !socket.destroyed) this.#welcome();
        },
        (error: unknown) => socket.destroy(error as Error),
      );
    });
    socket.on("data", (chunk) => {
      this.#heardMs = performance.now();
      try {
        frames.push(chunk);
      } catch {
        problem = "what answers there is no server of a core";
        socket.destroy();
      }
    });
    socket.on("error", (error) => (problem = error.message));
    socket.on("close", () => this.#lost(socket, `${peer.name} at ${url}: ${problem}`));
  }

  #welcome(): void {
    this.#isWelcome = true;
    this.#options.connected();
  }

  #lost(socket: Socket, text: string): void {
    if (this.#socket !== socket || this.#isClosed) return;
    this.#socket = undefined;
    this.#isWelcome = false;
    this.#again(text);
  }

  #again(text: string): void {
    this.#options.unreachable();
    this.#options.trouble(text);
    this.#redial = setTimeout(() => this.#connect(), redialMs);
  }

  #beat(): void {
    if (this.#socket === undefined) return;
    if (performance.now() - this.#heardMs > this.#options.silenceMs)
      this.#socket.destroy(new Error("it does not answer"));
    else if (this.#isWelcome) {
      this.#counts.pinged();
      for (const part of frame([])) this.#socket.write(part);
    }
  }
}
