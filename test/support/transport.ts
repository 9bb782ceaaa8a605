import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { afterEach, onTestFinished } from "vitest";
import type { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";
import { copyMessage, Kind, Message } from "../../packages/leasehold/src/flease/protocol/message.js";
import { parseAddress } from "../../packages/leasehold/src/runtime/address.js";
import { ByteReader, ByteWriter } from "../../packages/leasehold/src/flease/tcp/wire/bytes.js";
import { FrameDecoder, FrameKind } from "../../packages/leasehold/src/flease/tcp/wire/frame.js";
import { Handshake } from "../../packages/leasehold/src/flease/tcp/security/handshake.js";
import { incarnationOf } from "../../packages/leasehold/src/flease/tcp/wire/identity.js";
import type { Claims, Identity } from "../../packages/leasehold/src/flease/tcp/wire/identity.js";
import type { TransportOptions } from "../../packages/leasehold/src/flease/tcp/transport/transport-options.js";
import {
  decodeReject,
  encodeHello,
  PROTOCOL_VERSION,
} from "../../packages/leasehold/src/flease/tcp/wire/hello.js";
import type { Introduction, Rejection } from "../../packages/leasehold/src/flease/tcp/wire/hello.js";
import { Outbox } from "../../packages/leasehold/src/flease/tcp/transport/outbox.js";
import type { Link, MessageHandler } from "../../packages/leasehold/src/flease/tcp/transport/link.js";
import { Transport } from "../../packages/leasehold/src/flease/tcp/transport/transport.js";
import {
  IncarnationKey,
  newNonce,
} from "../../packages/leasehold/src/flease/tcp/security/incarnation-key.js";
import type {
  CallHandler,
  ConnectionHandler,
} from "../../packages/leasehold/src/flease/tcp/transport/transport-handler.js";
import { realWorld } from "../../packages/leasehold/src/runtime/world.js";

/**
 * Shared by the tests of the transport: participants that record their events, and strangers on a raw socket.
 */

export const world = realWorld();

const configHash = createHash("md5").update("settings").digest("hex");

export function memberIdentity(nodeId: string, change: Partial<Identity> = {}): Identity {
  return {
    role: "member",
    nodeId,
    incarnation: incarnationOf(randomBytes(32)),
    cluster: "test",
    configHash,
    view: 1,
    cellFunction: 0,
    ...change,
  };
}

export function clientIdentity(nodeId: string, change: Partial<Identity> = {}): Identity {
  return memberIdentity(nodeId, { role: "client", cluster: "", configHash: "", view: 0, ...change });
}

/** Short times, so that a test need not wait. */
export const quick: Partial<TransportOptions> = {
  heartbeatMs: 40,
  handshakeTimeoutMs: 400,
  dialBackoffMs: 5,
  dialBackoffMsMax: 20,
  refusedRetryMs: 100,
  standByMs: 100,
};

/** A participant that records what its transport reports, and answers every request if `answering` is set. */
export class Participant implements ConnectionHandler, MessageHandler, CallHandler {
  readonly transport: Transport;
  readonly events: string[] = [];
  readonly received: Message[] = [];
  readonly links: Link[] = [];
  readonly errors: LeaseholdError[] = [];
  readonly repelledBy: string[] = [];
  /** The order of calls within chunks, recorded if a test sets it. */
  trace: string[] | undefined;
  answering = false;
  keep = true;
  count = 0;
  admission: string | undefined;
  roundTripsMs: number[] = [];

  constructor(claims: Claims, options: Partial<TransportOptions> = {}, key?: IncarnationKey) {
    const handler = { connections: this, messages: this, calls: this };
    this.transport = new Transport(claims, world, handler, { ...quick, ...options }, key);
    onTestFinished(() => this.transport.close());
  }

  connected(link: Link): void {
    this.links.push(link);
    this.events.push(`connected ${link.peerId}`);
  }
  disconnected(link: Link, reason: string): void {
    this.links.splice(this.links.indexOf(link), 1);
    this.events.push(`disconnected ${link.peerId}: ${reason}`);
  }
  refused(address: string, error: LeaseholdError): void {
    this.errors.push(error);
    this.events.push(`refused ${address} ${error.code}`);
  }
  repelled(_address: string, cause: string, text: string): void {
    this.repelledBy.push(`${cause}: ${text}`);
  }
  refusedAsDuplicate(_memberId: string, text: string): void {
    this.events.push(`duplicate: ${text}`);
  }
  duplicateRefused(link: Link): void {
    this.events.push(`refused a duplicate of ${link.peerId}`);
  }
  unreachable(): void {
    this.events.push("unreachable");
  }
  admit(): Rejection | undefined {
    return this.admission === undefined ? undefined : { reason: "notAdmitted", text: this.admission };
  }
  clusterDocument(): string {
    return '{"members":{}}';
  }
  stamp(into: { monoMs: number; loMs: number; hiMs: number }): void {
    into.monoMs = world.clock.monotonicMs();
    into.loMs = world.clock.wallMs();
    into.hiMs = into.loMs;
  }
  chunk(): void {
    this.trace?.push("chunk");
  }
  stamped(_link: Link, _stamp: object, echo: { roundTripMs: number }): void {
    this.trace?.push("stamped");
    if (echo.roundTripMs >= 0) this.roundTripsMs.push(echo.roundTripMs);
  }
  message(link: Link, message: Message): void {
    this.trace?.push("message");
    this.count++;
    if (this.keep) this.received.push(copyMessage(message));
    if (this.answering && message.kind === Kind.acquire) {
      const reply = copyMessage(message);
      reply.kind = Kind.ack;
      link.send(reply);
    }
  }
  chunkEnd(): void {
    this.trace?.push("chunkEnd");
  }
  answer(_link: Link, method: string, params: unknown): unknown {
    if (method === "echo") return params;
    if (method === "never") return new Promise(() => {});
    if (method === "cyclic") {
      const cycle: unknown[] = [];
      cycle.push(cycle);
      return cycle;
    }
    if (method === "large") return "x".repeat(2 * 1024 * 1024);
    throw new Error(`no method ${method}`);
  }
}

export async function listening(
  identity: Identity,
  options: Partial<TransportOptions> = {},
  host = "127.0.0.1",
): Promise<{ member: Participant; address: string }> {
  const member = new Participant(identity, options);
  return { member, address: await member.transport.listen(`${host}:0`) };
}

export function acquire(instance: number, resource = "some/resource"): Message {
  const message = new Message();
  message.kind = Kind.acquire;
  message.view = 1;
  message.instance = instance;
  message.resource = resource;
  message.number = 4096 * (instance + 1);
  message.token = message.number;
  message.until = 1_700_000_000_000;
  message.duration = 15_000;
  return message;
}

/** The frame that carries one message. */
export function batchOf(message: Message): Buffer {
  const outbox = new Outbox();
  outbox.add(message);
  const { bytes, length } = outbox.take(
    { monoMs: 1, loMs: 1, hiMs: 1 },
    { monoMs: 0, loMs: 0, heldMs: 0, roundTripMs: -1 },
  );
  return bytes.subarray(0, length);
}

/** Long enough that a machine which is merely busy isn't taken for one that hangs. */
const hangMs = 30_000;

/** Waits until the condition is true. The test fails if it doesn't become true in time. */
export async function until(condition: () => boolean, what = condition.toString()): Promise<void> {
  const endMs = Date.now() + hangMs;
  while (!condition()) {
    if (Date.now() > endMs) throw new Error(`did not come true: ${what}`);
    await sleep(2);
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** The first part of the handshake of a process with this key. */
export function introduction(claims: Claims, key = new IncarnationKey()): Introduction {
  return { claims, publicKey: key.publicKey, nonce: newNonce() };
}

export function helloBytes(claims: Claims, key?: IncarnationKey): Buffer {
  const writer = new ByteWriter(64);
  encodeHello(writer, introduction(claims, key));
  return written(writer);
}

function written(to: ByteWriter): Buffer {
  return Buffer.from(to.bytes.subarray(0, to.length));
}

/** A peer on a raw socket that sends any bytes. */
export class Stranger {
  /** Only open sockets: a test with a million strangers keeps none that are closed. */
  static readonly #open = new Set<Socket>();
  static {
    afterEach(() => {
      for (const socket of Stranger.#open) socket.destroy();
    });
  }
  readonly socket: Socket;
  readonly rejections: Rejection[] = [];
  readonly kinds: number[] = [];
  closed = false;
  /** The body of the WELCOME. */
  welcome: Buffer | undefined;

  /** @param at a socket of the stranger's own, which may be a TLS one, or an address to dial by plain TCP */
  constructor(at: string | Socket) {
    this.socket = typeof at === "string" ? connect(parseAddress(at)) : at;
    const decoder = new FrameDecoder((kind, bytes, start, end) => {
      this.kinds.push(kind);
      if (kind === FrameKind.welcome) this.welcome = Buffer.from(bytes.subarray(start, end));
      if (kind !== FrameKind.reject) return;
      const reader = new ByteReader();
      reader.reset(bytes, start, end);
      this.rejections.push(decodeReject(reader));
    });
    this.socket.on("data", (chunk) => decoder.push(chunk));
    this.socket.on("error", () => {});
    Stranger.#open.add(this.socket);
    this.socket.on("close", () => {
      this.closed = true;
      Stranger.#open.delete(this.socket);
    });
  }

  say(...bytes: Uint8Array[]): this {
    for (const piece of bytes) this.socket.write(piece);
    return this;
  }

  /**
   * Introduces itself as a process with this key and proves that it has the key, unless it is refused before
   * that.
   */
  async introduce(claims: Claims, key = new IncarnationKey()): Promise<this> {
    if (this.socket instanceof TLSSocket) await once(this.socket, "secureConnect");
    const handshake = new Handshake({ identity: claims, key }, this.socket);
    this.say(written(handshake.hello(PROTOCOL_VERSION)));
    await until(() => this.welcome !== undefined || this.closed, "the hello is answered");
    return this.closed ? this : this.say(written(handshake.proof(this.welcome!)));
  }
}
