import { X509Certificate } from "node:crypto";
import type {
  ConnectionOptions,
  PeerCertificate,
  SecureContext,
  TlsOptions as TlsServerOptions,
  TLSSocket,
} from "node:tls";
import { certificateFault } from "./auth-fault.js";
import type { AuthFault } from "./auth-fault.js";
import { describeCertificate, proofOfCertificate } from "./certificate.js";
import type { Credentials } from "./credentials.js";
import type { FileWatch } from "./file-watch.js";
import type { Proof } from "./proof.js";
import { certificateTls } from "../tls.js";

/** The most recently read certificates. */
export interface CertificateSet {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly own: X509Certificate;
  readonly context: SecureContext;
}

/**
 * Certificates, with mutual TLS authentication. OpenSSL checks the chain, the dates and the purpose;
 * `proofOf` reads its result. Node must not close the connection by itself (`rejectUnauthorized`), so that a
 * refused peer can be sent the reason.
 */
export class CertificateCredentials implements Credentials {
  readonly #watch: FileWatch<CertificateSet>;

  constructor(watch: FileWatch<CertificateSet>) {
    this.#watch = watch;
  }

  get version(): number {
    return this.#watch.version;
  }

  get participant(): "client" | "observer" {
    const own = proofOfCertificate(this.#watch.current.own);
    return "cause" in own || own.roles.includes("client") ? "client" : "observer";
  }

  serverOptions(): TlsServerOptions {
    const { ca, cert, key } = this.#watch.current;
    return { ...certificateTls, ca, cert, key, requestCert: true, rejectUnauthorized: false };
  }

  dialOptions(): ConnectionOptions {
    return {
      secureContext: this.#watch.current.context,
      ...certificateTls,
      rejectUnauthorized: false,
      // Members are identified by the ids in their certificates, not by their addresses.
      checkServerIdentity: () => undefined,
    };
  }

  proofOf(socket: TLSSocket): Proof | AuthFault {
    // Created from the certificate's bytes, because each call of `getPeerX509Certificate` leaks 10 kB in Node
    // 20.
    const { raw } = socket.getPeerCertificate() as Partial<PeerCertificate>;
    if (raw === undefined) return { cause: "noCertificate", text: "it shows no certificate" };
    const certificate = new X509Certificate(raw);
    const whose = describeCertificate(certificate);
    if (socket.isSessionReused()) return { cause: "tls", text: "sessions are not resumed here" };
    if (!socket.authorized) return certificateFault(String(socket.authorizationError), whose);
    return proofOfCertificate(certificate);
  }

  claimOf(): undefined {
    return undefined;
  }

  close(): void {
    this.#watch.close();
  }
}
