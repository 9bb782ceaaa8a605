import type { Socket } from "node:net";
import type { Timer, World } from "../../../common/ports.js";
import { accountOf } from "./account.js";
import { ByteReader, ByteWriter } from "../wire/bytes.js";
import type { Counters } from "./counters.js";
import { FrameDecoder, FrameKind, WELCOME_FRAME_BYTES_MAX } from "../wire/frame.js";
import { FrameError } from "../wire/frame-error.js";
import { Handshake } from "../security/handshake.js";
import type { Self } from "../security/handshake.js";
import { decodeHello, decodeProof, decodeReject, decodeWelcome, encodeReject } from "../wire/hello.js";
import type { DecodedIdentity, DecodedWelcome } from "../wire/hello.js";
import { callBytesMax, Link } from "./link.js";
import type { Carrier, LinkPorts } from "./link.js";
import { handshakeFault } from "../../../runtime/security/auth-fault.js";
import { authRejection } from "../security/rejection.js";
import type { AuthFault } from "../../../runtime/security/auth-fault.js";
import type { LocalRejection } from "../security/rejection.js";
import type { Proof } from "../../../runtime/security/proof.js";
import type { Identity } from "../wire/identity.js";
import type { TransportHandler } from "./transport-handler.js";
import type { TransportOptions } from "./transport-options.js";

/** Time for a connection that we end to drain and close, ms. */
const LINGER_MS = 500;

/**
 * A read of at least this size, about two hundred messages, ends a peer's turn of the event loop. Otherwise
 * the runtime would keep reading from the fastest peer, up to thirty-two times in a row.
 */
const SHARE_BYTES = 16 * 1024;

/** Initial buffer for a REJECT: nearly all fit. */
const REJECT_BYTES = 512;

/** The dialer of a connection, notified of the outcome. */
export interface Dialing {
  readonly address: string;
  /** The id of the member expected there. */
  readonly expectedId: string | undefined;
  /** The version of the protocol that this connection offers. */
  readonly version: number;
  opened(peerId: string): void;
  /**
   * The member doesn't speak that version. Returns whether another connection follows at once, with an
   * older one.
   */
  offerOlder(): boolean;
  refused(): void;
  /** The connection is closed. Returns true when its owner should learn that the address is unreachable. */
  closed(opened: boolean): boolean;
}

/** The transport, as seen by a connection. */
export interface ConnectionPorts extends Self {
  readonly identity: Identity;
  readonly world: World;
  readonly handler: TransportHandler;
  readonly counters: Counters;
  readonly options: Pick<TransportOptions, "handshakeTimeoutMs" | "versions">;
  /**
   * Compares a peer's HELLO or WELCOME with our identity: a reason to refuse it, or nothing. Called before
   * the peer has proven its identity, so it must have no effect on the peer's behalf, and called again
   * afterwards.
   */
  judge(connection: Connection, peer: DecodedIdentity): LocalRejection | undefined;
  /** Shared by all links. */
  readonly linkPorts: LinkPorts;
  /** The handshake is done: the link replaces an older one, and the handler is notified. */
  established(connection: Connection, link: Link): void;
  /** Either side refused the connection during the handshake. */
  refused(connection: Connection, rejection: LocalRejection, by: "us" | "them"): void;
  /** The link has ended; the socket may still be draining. */
  unlinked(link: Link, reason: string): void;
  /** The connection is closed; `opened` is whether its handshake had completed. The last call. */
  closed(connection: Connection, reason: string, opened: boolean): void;
}

type State = "handshake" | "linked" | "closing";

/**
 * One socket from its first byte: the handshake, then a link's frames, then the end. A malformed frame ends
 * this connection and nothing else.
 */
export class Connection implements Carrier {
  readonly address: string;
  /** `undefined` for accepted connections. */
  readonly dialing: Dialing | undefined;
  readonly #ports: ConnectionPorts;
  readonly #socket: Socket;
  readonly #decoder: FrameDecoder;
  readonly #handshake: Handshake;
  /** Timeout of the handshake or of draining. */
  #timer: Timer;
  #state: State = "handshake";
  /** The peer's proof. Until then its frames are not handled. */
  #proof: Proof | undefined;
  #link: Link | undefined;
  #reason = "closed by the peer";
  /** True while the handler is processing a chunk. */
  #inChunk = false;

  constructor(ports: ConnectionPorts, socket: Socket, address: string, dialing?: Dialing) {
    this.#ports = ports;
    this.#socket = socket;
    this.address = address;
    this.dialing = dialing;
    this.#decoder = new FrameDecoder(this.#frame);
    if (dialing !== undefined && ports.identity.role !== "member")
      this.#decoder.allow(FrameKind.welcome, WELCOME_FRAME_BYTES_MAX);
    this.#handshake = new Handshake(ports, socket);
    this.#timer = ports.world.timers.after(ports.options.handshakeTimeoutMs, this.#handshakeTimedOut);
    socket.setNoDelay(true);
    socket.on("error", this.#failed);
    socket.on("close", this.#socketClosed);
  }

  get proof(): Proof | undefined {
    return this.#proof;
  }

  /** The expected or claimed id of the peer. */
  get peerId(): string | undefined {
    return this.dialing?.expectedId ?? this.#handshake.claimant?.identity.nodeId;
  }

  /** Starts handling the peer's frames. The dialing side sends first. */
  begin(proof: Proof): void {
    this.#proof = proof;
    if (this.dialing !== undefined) this.write(this.#handshake.hello(this.dialing.version));
  }

  /** Rejects the peer for its credentials, and sends the reason. */
  distrust(fault: AuthFault): void {
    this.reject(authRejection(fault.cause, fault.text));
  }

  get ready(): boolean {
    return this.#socket.writableLength === 0;
  }

  write(buffer: ByteWriter): boolean {
    const socket = this.#socket;
    socket.write(buffer.bytes.subarray(0, buffer.length), this.#written);
    // An empty socket buffer means that the kernel has copied everything, and the buffer is ours again.
    return socket.writableLength === 0;
  }

  readonly #written = (): void => {
    if (this.ready) this.#link?.written();
  };

  /**
   * Handles bytes of an accepted socket (listener in `transport.ts`). The rest waits in the kernel until
   * every other peer has been read once.
   */
  readonly read = (chunk: Buffer): void => {
    this.receive(chunk, chunk.length);
    if (chunk.length < SHARE_BYTES) return;
    this.#ports.counters["reads.putOff"] += 1;
    this.#socket.pause();
    setImmediate(() => this.#socket.resume());
  };

  /**
   * Handles bytes of a dialed socket, which `dialer.ts` reads into one buffer: the chunk is the caller's
   * again on return.
   */
  readonly receive = (chunk: Buffer, length: number): void => {
    // Draining: late bytes are read and discarded. Unread bytes would make the kernel reset the connection,
    // and the peer would lose the reason just sent.
    if (this.#state === "closing") return;
    if (this.#proof === undefined) {
      this.close("it spoke before it was known who it is");
      return;
    }
    const { counters, handler } = this.#ports;
    counters["bytes.received"] += length;
    if (this.#link !== undefined) this.#beginChunk(this.#link);
    try {
      this.#decoder.push(chunk, length);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      counters[`frames.refused.${error.cause}`] += 1;
      this.#malformed(error);
    } finally {
      if (this.#inChunk) {
        this.#inChunk = false;
        handler.messages.chunkEnd(this.#link!);
      }
    }
  };

  #beginChunk(link: Link): void {
    this.#inChunk = true;
    link.heard(this.#ports.world.clock.monotonicMs());
    this.#ports.handler.messages.chunk(link);
  }

  readonly #frame = (kind: FrameKind, bytes: Buffer, start: number, end: number): void => {
    if (this.#link !== undefined) {
      this.#link.frame(kind, bytes, start, end);
      return;
    }
    const reader = new ByteReader();
    reader.reset(bytes, start, end);
    if (kind === FrameKind.reject) {
      const rejection = decodeReject(reader);
      this.#ports.counters["rejects.received"] += 1;
      const goesOn = rejection.reason === "version" && this.dialing?.offerOlder() === true;
      if (!goesOn) this.#ports.refused(this, rejection, "them");
      this.close(rejection.text);
      return;
    }
    const body = bytes.subarray(start, end);
    const { claimant } = this.#handshake;
    const { versions } = this.#ports.options;
    if (kind === FrameKind.hello && this.dialing === undefined && claimant === undefined) {
      this.#greeted(decodeHello(reader, versions), body);
    } else if (kind === FrameKind.proof && claimant !== undefined) {
      const unproven = this.#handshake.checkProof(decodeProof(reader));
      if (!this.#refuses(unproven ?? this.#ports.judge(this, claimant)))
        this.#established(claimant.identity, "");
    } else if (kind === FrameKind.welcome && this.dialing !== undefined) {
      // The answer has the version that was offered, or is refused.
      const { version } = this.dialing;
      this.#welcomed(decodeWelcome(reader, { oldest: version, newest: version }), body);
    } else {
      throw new FrameError("kind", `a frame of kind ${kind} in the handshake`);
    }
  };

  #greeted(hello: DecodedIdentity, body: Uint8Array): void {
    if (this.#refuses(this.#ports.judge(this, hello)) || hello.identity === undefined) return;
    const { role, configHash } = hello.identity;
    const knowsAll = role === "member" || configHash !== "";
    const document = knowsAll ? "" : this.#ports.handler.connections.clusterDocument();
    this.write(this.#handshake.welcome(body, hello, document));
  }

  #welcomed(welcome: DecodedWelcome, body: Uint8Array): void {
    if (this.#refuses(this.#ports.judge(this, welcome)) || welcome.identity === undefined) return;
    if (this.#refuses(this.#handshake.checkWelcome(body, welcome, welcome.signature))) return;
    this.write(this.#handshake.proof(body));
    this.#established(welcome.identity, welcome.clusterDocument);
  }

  #refuses(rejection: LocalRejection | undefined): boolean {
    if (rejection !== undefined) this.reject(rejection);
    return rejection !== undefined;
  }

  #established(peer: Identity, clusterDocument: string): void {
    this.#timer.cancel();
    this.#state = "linked";
    const link = new Link(this.#ports.linkPorts, this, {
      peer,
      address: this.address,
      clusterDocument,
      account: accountOf(this.#proof!, peer, this.address),
      mayBeMember: this.#proof!.roles.includes("member"),
    });
    this.#link = link;
    this.#decoder.allow(FrameKind.call, callBytesMax(peer.role));
    this.#ports.established(this, link);
    // Messages may follow in the same chunk, and must not be handled before the handler has read its clock.
    if (link.open) this.#beginChunk(link);
  }

  /** Sends the reason, then ends the connection. */
  reject(rejection: LocalRejection): void {
    if (this.#state === "closing") return;
    this.#ports.counters[`rejects.sent.${rejection.reason}`] += 1;
    if (this.#state === "handshake" || this.dialing === undefined) this.#ports.refused(this, rejection, "us");
    const frame = new ByteWriter(REJECT_BYTES);
    encodeReject(frame, rejection);
    this.write(frame);
    this.#linger(rejection.text);
  }

  #malformed(error: FrameError): void {
    this.reject({ reason: "badFrame", text: `not a frame of this protocol (${error.message})` });
  }

  /** Ends the connection after pending writes; one without a completed handshake ends at once. */
  end(reason: string): void {
    if (this.#state === "linked") this.#linger(reason);
    else this.close(reason);
  }

  /** Gives the peer a short time to read pending writes. */
  #linger(reason: string): void {
    this.#unlink(reason);
    this.#socket.end();
    this.#timer = this.#ports.world.timers.after(LINGER_MS, () => this.#socket.destroy());
  }

  /** Closes the connection at once. */
  close(reason: string): void {
    if (this.#state === "closing") return;
    this.#unlink(reason);
    this.#socket.destroy();
  }

  #unlink(reason: string): void {
    this.#state = "closing";
    this.#reason = reason;
    this.#timer.cancel();
    this.#decoder.stop();
    const link = this.#link;
    if (link === undefined) return;
    link.closed();
    this.#ports.unlinked(link, reason);
  }

  readonly #failed = (error: Error): void => {
    this.#reason = error.message;
    const fault = this.#proof === undefined ? handshakeFault(error, "dialing") : undefined;
    if (fault === undefined || this.#state === "closing") return;
    this.#ports.refused(this, authRejection(fault.cause, fault.text), "us");
    this.close(fault.text);
  };

  readonly #handshakeTimedOut = (): void => {
    this.#ports.counters["handshakes.timedOut"] += 1;
    this.close(`no handshake within ${this.#ports.options.handshakeTimeoutMs} ms`);
  };

  readonly #socketClosed = (): void => {
    if (this.#state !== "closing") this.#unlink(this.#reason);
    this.#timer.cancel();
    this.#ports.closed(this, this.#reason, this.#link !== undefined);
  };
}
