import { createSecureContext } from "node:tls";
import { invalidConfig } from "../../lease/errors.js";
import type { Logger } from "../logger.js";
import { isPem, textOf } from "../pem.js";
import { realWorld } from "../world.js";
import { certificateEnds } from "./certificate-ends.js";
import { FileWatch, watchMs } from "./file-watch.js";

/** Each is a PEM text or the path of a PEM file. */
export interface ServedPems {
  /** The certificate with its chain. */
  readonly cert: string;
  readonly key: string;
  /** The authority of clients' certificates. */
  readonly ca?: string | undefined;
}

/** The certificate with which a server proves its name to clients. */
export interface ServedCertificate {
  /** The texts as first read. */
  readonly pems: ServedPems;
  /** Called with the new texts when the files have changed and match each other. */
  changed: (pems: ServedPems) => void;
  close(): void;
}

/**
 * Reads the certificate and watches its files.
 *
 * @param logger receives why changed files are not used
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export async function watchCertificate(
  files: ServedPems,
  logger: Logger,
  everyMs = watchMs,
): Promise<ServedCertificate> {
  const { cert, key, ca } = files;
  const served = { changed: (_pems: ServedPems) => undefined as void };
  const read = async (): Promise<ServedPems> => {
    const authority = ca === undefined ? {} : { ca: await textOf(ca) };
    const pems = { cert: await textOf(cert), key: await textOf(key), ...authority };
    try {
      createSecureContext(pems);
    } catch (cause) {
      const which = isPem(cert) ? "tls.cert" : cert;
      throw invalidConfig(`${which} is no certificate with its key: ${(cause as Error).message}`);
    }
    served.changed(pems);
    return pems;
  };
  const paths = [cert, key, ca].flatMap((each) => (each === undefined || isPem(each) ? [] : [each]));
  const ends = (pems: ServedPems) => certificateEnds(files, pems);
  const watch = await FileWatch.start({ paths, read, ends, world: realWorld(), logger, everyMs });
  return Object.assign(served, { pems: watch.current, close: () => watch.close() });
}
