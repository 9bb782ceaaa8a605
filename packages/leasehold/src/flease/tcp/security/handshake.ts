import type { Socket } from "node:net";
import { ByteWriter } from "../wire/bytes.js";
import { FRAME_HEADER_BYTES } from "../wire/frame.js";
import { encodeHello, encodeProof, encodeWelcome, SIGNATURE_BYTES } from "../wire/hello.js";
import type { DecodedIdentity, Introduction } from "../wire/hello.js";
import { authRejection } from "./rejection.js";
import type { Side } from "../../../runtime/security/auth-fault.js";
import type { LocalRejection } from "./rejection.js";
import { isSignedBy, newNonce } from "./incarnation-key.js";
import type { IncarnationKey } from "./incarnation-key.js";
import { Transcript } from "./transcript.js";
import type { Claims } from "../wire/identity.js";

/** Initial buffer for a handshake frame: most fit. */
const HANDSHAKE_BYTES = 1024;

/** Our current identity, and the key that proves it. */
export interface Self {
  readonly identity: Claims;
  readonly key: IncarnationKey;
}

/** A HELLO or WELCOME of a version that we speak. */
export type Introduced = Extract<DecodedIdentity, { readonly publicKey: Buffer }>;

/**
 * HELLO, WELCOME, PROOF: each side proves that it has the key of its incarnation by signing everything both
 * sides have sent (`security/transcript.ts`). Until then nothing is done on the peer's behalf.
 */
export class Handshake {
  readonly #self: Self;
  readonly #socket: Socket;
  #transcript: Transcript | undefined;
  #welcome: Uint8Array = new Uint8Array();
  /** On the accepting side: the sender of HELLO, still unproven. */
  claimant: Introduced | undefined;

  constructor(self: Self, socket: Socket) {
    this.#self = self;
    this.#socket = socket;
  }

  /** @param version of the protocol, used by the connection if the peer accepts it */
  hello(version: number): ByteWriter {
    const frame = new ByteWriter(HANDSHAKE_BYTES);
    encodeHello(frame, this.#introduction(), version);
    this.#transcript = new Transcript(this.#socket, bodyOf(frame), version);
    return frame;
  }

  /** The answer to a HELLO, in its version. */
  welcome(hello: Uint8Array, from: Introduced, clusterDocument: string): ByteWriter {
    const transcript = new Transcript(this.#socket, hello, from.version);
    const frame = new ByteWriter(HANDSHAKE_BYTES);
    const sign = (body: Uint8Array) => this.#self.key.sign(transcript.statement("accepting", body));
    encodeWelcome(frame, this.#introduction(), clusterDocument, sign, from.version);
    this.#transcript = transcript;
    this.#welcome = bodyOf(frame);
    this.claimant = from;
    return frame;
  }

  /** The answer to a WELCOME. */
  proof(welcome: Uint8Array): ByteWriter {
    const frame = new ByteWriter(FRAME_HEADER_BYTES + SIGNATURE_BYTES);
    encodeProof(frame, this.#self.key.sign(this.#transcript!.statement("dialing", welcome)));
    return frame;
  }

  /** Whether the sender of WELCOME signed it with its own key. */
  checkWelcome(welcome: Uint8Array, from: Introduced, signature: Uint8Array): LocalRejection | undefined {
    const body = welcome.subarray(0, welcome.length - SIGNATURE_BYTES);
    return check("accepting", from, this.#transcript!.statement("accepting", body), signature);
  }

  /** Whether the sender of HELLO has the key it named. */
  checkProof(signature: Uint8Array): LocalRejection | undefined {
    return check("dialing", this.claimant!, this.#transcript!.statement("dialing", this.#welcome), signature);
  }

  #introduction(): Introduction {
    return { claims: this.#self.identity, publicKey: this.#self.key.publicKey, nonce: newNonce() };
  }
}

function check(
  side: Side,
  { identity, publicKey }: Introduced,
  statement: Uint8Array,
  signature: Uint8Array,
): LocalRejection | undefined {
  if (isSignedBy(publicKey, statement, signature)) return undefined;
  const who = JSON.stringify(`${identity.nodeId}.${identity.incarnation}`);
  return authRejection("incarnation", `the ${side} side does not prove that it is ${who}`);
}

function bodyOf(frame: ByteWriter): Uint8Array {
  return frame.bytes.subarray(FRAME_HEADER_BYTES, frame.length);
}
