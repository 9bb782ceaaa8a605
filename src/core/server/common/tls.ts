import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { invalid } from "./invalid.js";
import type { TlsFiles } from "./config.js";

export const minVersion = "TLSv1.2" as const;

/** How often a server looks whether its certificate has been renewed, ms. */
export const renewMs = 10_000;

/** What a listener, or the side that dials, shows and trusts. */
export interface TlsContent {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
  readonly crl?: Buffer;
}

/** @throws LeaseholdError `INVALID_CONFIG` */
export function readTlsFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw invalid(`${path} cannot be read: ${(error as Error).message}`);
  }
}

/** @throws LeaseholdError `INVALID_CONFIG` */
export function readTls({ certFile, crlFile, keyFile, trustedCaFile }: TlsFiles): TlsContent {
  const authority = trustedCaFile === undefined ? {} : { ca: readTlsFile(trustedCaFile) };
  const crl = crlFile === undefined ? {} : { crl: readRevoked(crlFile) };
  return { cert: readTlsFile(certFile), key: readTlsFile(keyFile), ...authority, ...crl };
}

/** PEM, or DER as etcd reads it: Node takes PEM only. */
function readRevoked(path: string): Buffer {
  const bytes = readTlsFile(path);
  const base64 = bytes.toString("base64").replaceAll(/.{64}/g, "$&\n");
  const crl = bytes.includes("-----BEGIN")
    ? bytes
    : Buffer.from(`-----BEGIN X509 CRL-----\n${base64}\n-----END X509 CRL-----\n`);
  try {
    createSecureContext({ crl });
  } catch (error) {
    throw invalid(`${path} is no list of certificates that were taken back: ${(error as Error).message}`);
  }
  return crl;
}

/**
 * Certificates are renewed while a server runs: tells what the files have come to be, once that fits
 * together. Those who come afterwards are to be shown that.
 *
 * @returns ends it
 */
export function whenRenewed(tls: TlsFiles, take: (content: TlsContent) => void): () => void {
  let shown = readTls(tls);
  const looking = setInterval(() => {
    try {
      const content = readTls(tls);
      if (isSame(content, shown)) return;
      createSecureContext({ ...content, minVersion });
      take(content);
      shown = content;
    } catch {
      // They are just being written, or do not fit each other yet: the next look will tell, and until then
      // the old ones are shown.
    }
  }, renewMs).unref();
  return () => clearInterval(looking);
}

function isSame(one: TlsContent, other: TlsContent): boolean {
  return (["ca", "cert", "crl", "key"] as const).every((name) => {
    const [mine, theirs] = [one[name], other[name]];
    return mine === theirs || (mine !== undefined && theirs !== undefined && mine.equals(theirs));
  });
}
