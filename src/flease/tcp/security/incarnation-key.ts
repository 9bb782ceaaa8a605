import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from "node:crypto";
import type { KeyObject } from "node:crypto";

/** An Ed25519 public key, and a signature, as they travel. */
export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** What each side adds to a handshake, so that no two handshakes are alike. */
export const NONCE_BYTES = 32;

/**
 * To speak in another's name somebody would have to find a second key with the same incarnation: some 2^128 keys tried, or
 * 2^98 to meet any of a billion owners. The 64 bits of a random incarnation would be 2^64, which large machines can do.
 */
const INCARNATION_BYTES = 16;

/** The incarnation of whoever has this key. */
export function incarnationOf(publicKey: Uint8Array): string {
  return createHash("sha256")
    .update(publicKey)
    .digest("hex")
    .slice(0, 2 * INCARNATION_BYTES);
}

/**
 * Who one proposer instance is: a key pair drawn at its start and kept nowhere. Its incarnation is a hash of the public key, so
 * everybody may see it, and only this process can prove that it is the one.
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

/** Whether whoever has the private key of `publicKey` signed this. */
export function isSignedBy(publicKey: Uint8Array, statement: Uint8Array, signature: Uint8Array): boolean {
  const x = Buffer.from(publicKey).toString("base64url");
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    return verify(null, statement, key, signature);
  } catch {
    return false; // These 32 bytes are no key.
  }
}

export function newNonce(): Buffer {
  return randomBytes(NONCE_BYTES);
}
