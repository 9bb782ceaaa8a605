import type { Socket } from "node:net";
import type { PeerHello } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import type { InstallSnapshot, MemberId } from "../../raft/types.js";
import type { PeerMessage } from "../../replica/types.js";
import { RestoringState } from "../../state/snapshot.js";
import type { CoreState } from "../../state/state.js";
import type { CoreMember } from "../../state/members.js";
import { finishInTurns } from "../accounts/turns.js";
import { decodeMessage } from "./codec.js";
import { Frames, frame, frameBytesMax } from "./frames.js";
import { membersBytes, objectionTo, readHello, type Self, spokenWith, welcomeBytes } from "./hello.js";
import { onSilence } from "./sockets.js";

/** Input from other servers. */
export interface Received {
  message(message: PeerMessage): void;
  /** A part of a message from this member has arrived. */
  arriving(member: MemberId): void;
  /** A snapshot has arrived completely; `state` was restored from it. */
  snapshot(message: InstallSnapshot, pieces: readonly Uint8Array[], state: CoreState): void;
}

/** Handles one incoming connection. */
export interface IncomingHandler {
  /** Returns why the sender of this hello is refused; empty if it is not. */
  judge(hello: PeerHello): string;
  /** Whether the sender is a former member. */
  wasRemoved(hello: PeerHello): boolean;
  /** The member list for a joining server. */
  members(): readonly CoreMember[];
  /** The sender's identity is verified as far as possible. */
  admitted(hello: PeerHello): void;
  readonly received: Received;
  trouble(text: string): void;
}

/** Interval at which to report that a message is arriving, ms; shorter than servers' ticks. */
const arrivingMs = 50;

/** A snapshot in transfer. Its connection carries nothing else. */
interface Transfer {
  message: InstallSnapshot | undefined;
  pieces: Uint8Array[];
  bytes: number;
  /** Restores piece by piece, as they arrive: at once it would take seconds. */
  restoring: RestoringState;
  isEnding: boolean;
}

function newTransfer(): Transfer {
  return { message: undefined, pieces: [], bytes: 0, restoring: new RestoringState(), isEnding: false };
}

export interface IncomingBounds {
  /** Timeout for a peer's hello. */
  readonly helloMs: number;
  /** A peer that is silent for this long is disconnected, ms. */
  readonly silenceMs: number;
  /** Bound of one snapshot. */
  readonly snapshotBytesMax: number;
}

/** Memory of a piece in addition to its bytes. */
const pieceOverheadBytes = 100;

/** One connection dialed by another server. */
export class Incoming {
  readonly #socket: Socket;
  readonly #handler: IncomingHandler;
  readonly #frames = new Frames((body) => this.#take(body));
  #hello: PeerHello | undefined;
  #isAdmitted = false;
  #transfer: Transfer | undefined;
  #reportedMs = -Infinity;
  readonly #self: Self;
  readonly #snapshotBytesMax: number;
  readonly #greeting: NodeJS.Timeout;

  constructor(self: Self, socket: Socket, handler: IncomingHandler, bounds: IncomingBounds) {
    const { helloMs, silenceMs, snapshotBytesMax } = bounds;
    this.#snapshotBytesMax = snapshotBytesMax;
    this.#self = self;
    this.#socket = socket;
    this.#handler = handler;
    this.#greeting = setTimeout(() => socket.destroy(), helloMs);
    onSilence(socket, silenceMs, () => socket.destroy());
    socket.on("close", () => clearTimeout(this.#greeting));
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk) => this.#receive(chunk));
  }

  #receive(chunk: Buffer): void {
    try {
      this.#frames.push(chunk);
    } catch (error) {
      this.#fail(error);
    }
    this.#reportArriving();
    // Reads one chunk of a snapshot per turn of the event loop.
    if (this.#transfer === undefined || this.#socket.destroyed) return;
    this.#socket.pause();
    setImmediate(() => this.#socket.resume());
  }

  /** A long message takes time; meanwhile its sender counts as alive. */
  #reportArriving(): void {
    if (!this.#isAdmitted || this.#transfer !== undefined || !this.#frames.isWithin) return;
    const nowMs = performance.now();
    if (nowMs < this.#reportedMs + arrivingMs) return;
    this.#reportedMs = nowMs;
    this.#handler.received.arriving(this.#hello!.from);
  }

  #fail(error: unknown): void {
    this.#handler.trouble(`${this.#who}: ${(error as Error).message}`);
    this.#socket.destroy();
  }

  #take(body: Buffer): void {
    if (this.#hello === undefined) this.#greet(readHello(body));
    else if (!this.#isAdmitted) throw new RangeError("it sent data before it was accepted");
    else if (this.#transfer !== undefined) this.#takePiece(this.#transfer, body);
    else if (body.length === 0) this.#socket.write(Buffer.concat(frame([])));
    else this.#takeMessage(decodeMessage(body, spokenWith(this.#hello)));
  }

  #greet(hello: PeerHello): void {
    this.#hello = hello;
    if (hello.asksMembers) {
      this.#sendMembers(hello);
      return;
    }
    const refusal = this.#handler.judge(hello);
    if (refusal === "") this.#admit(hello);
    else this.#refuse(refusal);
  }

  #admit(hello: PeerHello): void {
    this.#isAdmitted = true;
    clearTimeout(this.#greeting);
    this.#handler.admitted(hello);
    this.#frames.bytesMax = frameBytesMax;
    if (hello.snapshot) this.#transfer = newTransfer();
    this.#answer("");
  }

  #sendMembers(hello: PeerHello): void {
    const objection = objectionTo(hello, this.#self);
    const members = this.#handler.members();
    const answer =
      objection === ""
        ? membersBytes(this.#self, hello, members)
        : welcomeBytes(this.#self, hello, objection);
    this.#socket.end(Buffer.concat(frame([answer])));
  }

  #refuse(refusal: string): void {
    this.#handler.trouble(`${this.#who} was refused: ${refusal}`);
    const wasRemoved = this.#handler.wasRemoved(this.#hello!);
    this.#socket.end(Buffer.concat(frame([welcomeBytes(this.#self, this.#hello!, refusal, wasRemoved)])));
  }

  #takeMessage(message: PeerMessage): void {
    if (message.from !== this.#hello!.from)
      throw new RangeError("it sent a message in the name of another server");
    if (message.kind === "snapshot") throw new RangeError("a snapshot came without its content");
    this.#handler.received.message(message);
  }

  #takePiece(transfer: Transfer, body: Buffer): void {
    if (transfer.message === undefined) {
      const message = decodeMessage(body, spokenWith(this.#hello!));
      if (message.kind !== "snapshot" || message.from !== this.#hello!.from)
        throw new RangeError("it sends no snapshot of its own");
      transfer.message = message;
    } else if (transfer.isEnding) throw new RangeError("it sent data after its snapshot");
    else if (body.length > 0) {
      transfer.bytes += pieceOverheadBytes + body.length;
      if (transfer.bytes > this.#snapshotBytesMax)
        throw new RangeError(
          `it sends a snapshot of more than ${this.#snapshotBytesMax} bytes: is its --quota-backend-bytes another one?`,
        );
      const piece = new Uint8Array(body);
      transfer.pieces.push(piece);
      transfer.restoring.take(piece);
    } else this.#finish(transfer, transfer.message);
  }

  #finish(transfer: Transfer, message: InstallSnapshot): void {
    transfer.isEnding = true;
    finishInTurns(transfer.restoring.finish()).then(
      (state) => {
        if (this.#socket.destroyed) return;
        this.#handler.received.snapshot(message, transfer.pieces, state);
        this.#transfer = { ...newTransfer(), message };
        this.#answer("");
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #answer(refusal: string): void {
    this.#socket.write(Buffer.concat(frame([welcomeBytes(this.#self, this.#hello!, refusal)])));
  }

  get #who(): string {
    const { remoteAddress, remotePort } = this.#socket;
    const name = this.#hello === undefined ? "somebody" : this.#hello.name;
    return remoteAddress === undefined ? name : `${name} from ${remoteAddress}:${remotePort}`;
  }
}
