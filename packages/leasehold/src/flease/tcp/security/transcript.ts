import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Side } from "../../../runtime/security/auth-fault.js";

/** The label under which TLS derives a value that only the two ends of this connection have. */
const CHANNEL_LABEL = "EXPORTER-leasehold-channel";
const CHANNEL_BYTES = 32;

/** A signature made for anything else is none here. */
const CONTEXT = "leasehold handshake, version 4, ";

/**
 * What the two sides of a connection sign: all that both have said, and the TLS connection in which they said
 * it. A recorded proof is of no use elsewhere: another member sends another WELCOME, another connection has
 * other nonces, and a relay between two TLS connections has two channels.
 */
export class Transcript {
  readonly #channel: Buffer;
  readonly #hello: Buffer;

  /** @param hello the body of HELLO; it is not kept */
  constructor(socket: Socket, hello: Uint8Array) {
    this.#channel = digest(
      socket instanceof TLSSocket
        ? socket.exportKeyingMaterial(CHANNEL_BYTES, CHANNEL_LABEL, Buffer.alloc(0))
        : Buffer.alloc(0),
    );
    this.#hello = digest(hello);
  }

  /**
   * @param welcome the body of WELCOME: for the side that accepts without its signature, which is what is
   * being made
   */
  statement(side: Side, welcome: Uint8Array): Buffer {
    return Buffer.concat([Buffer.from(CONTEXT + side), this.#channel, this.#hello, digest(welcome)]);
  }
}

function digest(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}
