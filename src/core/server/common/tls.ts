import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { invalid } from "./invalid.js";
import type { TlsFiles } from "./config.js";
import { type Revoked, readRevoked } from "./revoked.js";

const minVersion = "TLSv1.2";

/** How often a server looks whether its certificate has been renewed, ms. */
export const renewMs = 10_000;

/** What a listener, or the side that dials, shows and trusts. */
export interface TlsContent {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  readonly maxVersion?: "TLSv1.2" | "TLSv1.3";
  readonly ciphers?: string;
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
export function readTls({ certFile, ciphers, keyFile, trustedCaFile }: TlsFiles): TlsContent {
  const authority = trustedCaFile === undefined ? {} : { ca: readTlsFile(trustedCaFile) };
  return { cert: readTlsFile(certFile), key: readTlsFile(keyFile), ...authority, minVersion, ...ciphers };
}

/** Which certificates were taken back, now. @throws LeaseholdError `INVALID_CONFIG` */
export function revokedNow({ crlFile }: TlsFiles): Revoked | undefined {
  return crlFile === undefined ? undefined : readRevoked(readTlsFile(crlFile), crlFile);
}

/**
 * Certificates are renewed while a server runs: tells what the files have come to be, once that fits
 * together, and each time which certificates were taken back. Those who come afterwards are to be shown that.
 *
 * @returns ends it
 */
export function whenRenewed(
  tls: TlsFiles,
  take: (content: TlsContent | undefined, revoked: Revoked | undefined) => void,
): () => void {
  let shown = readTls(tls);
  const looking = setInterval(() => {
    try {
      const content = readTls(tls);
      const revoked = revokedNow(tls);
      if (isSame(content, shown)) {
        take(undefined, revoked);
        return;
      }
      createSecureContext(content);
      take(content, revoked);
      shown = content;
    } catch {
      // They are just being written, or do not fit each other yet: the next look will tell, and until then
      // the old ones are shown.
    }
  }, renewMs).unref();
  return () => clearInterval(looking);
}

function isSame(one: TlsContent, other: TlsContent): boolean {
  return (["ca", "cert", "key"] as const).every((name) => {
    const [mine, theirs] = [one[name], other[name]];
    return mine === theirs || (mine !== undefined && theirs !== undefined && mine.equals(theirs));
  });
}
