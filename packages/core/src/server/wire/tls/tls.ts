import { invalidConfig } from "leasehold/common";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { TlsFiles } from "./tls-files.js";
import { pemBlocks } from "./pem.js";
import { ReadOnce } from "./file-cache.js";
import { type Revoked, readRevoked } from "./revocation.js";

const minVersion = "TLSv1.2";

/** Interval at which a server checks whether its certificate has been renewed, ms. */
export const renewMs = 10_000;

/** The certificates that a listener or a dialing server shows and trusts. */
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
    throw invalidConfig(`${path} cannot be read: ${(error as Error).message}`);
  }
}

/** @throws LeaseholdError `INVALID_CONFIG` */
export function readTls({ certFile, ciphers, keyFile, trustedCaFile }: TlsFiles): TlsContent {
  const authority = trustedCaFile === undefined ? {} : { ca: readTlsFile(trustedCaFile) };
  return { cert: readTlsFile(certFile), key: readTlsFile(keyFile), ...authority, minVersion, ...ciphers };
}

type Trust = Pick<TlsFiles, "allowed" | "trustedCaFile"> | undefined;

/** Whether the port between servers would accept clients' certificates. */
export function isOpenToClients(clients: Trust, peers: Trust): boolean {
  if (clients?.trustedCaFile === undefined || peers?.trustedCaFile === undefined) return false;
  if (peers.allowed !== undefined) return false;
  return readTlsFile(clients.trustedCaFile).equals(readTlsFile(peers.trustedCaFile));
}

/** Revoked certificates, and the authorities that a chain must lead to. */
export interface RevokedNow extends Revoked {
  readonly authorities: readonly X509Certificate[];
}

interface Known {
  readonly revoked: ReadOnce<Revoked>;
  readonly authorities: ReadOnce<readonly X509Certificate[]>;
}

/**
 * Cached: a list may have a million certificates, and a server that redials in vain would read it again each
 * time.
 */
const known = new WeakMap<TlsFiles, Known>();

function knownOf(tls: TlsFiles): Known {
  let found = known.get(tls);
  if (found === undefined) {
    const revoked = new ReadOnce((bytes) => readRevoked(bytes, tls.crlFile!));
    found = { revoked, authorities: new ReadOnce(certificatesIn) };
    known.set(tls, found);
  }
  return found;
}

function certificatesIn(pem: Buffer): X509Certificate[] {
  const blocks = pemBlocks(pem, "CERTIFICATE");
  if (blocks.length === 0) throw new RangeError("it has none");
  return blocks.map((each) => new X509Certificate(each));
}

/** Reports to operators that a file is unusable at present; its earlier content stays in use. */
type Report = (text: string) => void;

/**
 * Returns the certificates revoked at present. If the list is unreadable, for example because it is being
 * written, the last readable one stays in use.
 *
 * @param ca the authorities trusted at present
 * @throws LeaseholdError `INVALID_CONFIG` if no list has been read yet
 */
export function revokedNow(tls: TlsFiles, ca: Buffer | undefined, report?: Report): RevokedNow | undefined {
  const { crlFile, trustedCaFile } = tls;
  if (crlFile === undefined) return undefined;
  const { authorities, revoked } = knownOf(tls);
  let list: Revoked;
  try {
    list = revoked.of(readTlsFile(crlFile));
  } catch (error) {
    if (revoked.last === undefined) throw error;
    list = revoked.last;
    report?.(`${(error as Error).message}: the former list stays in use`);
  }
  try {
    return { ...list, authorities: ca === undefined ? [] : authorities.of(ca) };
  } catch (error) {
    throw invalidConfig(`the certificates of ${trustedCaFile} cannot be read: ${(error as Error).message}`);
  }
}

/**
 * Watches for renewed certificates: reports the files' new content once it is consistent, and the revoked
 * certificates at each check, regardless of the other files. Later connections use both.
 *
 * @returns a function that ends it
 */
export function whenRenewed(
  tls: TlsFiles,
  take: (content: TlsContent | undefined, revoked: RevokedNow | undefined) => void,
  report?: Report,
): () => void {
  let shown = readTls(tls);
  const looking = setInterval(() => {
    const renewed = renewedSince(tls, shown, report);
    shown = renewed ?? shown;
    take(renewed, revokedNow(tls, shown.ca, report));
  }, renewMs).unref();
  return () => clearInterval(looking);
}

/**
 * Returns undefined if nothing has changed, or the files are being written or do not match yet. The next
 * check decides; until then the old ones are shown.
 */
function renewedSince(tls: TlsFiles, shown: TlsContent, report?: Report): TlsContent | undefined {
  try {
    const content = readTls(tls);
    if (isSame(content, shown)) return undefined;
    createSecureContext(content);
    revokedNow(tls, content.ca);
    return content;
  } catch (error) {
    report?.(`${tls.certFile} and its key or authority do not match: ${(error as Error).message}`);
    return undefined;
  }
}

function isSame(one: TlsContent, other: TlsContent): boolean {
  return (["ca", "cert", "key"] as const).every((name) => {
    const [mine, theirs] = [one[name], other[name]];
    return mine === theirs || (mine !== undefined && theirs !== undefined && mine.equals(theirs));
  });
}
