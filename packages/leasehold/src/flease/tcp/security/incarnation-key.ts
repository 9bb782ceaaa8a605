import { createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { NONCE_BYTES } from "../wire/hello.js";
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
    const pair = generateKeyPairSync("ed25519");
    this.publicKey = Buffer.from(pair.publicKey.export({ format: "jwk" }).x!, "base64url");
    this.incarnation = incarnationOf(this.publicKey);
    this.#privateKey = pair.privateKey;
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
