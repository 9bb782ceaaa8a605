import { createSecureContext } from "node:tls";
import { LeaseholdError } from "leasehold/common";
import { type Logger, silent, isPem, textOf, FileWatch, watchMs, realWorld } from "leasehold/runtime";

interface Pems {
  readonly cert: string;
  readonly key: string;
}

/** Receivers of why changed files are not used: the logger, or without one the other. */
interface Reports {
  readonly fault?: ((text: string) => void) | undefined;
  readonly logger?: Logger | undefined;
}

/** A certificate for clients. */
export interface ShownCertificate {
  readonly pems: Pems;
  /** Called when its files have changed and match. */
  changed: (pems: Pems) => void;
  close(): void;
}

/**
 * Reads the certificate, and watches its files.
 *
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export async function watchCertificate(
  files: Pems,
  { fault = () => undefined, logger = { ...silent, warn: fault } }: Reports,
  everyMs = watchMs,
): Promise<ShownCertificate> {
  const shown = { changed: (_pems: Pems) => undefined as void };
  const read = async (): Promise<Pems> => {
    const [cert, key] = await Promise.all([textOf(files.cert), textOf(files.key)]);
    try {
      createSecureContext({ cert, key });
    } catch (cause) {
      const which = isPem(files.cert) ? "tls.cert" : files.cert;
      const why = `${which} is no certificate with its key: ${(cause as Error).message}`;
      throw new LeaseholdError("INVALID_CONFIG", why, { cause });
    }
    shown.changed({ cert, key });
    return { cert, key };
  };
  const paths = [files.cert, files.key].filter((each) => !isPem(each));
  const watch = await FileWatch.start({ paths, read, world: realWorld(), logger, everyMs });
  return Object.assign(shown, { pems: watch.current, close: () => watch.close() });
}
