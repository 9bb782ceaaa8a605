import { constants } from "node:crypto";
import { LeaseholdError } from "../lease/errors.js";

/**
 * No session is resumed, because a resumed one would outlive its certificate, and nothing is renegotiated.
 * Connections here are long-lived, so neither is missed.
 */
export const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

/** The TLS settings of connections with certificates. */
export const certificateTls = { minVersion: "TLSv1.3", secureOptions } as const;

/**
 * The one suite for pre-shared keys with forward secrecy, authenticated encryption and no parameters to
 * choose (RFC 7905). `node:tls` offers pre-shared keys up to TLS 1.2.
 */
export const pskTls = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  secureOptions,
} as const;

/**
 * 256 bits cannot be guessed, even offline from recorded handshakes, which would be possible with a short
 * key.
 */
const keyBytesMin = 32;

/** OpenSSL takes up to 512 bytes; more than this has no benefit. */
const keyBytesMax = 64;

/**
 * 32 random bytes have fewer distinct values than this once in 10^30 cases; a pattern typed by hand, always.
 */
const differentBytesMin = 10;

/**
 * A pre-shared key from hexadecimal digits. Messages never contain secrets.
 *
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export function preSharedKey(digits: string, source: string): Buffer {
  const even = /^(?:[0-9a-f]{2})*$/i.test(digits);
  if (!even || digits.length < 2 * keyBytesMin || digits.length > 2 * keyBytesMax)
    throw invalidKey(source, `a key has ${2 * keyBytesMin} to ${2 * keyBytesMax} hexadecimal digits`);
  const key = Buffer.from(digits, "hex");
  if (new Set(key).size < differentBytesMin) throw invalidKey(source, "the key is not random");
  return key;
}

export function invalidKey(source: string, why: string): LeaseholdError {
  return new LeaseholdError(
    "INVALID_CONFIG",
    `${source}: ${why}; a passphrase is not enough: create a key with \`leasehold cert key FILE\``,
  );
}
