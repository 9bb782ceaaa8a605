import { createMetrics } from "leasehold/metrics";
import { certificateSources } from "leasehold/runtime";
import { lookedAtSeldom } from "./api/diagnosis.js";
import type { CoreConfig } from "./config/config.js";
import { certificatesOf } from "./wire/tls/certificate-files.js";

/** Metrics of this process, and of the certificates that a server in it uses. */
export class ProcessMetrics {
  readonly #metrics = createMetrics();
  readonly #end: () => void;

  constructor({ clientTls, peerTls }: Pick<CoreConfig, "clientTls" | "peerTls">) {
    const certificates = lookedAtSeldom(() => certificatesOf(clientTls, peerTls));
    const ends = () => certificates().map(({ file, expiresMs }) => [file, expiresMs] as const);
    certificateSources.add(ends);
    const endProcess = this.#metrics.observeProcess();
    this.#end = () => {
      endProcess();
      certificateSources.delete(ends);
    };
  }

  text(): string {
    return this.#metrics.text();
  }

  close(): void {
    this.#end();
  }
}
