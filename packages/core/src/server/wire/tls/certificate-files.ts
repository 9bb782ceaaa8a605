import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { TlsFiles } from "./tls-files.js";

/** Expiry of a file with certificates. */
export interface CertificateFile {
  /** The peers that see the certificate, or whose certificates it verifies. */
  readonly towards: "clients" | "servers";
  readonly file: string;
  /** System time, ms since 1970. */
  readonly expiresMs: number;
  readonly authority: boolean;
}

/** An operator's file has a few. The rest of a longer one is ignored. */
const certificatesMax = 100;

/** Returns the readable files; errors in others show when they are used. */
export function certificatesOf(
  clientTls: TlsFiles | undefined,
  peerTls: TlsFiles | undefined,
): CertificateFile[] {
  return [...filesOf("clients", clientTls), ...filesOf("servers", peerTls)];
}

function filesOf(towards: CertificateFile["towards"], tls: TlsFiles | undefined): CertificateFile[] {
  if (tls === undefined) return [];
  const found: CertificateFile[] = [];
  const add = (file: string | undefined, authority: boolean) => {
    const ends = file === undefined ? [] : endsIn(file);
    if (file === undefined || ends.length === 0) return;
    // A chain is invalid from its first expiry on; of several authorities, one is enough.
    const ordered = ends.toSorted((one, other) => one - other);
    const expiresMs = ordered.at(authority ? -1 : 0)!;
    found.push({ towards, file, expiresMs, authority });
  };
  add(tls.certFile, false);
  add(tls.trustedCaFile, true);
  return found;
}

/** Expiry of each certificate in a file. */
function endsIn(file: string): number[] {
  try {
    const blocks = readFileSync(file, "utf8").match(
      /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
    );
    return (blocks ?? [])
      .slice(0, certificatesMax)
      .map((block) => Date.parse(new X509Certificate(block).validTo));
  } catch {
    return [];
  }
}
