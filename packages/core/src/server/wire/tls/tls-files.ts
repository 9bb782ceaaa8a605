import type { Ciphers } from "./cipher-suites.js";

/** The certificate must have at least one of these names. */
export interface AllowedNames {
  /** Hosts are names and addresses. */
  readonly kind: "common name" | "host";
  readonly names: readonly string[];
}

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Peers must show a certificate from this authority. */
  readonly trustedCaFile: string | undefined;
  /** The common name in a client's certificate is a user. */
  readonly clientCertAuth: boolean;
  /** File of revoked certificates. */
  readonly crlFile?: string | undefined;
  /** Restricts verified certificates to those with these names. */
  readonly allowed?: AllowedNames | undefined;
  /** Cipher suites; by default Node's own choice. */
  readonly ciphers?: Ciphers | undefined;
  /** The server makes its own certificate for these hosts. Peers cannot verify it. */
  readonly selfMadeFor?: readonly string[];
}

/**
 * If an authority is named, certificates are required: otherwise the setting would promise more than it does.
 */
export function isCertificateWanted({ clientCertAuth, trustedCaFile }: TlsFiles): boolean {
  return clientCertAuth || trustedCaFile !== undefined;
}
