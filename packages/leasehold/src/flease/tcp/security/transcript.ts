import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Side } from "../../../runtime/security/auth-fault.js";

/** The TLS exporter label: the derived value is known only to the two ends of this connection. */
const CHANNEL_LABEL = "EXPORTER-leasehold-channel";
const CHANNEL_BYTES = 32;

/** Separates these signatures from any others made with the key. */
const contextOf = (version: number, side: Side): string => `leasehold handshake, version ${version}, ${side}`;

/**
 * The data that both sides of a connection sign: everything they have sent, and the TLS channel. A recorded
 * proof cannot be replayed: another member sends another WELCOME, another connection has other nonces, and
 * a relay between two TLS connections has two channels.
 */
export class Transcript {
  readonly #channel: Buffer;
  readonly #hello: Buffer;
  readonly #version: number;

  /** @param hello the body of HELLO, which is not retained */
  constructor(socket: Socket, hello: Uint8Array, version: number) {
    this.#version = version;
    this.#channel = digest(
      socket instanceof TLSSocket
        ? socket.exportKeyingMaterial(CHANNEL_BYTES, CHANNEL_LABEL, Buffer.alloc(0))
        : Buffer.alloc(0),
    );
    this.#hello = digest(hello);
  }

  /**
   * @param welcome the body of WELCOME; on the accepting side without the signature, which is yet to be made
   */
  statement(side: Side, welcome: Uint8Array): Buffer {
    const context = Buffer.from(contextOf(this.#version, side));
    return Buffer.concat([context, this.#channel, this.#hello, digest(welcome)]);
  }
}

function digest(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}
