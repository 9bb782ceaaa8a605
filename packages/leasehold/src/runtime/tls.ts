import { constants } from "node:crypto";
import { LeaseholdError } from "../lease/errors.js";

/**
 * Sessions are never resumed, because a resumed one could outlive its certificate, and never renegotiated.
 * Connections are long-lived, so neither is missed.
 */
export const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

/** The TLS settings of connections with certificates. */
export const certificateTls = { minVersion: "TLSv1.3", secureOptions } as const;

/**
 * The only cipher suite for pre-shared keys that has forward secrecy, authenticated encryption and no
 * parameters to choose (RFC 7905). `node:tls` supports pre-shared keys up to TLS 1.2.
 */
export const pskTls = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  secureOptions,
} as const;

/** A short key could be guessed offline from recorded handshakes; one of 256 bits cannot. */
const keyBytesMin = 32;

/** OpenSSL accepts up to 512 bytes, but more than this has no benefit. */
const keyBytesMax = 64;

/**
 * Of 10^30 random keys of 32 bytes, one has fewer distinct byte values than this; a pattern typed by hand
 * always has.
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
