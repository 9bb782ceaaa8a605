import { isRequest, Kind, LeaseState, Refusal } from "../../protocol/message.js";
import type { Message } from "../../protocol/message.js";
import { resourceNameBytesMax } from "../../../lease/resource-name.js";
import type { ByteReader, ByteWriter } from "./bytes.js";
import { FRAME_HEADER_BYTES, FrameKind } from "./frame.js";
import { FrameError } from "./frame-error.js";

/** The sender's clocks when a batch left. Reused: copy to keep. */
export interface ClockStamp {
  /** `world.clock.monotonicMs()` of the sender. */
  monoMs: number;
  /** The sender's `lo` and `hi` (section 3.2 of the protocol), ms. */
  loMs: number;
  hiMs: number;
}

/**
 * The peer's echo of the last batch that it had received from us when it sent this one. Reused: copy to
 * keep.
 */
export interface Echo {
  /** Our steady clock when that batch left, ms; valid only when `loMs` is not 0. */
  monoMs: number;
  /** Our `lo` when that batch left, ms; 0 when the peer had not received any batch. */
  loMs: number;
  /** Time the peer held the echo before it sent this batch, by its steady clock, ms. */
  heldMs: number;
  /** The round trip minus the time at the peer, ms, at least 0; -1 without an echo. */
  roundTripMs: number;
}

/** `nodeId.incarnation`, bytes of UTF-8. */
const OWNER_BYTES_MAX = 255;

/** The size of a message's fields except its strings, rounded up. */
const MESSAGE_FIXED_BYTES_MAX = 80;

/** Upper bound of UTF-8 bytes per UTF-16 unit. */
const UTF8_BYTES_PER_UNIT = 3;

/** View, three clock readings, two echoed ones, and how long the echo was held. */
export const BATCH_HEADER_BYTES = 4 + 6 * 8;

/** From the beginning of the frame to its clock stamp. */
const STAMP_OFFSET = FRAME_HEADER_BYTES + 4;

/** Upper bound of a message's bytes, by which a writer checks for room. */
export function messageBytesMax(message: Message): number {
  return (
    MESSAGE_FIXED_BYTES_MAX +
    UTF8_BYTES_PER_UNIT * (message.resource.length + message.leaseOwner.length + message.fullBy.length)
  );
}

/**
 * Begins a batch and returns its start. `stampBatch` and `endFrame` fill in clocks and length when it
 * leaves.
 */
export function openBatch(to: ByteWriter, view: number): number {
  const start = to.beginFrame(FrameKind.batch, BATCH_HEADER_BYTES);
  to.u32(view);
  to.length += BATCH_HEADER_BYTES - 4;
  return start;
}

/** Writes the clocks at the moment of sending into the batch that begins at `start`. */
export function stampBatch(to: ByteWriter, start: number, stamp: ClockStamp, echo: Echo): void {
  const { view } = to;
  const at = start + STAMP_OFFSET;
  view.setFloat64(at, stamp.monoMs);
  view.setFloat64(at + 8, stamp.loMs);
  view.setFloat64(at + 16, stamp.hiMs);
  view.setFloat64(at + 24, echo.monoMs);
  view.setFloat64(at + 32, echo.loMs);
  view.setFloat64(at + 40, echo.heldMs);
}

/**
 * Appends one message to the batch at the end of the buffer. The view is the batch's, the owner the
 * connection's.
 */
export function encodeMessage(to: ByteWriter, message: Message): void {
  to.reserve(messageBytesMax(message));
  const { kind } = message;
  to.u8(kind);
  to.u32(message.instance);
  if (namesResource(kind)) to.text16(message.resource);
  to.f64(message.number);
  to.u32(message.sequence);
  if (carriesIntent(kind)) to.u8(message.waiting ? Intent.waits : Intent.once);
  if (kind === Kind.write || kind === Kind.acquire) {
    to.f64(message.until);
    to.f64(message.duration);
    if (kind === Kind.write) to.f64(message.token);
    return;
  }
  if (!carriesLease(kind)) return;
  if (kind === Kind.nack) {
    to.u8(message.refusal);
    to.u16(message.ahead);
    if (message.refusal === Refusal.full) to.text8(message.fullBy);
  }
  if (kind !== Kind.promise) to.f64(message.promised);
  to.u8(message.leaseState);
  if (message.leaseState === LeaseState.none) return;
  to.text8(message.leaseOwner);
  to.f64(message.leaseNumber);
  to.u32(message.leaseSequence);
  to.f64(message.leaseExpiresWallMs);
  to.f64(message.leaseToken);
}

/** Decodes the header of a batch; the rest of the frame is messages. Returns the view. */
export function decodeBatchHeader(from: ByteReader, stamp: ClockStamp, echo: Echo): number {
  const view = from.u32();
  stamp.monoMs = from.time();
  stamp.loMs = from.time();
  stamp.hiMs = from.time();
  echo.monoMs = from.time();
  echo.loMs = from.time();
  echo.heldMs = from.time();
  return view;
}

/**
 * Decodes the next message in place. `view` and `owner` are those of the batch and of the connection; all
 * fields are written.
 */
export function decodeMessage(from: ByteReader, into: Message, view: number, owner: string): void {
  const kind = from.u8();
  if (kind < Kind.read || kind > Kind.pass) throw new FrameError("code", `a message of kind ${kind}`);
  into.kind = kind as Kind;
  into.view = view;
  into.instance = from.u32();
  into.resource = namesResource(into.kind) ? from.name16(1, resourceNameBytesMax) : "";
  into.owner = isRequest(into.kind) ? owner : "";
  into.number = from.whole();
  into.sequence = from.u32();
  const intent = carriesIntent(into.kind) ? from.u8() : 0;
  if (intent > Intent.renewed) throw new FrameError("code", `an intent ${intent}`);
  into.waiting = intent === Intent.waits;
  into.renewing = false;
  const leased = kind === Kind.write || kind === Kind.acquire;
  into.until = leased ? from.time() : 0;
  into.duration = leased ? from.time() : 0;
  into.token = tokenOf(from, into);
  into.refusal = kind === Kind.nack ? refusalOf(from.u8()) : Refusal.none;
  into.ahead = kind === Kind.nack ? from.u16() : 0;
  into.fullBy = into.refusal === Refusal.full ? from.name8(0, OWNER_BYTES_MAX) : "";
  into.promised = kind === Kind.nack || kind === Kind.state ? from.whole() : 0;
  into.leaseState = carriesLease(into.kind) ? leaseStateOf(from.u8()) : LeaseState.none;
  if (into.leaseState === LeaseState.none) {
    into.leaseOwner = "";
    into.leaseNumber = 0;
    into.leaseSequence = 0;
    into.leaseExpiresWallMs = 0;
    into.leaseToken = 0;
  } else {
    into.leaseOwner = from.name8(1, OWNER_BYTES_MAX);
    into.leaseNumber = from.whole();
    into.leaseSequence = from.u32();
    into.leaseExpiresWallMs = from.time();
    into.leaseToken = boundedToken(from.whole(), into.leaseNumber);
  }
}

function namesResource(kind: Kind): boolean {
  return isRequest(kind) || kind === Kind.hint;
}

function carriesIntent(kind: Kind): boolean {
  return kind === Kind.read || kind === Kind.acquire || kind === Kind.release;
}

function carriesLease(kind: Kind): boolean {
  return kind === Kind.promise || kind === Kind.nack || kind === Kind.state;
}

/**
 * The sender's reaction to a refusal: give up, or wait for a release. Earlier versions had a third for
 * renewals, which is read as the first.
 */
const Intent = { once: 0, waits: 1, renewed: 2 } as const;

/** The token of an acquisition is its ballot number and is not sent twice. */
function tokenOf(from: ByteReader, message: Message): number {
  if (message.kind === Kind.write) return boundedToken(from.whole(), message.number);
  return message.kind === Kind.acquire ? message.number : 0;
}

/** A tenure's token is the number of the ballot that began it; its later ballots have greater ones. */
function boundedToken(token: number, number: number): number {
  if (token > number) throw new FrameError("number", `a token ${token} in the ballot ${number}`);
  return token;
}

function refusalOf(code: number): Refusal {
  if (code > Refusal.busy) throw new FrameError("code", `a refusal ${code}`);
  return code as Refusal;
}

function leaseStateOf(code: number): LeaseState {
  if (code > LeaseState.released) throw new FrameError("code", `a state ${code} of a lease`);
  return code as LeaseState;
}
