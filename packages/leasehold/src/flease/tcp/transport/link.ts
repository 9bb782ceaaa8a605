import { ownerName } from "../../protocol/ballot.js";
import { isRequest, Kind, Message } from "../../protocol/message.js";
import { ByteReader } from "../wire/bytes.js";
import type { ByteWriter } from "../wire/bytes.js";
import type { Counters } from "./counters.js";
import { decodeBatchHeader, decodeMessage } from "../wire/codec.js";
import type { ClockStamp, Echo } from "../wire/codec.js";
import { CALL_FRAME_BYTES_MAX, FrameKind, MEMBER_CALL_FRAME_BYTES_MAX } from "../wire/frame.js";
import { FrameError } from "../wire/frame-error.js";
import { Outbox } from "./outbox.js";
import { RoundTrip } from "./round-trip.js";
import { decodeAnswer, decodeCall, encodeAnswer, encodeCall } from "../wire/admin-frames.js";
import type { AnswerFrame, CallFrame } from "../wire/admin-frames.js";
import type { Identity } from "../wire/identity.js";
import type { Role } from "../../../runtime/security/roles.js";

/** Carries a link's bytes: a socket, or a member's loopback. */
export interface Carrier {
  /** False while an earlier write is in flight. */
  readonly ready: boolean;
  /**
   * Sends the whole buffer. True when it may be reused at once; otherwise the link's `written` is called
   * later.
   */
  write(buffer: ByteWriter): boolean;
  close(reason: string): void;
}

/** Receives what arrives on links. Called synchronously; must not throw. */
export interface MessageHandler {
  /**
   * Fills in the clocks for a batch that leaves now. `monoMs` must come from the transport's own
   * `world.clock`.
   */
  stamp(into: ClockStamp): void;
  /**
   * Bytes have arrived on this link and none of their messages has been handled: the place to read the
   * clock once for all of them.
   */
  chunk(link: Link): void;
  /** Once for each batch, before its messages. Both records are reused. */
  stamped(link: Link, stamp: ClockStamp, echo: Echo): void;
  /**
   * One message. The record is reused: valid during this call only. In requests `owner` is `link.owner`.
   * Clients receive only replies, and send only requests: anything else has closed their connection.
   */
  message(link: Link, message: Message): void;
  /** All messages of the chunk have been handled. Also called when the chunk ended in a refused frame. */
  chunkEnd(link: Link): void;
}

/** Shared by all links of a transport; implemented by `Links`. */
export interface LinkPorts {
  readonly role: Role;
  /** The view that a heartbeat carries. */
  readonly view: number;
  readonly messages: MessageHandler;
  readonly counters: Counters;
  readonly linkBytesMax: number;
  /** The link has something to send: flush it at the end of this turn. */
  markDirty(link: Link): void;
  /** Handles peers' calls, and their answers to ours. */
  readonly calls: {
    called(link: Link, call: CallFrame): void;
    answered(link: Link, answer: AnswerFrame): void;
  };
}

/** The origin of a link. */
export interface LinkOrigin {
  readonly peer: Identity;
  readonly address: string;
  readonly clusterDocument: string;
  /** The account that the peer's resources are charged to (`accountOf`). */
  readonly account: string;
  /** Its credentials allow it to be a member, whatever its role. */
  readonly mayBeMember: boolean;
}

// One of each serves all links: they are in use only within a single call of `frame`, and such calls never
// nest.
const reader = new ByteReader();
const message = new Message();
const receivedStamp: ClockStamp = { monoMs: 0, loMs: 0, hiMs: 0 };
const receivedEcho: Echo = { monoMs: 0, loMs: 0, heldMs: 0, roundTripMs: -1 };

/** Extra queue room for renewals, so that a flood of new requests costs no held lease. */
const URGENT_BYTES_MAX = 1024 * 1024;

/** Upper bound of a CALL from a participant of this role. */
export function callBytesMax(role: Role): number {
  return role === "member" ? MEMBER_CALL_FRAME_BYTES_MAX : CALL_FRAME_BYTES_MAX;
}

/** A connected peer. */
export class Link {
  readonly role: Role;
  readonly peerId: string;
  /** 32 hexadecimal digits. */
  readonly incarnation: string;
  /** `peerId.incarnation`: the owner of every ballot in this peer's requests. */
  readonly owner: string;
  /** The peer's identity from its handshake. */
  readonly peer: Identity;
  /** The address that was dialed, or the one the connection came from. */
  readonly address: string;
  /** The account that the peer's resources are charged to (`accountOf`). */
  readonly account: string;
  /** Its credentials allow it to be a member, whatever its role. */
  readonly mayBeMember: boolean;
  /** The accepting member's description of the cluster, JSON; `""` unless a client dialed. */
  readonly clusterDocument: string;
  /** The protocol's number for this peer, chosen by `PeerConnections`. The transport ignores it. */
  handle = -1;

  readonly #links: LinkPorts;
  readonly #carrier: Carrier;
  readonly #outbox = new Outbox();
  readonly #roundTrip = new RoundTrip();
  /** The buffer in flight, and its size. */
  #inFlight: ByteWriter | undefined;
  #open = true;
  #dirty = false;
  #sentSinceTick = false;
  #silentTicks = 0;

  constructor(links: LinkPorts, carrier: Carrier, origin: LinkOrigin) {
    this.#links = links;
    this.#carrier = carrier;
    this.peer = origin.peer;
    this.role = origin.peer.role;
    this.peerId = origin.peer.nodeId;
    this.incarnation = origin.peer.incarnation;
    this.owner = ownerName(origin.peer.nodeId, origin.peer.incarnation);
    this.address = origin.address;
    this.account = origin.account;
    this.mayBeMember = origin.mayBeMember;
    this.clusterDocument = origin.clusterDocument;
  }

  /** False once the link is closed. */
  get open(): boolean {
    return this.#open;
  }

  /** The smallest of the recent round trips, ms; `undefined` before the first. */
  get roundTripMs(): number | undefined {
    return this.#roundTrip.smallestMs;
  }

  /** Bytes queued for this peer, in the socket and before it. */
  get waitingBytes(): number {
    return this.#outbox.length + (this.#inFlight?.length ?? 0);
  }

  /** Closes the connection; `disconnected` is called with the reason. A dialed address is dialed again. */
  close(reason: string): void {
    this.#carrier.close(reason);
  }

  /** The carrier is gone: from here on nothing is sent or delivered. */
  closed(): void {
    this.#open = false;
  }

  /**
   * Appends a message to the batch that leaves at the end of this turn. Never throws: a message without
   * room, or on a closed link, is dropped and counted.
   */
  send(message: Message): void {
    const { counters } = this.#links;
    if (!this.#open) {
      counters["messages.dropped.closed"] += 1;
      return;
    }
    const renews = message.renewing && isRequest(message.kind);
    const room = renews
      ? this.#outbox.urgentLength < URGENT_BYTES_MAX
      : this.waitingBytes < this.#links.linkBytesMax;
    if (!room) {
      counters["messages.dropped.congested"] += 1;
      return;
    }
    if (renews) this.#outbox.addUrgent(message);
    else this.#outbox.add(message);
    counters["messages.sent"] += 1;
    this.#markDirty();
  }

  /**
   * False when there is no room, or the call is too large.
   *
   * @throws TypeError for values that JSON cannot represent.
   */
  sendCall(call: CallFrame): boolean {
    if (!this.#open || this.waitingBytes >= this.#links.linkBytesMax) return false;
    if (!encodeCall(this.#outbox.frames, call, callBytesMax(this.#links.role))) return false;
    this.#markDirty();
    return true;
  }

  /**
   * False when there is no room.
   *
   * @throws TypeError or RangeError for values that an answer cannot represent.
   */
  sendAnswer(answer: AnswerFrame): boolean {
    if (!this.#open || this.waitingBytes >= this.#links.linkBytesMax) return false;
    encodeAnswer(this.#outbox.frames, answer);
    this.#markDirty();
    return true;
  }

  #markDirty(): void {
    if (this.#dirty) return;
    this.#dirty = true;
    this.#links.markDirty(this);
  }

  /**
   * Sends the queued frames, as one write. While an earlier write is in flight the queue stays here, where it
   * is counted. Its clocks are taken when it leaves.
   */
  flush(stamp: ClockStamp): void {
    this.#dirty = false;
    if (!this.#open || this.#outbox.length === 0 || !this.#carrier.ready) return;
    const { counters } = this.#links;
    const buffer = this.#outbox.take(stamp, this.#roundTrip.echoAt(stamp.monoMs));
    this.#sentSinceTick = true;
    counters.writes += 1;
    counters["bytes.sent"] += buffer.length;
    this.#inFlight = buffer;
    if (this.#carrier.write(buffer)) this.#released();
  }

  /** The carrier has finished with the buffer of the last write. */
  written(): void {
    if (this.#inFlight === undefined) return;
    this.#released();
    if (this.#open && this.#outbox.length > 0) this.#markDirty();
  }

  #released(): void {
    this.#outbox.giveBack(this.#inFlight!);
    this.#inFlight = undefined;
  }

  /** Records that bytes have arrived, at this time of our steady clock. */
  heard(monoMs: number): void {
    this.#silentTicks = 0;
    this.#roundTrip.heard(monoMs);
  }

  /** Called once per heartbeat. Returns the number of heartbeats without any bytes from the peer. */
  tick(): number {
    this.#roundTrip.tick();
    if (!this.#sentSinceTick && this.#outbox.length === 0 && this.#inFlight === undefined) {
      this.#outbox.openBatch(this.#links.view);
      this.#markDirty();
    }
    this.#sentSinceTick = false;
    return this.#silentTicks++;
  }

  /**
   * Handles one frame of the peer.
   *
   * @throws FrameError
   */
  frame(kind: FrameKind, bytes: Buffer, start: number, end: number): void {
    if (!this.#open) return;
    reader.reset(bytes, start, end);
    if (kind === FrameKind.batch) this.#batch();
    else if (kind === FrameKind.call) this.#links.calls.called(this, decodeCall(reader));
    else if (kind === FrameKind.answer) this.#links.calls.answered(this, decodeAnswer(reader));
    else throw new FrameError("kind", `a frame of kind ${kind} after the handshake`);
  }

  #batch(): void {
    const { messages, counters, role } = this.#links;
    const view = decodeBatchHeader(reader, receivedStamp, receivedEcho);
    counters["batches.received"] += 1;
    this.#roundTrip.received(receivedStamp, receivedEcho);
    messages.stamped(this, receivedStamp, receivedEcho);
    const requestsOnly = this.role !== "member";
    const repliesOnly = role !== "member";
    const queriesOnly = this.role === "observer";
    while (this.#open && reader.remaining > 0) {
      decodeMessage(reader, message, view, this.owner);
      const request = isRequest(message.kind);
      if (request ? repliesOnly : requestsOnly) {
        throw new FrameError("direction", `a message of kind ${message.kind} from a ${this.role}`);
      }
      if (queriesOnly && message.kind !== Kind.query) {
        throw new FrameError("role", `a message of kind ${message.kind} from an observer`);
      }
      counters["messages.received"] += 1;
      messages.message(this, message);
    }
  }
}
