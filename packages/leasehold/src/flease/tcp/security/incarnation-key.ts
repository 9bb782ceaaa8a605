import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  verify,
} from "node:crypto";
import type { KeyObject } from "node:crypto";
import { NONCE_BYTES, PUBLIC_KEY_BYTES } from "../wire/hello.js";
import { incarnationOf } from "../wire/identity.js";

/**
 * The identity of a proposer, different for each start: a key pair generated at the start and never stored.
 * The incarnation is a hash of the public key, so it can be public, and only this process can prove it.
 */
export class IncarnationKey {
  readonly publicKey: Buffer;
  readonly incarnation: string;
  readonly #privateKey: KeyObject;

  constructor() {
    // Encoded by the job that makes it. A key object shares a lock with that job: Node 20 holds it while the
    // key is exported, and hangs for ever if the garbage collector destroys the job meanwhile.
    const pair = generateKeyPairSync("ed25519", {
      publicKeyEncoding: { type: "spki", format: "der" },
      privateKeyEncoding: { type: "pkcs8", format: "der" },
    });
    this.publicKey = Buffer.from(pair.publicKey.subarray(-PUBLIC_KEY_BYTES));
    this.incarnation = incarnationOf(this.publicKey);
    this.#privateKey = createPrivateKey({ key: pair.privateKey, type: "pkcs8", format: "der" });
    pair.privateKey.fill(0);
  }

  sign(statement: Uint8Array): Buffer {
    return sign(null, statement, this.#privateKey);
  }
}

/** Whether `signature` signs this statement with the private key of `publicKey`. */
export function isSignedBy(publicKey: Uint8Array, statement: Uint8Array, signature: Uint8Array): boolean {
  const x = Buffer.from(publicKey).toString("base64url");
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    return verify(null, statement, key, signature);
  } catch {
    return false; // These 32 bytes are not a valid key.
  }
}

export function newNonce(): Buffer {
  return randomBytes(NONCE_BYTES);
}
