/**
 * The causes of failed authentication. The names are stable: counters use them, and each is logged once a
 * minute.
 */
export const authCauses = [
  /** No certificate was sent. */
  "noCertificate",
  /** The certificate is self-signed, or signed by an untrusted authority. */
  "untrusted",
  "expired",
  "notYetValid",
  /** Any other fault of a certificate: a wrong purpose, or no Leasehold name in it. */
  "certificate",
  /** The credentials are for another cluster. */
  "cluster",
  /** The credentials do not allow the claimed role. */
  "role",
  /** The credentials belong to another member. */
  "memberId",
  /** The peer lacks the key of the incarnation that it claims. */
  "incarnation",
  /** The cluster key differs. */
  "key",
  /** Unencrypted bytes where TLS is expected. */
  "plain",
  /** One side uses certificates and the other a key, or an unsupported version of TLS. */
  "method",
  /** Any other failure before a TLS connection is established. */
  "tls",
] as const;

export type AuthCause = (typeof authCauses)[number];

export interface AuthFault {
  readonly cause: AuthCause;
  /** A sentence for messages. */
  readonly text: string;
}

/** This side's role in a connection. */
export type Side = "accepting" | "dialing";

/** The cause and text of an OpenSSL error. */
type Sentence = readonly [cause: AuthCause, text: string];

const strange: Sentence = ["untrusted", "was signed by an authority that is not this cluster's"];

/** OpenSSL's errors for certificates. Each text follows the certificate's name. */
const ofCertificates: Readonly<Record<string, Sentence>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: ["untrusted", "is self-signed, and not by the authority of this cluster"],
  SELF_SIGNED_CERT_IN_CHAIN: strange,
  UNABLE_TO_GET_ISSUER_CERT: strange,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: strange,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: strange,
  CERT_SIGNATURE_FAILURE: strange,
  CERT_HAS_EXPIRED: ["expired", "has expired, or its authority's has"],
  CERT_NOT_YET_VALID: ["notYetValid", "is not valid yet: is a clock wrong?"],
  INVALID_PURPOSE: ["certificate", "was not issued for this side of a connection (extendedKeyUsage)"],
};

/** The fault of a certificate, from OpenSSL's error. The sentence begins with `whose`. */
export function certificateFault(code: string, whose: string): AuthFault {
  const [cause, text] = ofCertificates[code] ?? ["certificate", `is refused: ${code}`];
  return { cause, text: `${whose} ${text}` };
}

const atAcceptingSide: Readonly<Record<string, Sentence>> = {
  ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC: ["key", "its key is not ours"],
  ERR_SSL_DIGEST_CHECK_FAILED: ["key", "its key is not ours"],
  ERR_SSL_PSK_IDENTITY_NOT_FOUND: ["key", "it names a key that we do not have"],
  ERR_SSL_WRONG_VERSION_NUMBER: ["plain", "it does not speak TLS"],
  ERR_SSL_HTTP_REQUEST: ["plain", "it does not speak TLS"],
  ERR_SSL_HTTPS_PROXY_REQUEST: ["plain", "it does not speak TLS"],
  ERR_SSL_NO_SHARED_CIPHER: ["method", "it uses a certificate where we use a key, or no cipher that we use"],
  ERR_SSL_UNSUPPORTED_PROTOCOL: [
    "method",
    "it uses a key where we use certificates, or too old a version of TLS",
  ],
};

const atDialingSide: Readonly<Record<string, Sentence>> = {
  ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC: ["key", "the key there is not ours"],
  ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR: ["key", "the key there is not ours"],
  ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC: ["key", "the key there is not ours"],
  ERR_SSL_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY: ["key", "there is no key for our role there"],
  ERR_SSL_WRONG_VERSION_NUMBER: ["plain", "what answers there does not speak TLS"],
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: ["method", "a key is used there, and a certificate here"],
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: ["method", "one side uses a key and the other certificates"],
};

/** The fault of a TLS handshake, from the error's code; `undefined` for other errors, such as a reset. */
export function handshakeFault(error: Error, side: Side): AuthFault | undefined {
  const { code, reason } = error as Error & { code?: unknown; reason?: unknown };
  if (typeof code !== "string" || !code.startsWith("ERR_SSL_")) return undefined;
  // For alerts that TLS shares with SSL 3, Node 22 and later use a name that contains both.
  const name = code.replace("ERR_SSL_SSL/TLS_ALERT_", "ERR_SSL_SSLV3_ALERT_");
  const known = (side === "accepting" ? atAcceptingSide : atDialingSide)[name];
  if (known !== undefined) return { cause: known[0], text: known[1] };
  return { cause: "tls", text: `no TLS connection: ${typeof reason === "string" ? reason : code}` };
}
