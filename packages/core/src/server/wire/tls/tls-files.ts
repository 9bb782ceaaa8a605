import type { Ciphers } from "./cipher-suites.js";

/** A certificate must have one of them. */
export interface AllowedNames {
  /** Hosts: names and addresses. */
  readonly kind: "common name" | "host";
  readonly names: readonly string[];
}

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Peers must show a certificate of that authority. */
  readonly trustedCaFile: string | undefined;
  /** The common name in a client's certificate is a user. */
  readonly clientCertAuth: boolean;
  /** Revoked certificates. */
  readonly crlFile?: string | undefined;
  /** Restricts verified certificates to these. */
  readonly allowed?: AllowedNames | undefined;
  /** Cipher suites; by default Node's own choice. */
  readonly ciphers?: Ciphers | undefined;
  /** The server makes its own certificate for these hosts, which cannot be verified. */
  readonly selfMadeFor?: readonly string[];
}

/** Naming an authority demands its certificates, as its name without that would promise too much. */
export function isCertificateWanted({ clientCertAuth, trustedCaFile }: TlsFiles): boolean {
  return clientCertAuth || trustedCaFile !== undefined;
}
