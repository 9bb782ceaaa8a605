import { invalidConfig } from "leasehold/common";
import { getCiphers } from "node:tls";

/** Cipher settings for Node's `tls`. */
export interface Ciphers {
  readonly ciphers: string;
  readonly honorCipherOrder: true;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  readonly maxVersion: "TLSv1.2" | "TLSv1.3";
}

/** Go's names of suites, with OpenSSL's. Node may lack those with RC4 or 3DES. */
const suites: Readonly<Record<string, string>> = {
  TLS_RSA_WITH_RC4_128_SHA: "RC4-SHA",
  TLS_RSA_WITH_3DES_EDE_CBC_SHA: "DES-CBC3-SHA",
  TLS_RSA_WITH_AES_128_CBC_SHA: "AES128-SHA",
  TLS_RSA_WITH_AES_256_CBC_SHA: "AES256-SHA",
  TLS_RSA_WITH_AES_128_CBC_SHA256: "AES128-SHA256",
  TLS_RSA_WITH_AES_128_GCM_SHA256: "AES128-GCM-SHA256",
  TLS_RSA_WITH_AES_256_GCM_SHA384: "AES256-GCM-SHA384",
  TLS_ECDHE_ECDSA_WITH_RC4_128_SHA: "ECDHE-ECDSA-RC4-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: "ECDHE-ECDSA-AES128-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: "ECDHE-ECDSA-AES256-SHA",
  TLS_ECDHE_RSA_WITH_RC4_128_SHA: "ECDHE-RSA-RC4-SHA",
  TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA: "ECDHE-RSA-DES-CBC3-SHA",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: "ECDHE-RSA-AES128-SHA",
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: "ECDHE-RSA-AES256-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: "ECDHE-ECDSA-AES128-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: "ECDHE-RSA-AES128-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: "ECDHE-RSA-AES128-GCM-SHA256",
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDHE-ECDSA-AES128-GCM-SHA256",
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: "ECDHE-RSA-AES256-GCM-SHA384",
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: "ECDHE-ECDSA-AES256-GCM-SHA384",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
};

/** TLS 1.3 suites, which have the same names everywhere. */
const suites13: ReadonlySet<string> = new Set([
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
]);

/**
 * The allowed suites, in order of preference. Without a TLS 1.3 suite only TLS 1.2 is used, and the other way
 * round.
 *
 * @throws LeaseholdError `INVALID_CONFIG` if a suite is unknown, or Node lacks it
 */
export function parseCiphers(text = ""): Ciphers | undefined {
  if (text === "") return undefined;
  const had = new Set(getCiphers());
  const names = text.split(",").map((part) => part.trim());
  const found = names.map((name) => {
    const openSsl = suites13.has(name) ? name : Object.hasOwn(suites, name) ? suites[name] : undefined;
    if (openSsl === undefined)
      throw invalidConfig(`--cipher-suites: unexpected TLS cipher suite ${JSON.stringify(name)}`);
    if (!had.has(openSsl.toLowerCase()))
      throw invalidConfig(`--cipher-suites: this Node does not have ${name}`);
    return openSsl;
  });
  const is13 = names.map((name) => suites13.has(name));
  return {
    ciphers: found.join(":"),
    honorCipherOrder: true,
    minVersion: is13.every(Boolean) ? "TLSv1.3" : "TLSv1.2",
    maxVersion: is13.some(Boolean) ? "TLSv1.3" : "TLSv1.2",
  };
}
