import type { Ciphers } from "./cipher-suites.js";

/** One of them has to stand in a certificate. */
export interface AllowedNames {
  /** Hosts: names and addresses. */
  readonly kind: "common name" | "host";
  readonly names: readonly string[];
}

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Who connects has to show a certificate of that authority. */
  readonly trustedCaFile: string | undefined;
  /** The common name in a client's certificate is a user. */
  readonly clientCertAuth: boolean;
  /** Certificates that are taken back. */
  readonly crlFile?: string | undefined;
  /** Of the certificates that an authority vouches for, only these are good enough. */
  readonly allowed?: AllowedNames | undefined;
  /** What is spoken; Node's own choice, if nothing is said. */
  readonly ciphers?: Ciphers | undefined;
  /** The server makes the certificate itself, for these hosts: nobody can verify it. */
  readonly selfMadeFor?: readonly string[];
}

/** As at etcd: whoever names an authority does not want others. */
export function isCertificateWanted({ clientCertAuth, trustedCaFile }: TlsFiles): boolean {
  return clientCertAuth || trustedCaFile !== undefined;
}
