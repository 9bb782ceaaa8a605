import { X509Certificate } from "node:crypto";
import { isPem } from "../pem.js";

/** A file of certificates, and its expiry, ms since 1970. */
export type CertificateEnd = readonly [file: string, expiresMs: number];

/** The certificates that this process uses, for metrics. */
export const certificateSources = new Set<() => Iterable<CertificateEnd>>();

interface Pair {
  readonly cert: string;
  readonly ca?: string | undefined;
}

/**
 * The expiry of the certificates read from these files. PEM texts given instead of files have no name and are
 * left out.
 */
export function certificateEnds(files: Pair, pems: Pair): CertificateEnd[] {
  return (["cert", "ca"] as const).flatMap((what) => {
    const file = files[what];
    if (file === undefined || isPem(file)) return [];
    try {
      const ends = pems[what]!.match(/-----BEGIN CERTIFICATE-[^]+?-----END CERTIFICATE-----/g)!.map((block) =>
        Date.parse(new X509Certificate(block).validTo),
      );
      // A chain breaks at its earliest expiry; of several authorities one is enough.
      const ordered = ends.toSorted((one, other) => one - other);
      return [[file, ordered.at(what === "ca" ? -1 : 0)!] as const];
    } catch {
      return [];
    }
  });
}
