import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { invalidConfig, LeaseholdError } from "leasehold/common";
import type { TlsFiles } from "./tls-files.js";
import { readTlsFile } from "./tls.js";

/**
 * Checks that a server's certificate and its key are usable.
 *
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function checkCertificate(tls: TlsFiles): void {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(readTlsFile(tls.certFile));
  } catch (error) {
    if (error instanceof LeaseholdError) throw error;
    throw invalidConfig(`${tls.certFile} is not a certificate: ${(error as Error).message}`);
  }
  if (Date.parse(certificate.validTo) < Date.now())
    throw invalidConfig(`the certificate ${tls.certFile} expired on ${certificate.validTo}`);
  checkKey(tls, certificate);
}

/** Other commands use the same flag for a cluster key: the message is clear if one is given here. */
function checkKey({ certFile, keyFile }: TlsFiles, certificate: X509Certificate): void {
  let key: KeyObject;
  try {
    key = createPrivateKey(readTlsFile(keyFile));
  } catch (error) {
    if (error instanceof LeaseholdError) throw error;
    throw invalidConfig(`${keyFile} is not a private key in PEM: a core's key file is that of ${certFile}`);
  }
  if (!certificate.checkPrivateKey(key))
    throw invalidConfig(`${keyFile} is not the private key of ${certFile}`);
}
