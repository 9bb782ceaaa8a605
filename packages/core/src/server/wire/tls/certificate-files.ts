import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { TlsFiles } from "./tls-files.js";

/** Until when a file with certificates is of use. */
export interface CertificateFile {
  /** Whom they are shown to, or whose certificates they vouch for. */
  readonly towards: "clients" | "servers";
  readonly file: string;
  /** System time, ms since 1970. */
  readonly expiresMs: number;
  readonly authority: boolean;
}

/** A file that an operator gives has a few; the rest of a longer one is not looked at. */
const certificatesMax = 100;

/** Those that can be read now; what is wrong with others shows when they are used. */
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
    // A chain breaks at its first end; of several authorities one is enough.
    const ordered = ends.toSorted((one, other) => one - other);
    const expiresMs = ordered.at(authority ? -1 : 0)!;
    found.push({ towards, file, expiresMs, authority });
  };
  add(tls.certFile, false);
  add(tls.trustedCaFile, true);
  return found;
}

/** When each certificate of a file expires. */
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
