import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import { isPem, textOf } from "../pem.js";
import type { Logger } from "../logger.js";
import type { SecurityOptions } from "./options.js";
import type { TlsFiles } from "../options.js";
import { CertificateCredentials } from "./certificate-credentials.js";
import { certificateTls } from "../tls.js";
import { certificateEnds } from "./certificate-ends.js";
import type { CertificateSet } from "./certificate-credentials.js";
import { proofOfCertificate } from "./certificate.js";
import { KeyCredentials } from "./key-credentials.js";
import { keyFor, parseClusterKeys } from "./cluster-key.js";
import type { ClusterKeys } from "./cluster-key.js";
import type { Credentials } from "./credentials.js";
import { FileWatch, watchMs } from "./file-watch.js";
import { unprovenClaim } from "./proof.js";
import type { Claim } from "./proof.js";

/**
 * Loads the credentials in the options and keeps watching their files. `undefined` if there are none: plain
 * TCP.
 *
 * @throws LeaseholdError `INVALID_CONFIG` if they are unreadable, inconsistent, or not for this owner.
 */
export async function loadCredentials(
  options: SecurityOptions,
  owner: Claim,
  world: World,
  logger: Logger,
  everyMs = watchMs,
): Promise<Credentials | undefined> {
  const { tls, key, keyFile } = options;
  if ([tls, key, keyFile].filter((each) => each !== undefined).length > 1) {
    throw invalid("of `tls`, `key` and `keyFile` only one can be used");
  }
  if (tls !== undefined) {
    const paths = [tls.ca, tls.cert, tls.key].filter((each) => !isPem(each));
    const read = () => readCertificates(tls, owner);
    const ends = (pems: CertificateSet) => certificateEnds(tls, pems);
    return new CertificateCredentials(await FileWatch.start({ paths, read, ends, world, logger, everyMs }));
  }
  if (key === undefined && keyFile === undefined) return undefined;
  const paths = keyFile === undefined ? [] : [keyFile];
  const read = async () => {
    const text = keyFile === undefined ? key! : await textOf(keyFile);
    return checkKeys(parseClusterKeys(text, keyFile ?? "key"), keyFile ?? "key", owner);
  };
  return new KeyCredentials(await FileWatch.start({ paths, read, world, logger, everyMs }));
}

async function readCertificates(files: TlsFiles, owner: Claim): Promise<CertificateSet> {
  const [ca, cert, key] = await Promise.all([textOf(files.ca), textOf(files.cert), textOf(files.key)]);
  const name = (what: keyof TlsFiles): string => (isPem(files[what]) ? `tls.${what}` : files[what]);
  const authority = attempt(`${name("ca")} holds no certificate`, () => new X509Certificate(ca));
  const own = attempt(`${name("cert")} holds no certificate`, () => new X509Certificate(cert));
  const secret = attempt(`${name("key")} holds no private key without a passphrase`, () =>
    createPrivateKey(key),
  );
  if (!own.checkPrivateKey(secret)) throw invalid(`${name("key")} is not the key of ${name("cert")}`);
  if (!authority.ca) throw invalid(`${name("ca")} is no authority's certificate (basicConstraints CA:TRUE)`);
  checkOwn(own, name("cert"), owner);
  const context = attempt("the certificates do not fit together", () =>
    createSecureContext({ ...certificateTls, ca, cert, key }),
  );
  return { ca, cert, key, own, context };
}

function attempt<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    throw invalid(`${what}: ${(cause as Error).message}`, cause);
  }
}

/** Refuses a certificate that every peer would refuse: here the operator sees the error. */
function checkOwn(own: X509Certificate, name: string, owner: Claim): void {
  const proof = proofOfCertificate(own);
  if ("cause" in proof) throw invalid(`${name}: ${proof.text}`);
  if (Date.parse(own.validTo) < Date.now()) throw invalid(`${name} expired on ${own.validTo}`);
  const unproven = unprovenClaim({ ...proof, by: name }, owner);
  if (unproven !== undefined) throw invalid(unproven.text);
}

function checkKeys(keys: ClusterKeys, source: string, owner: Claim): ClusterKeys {
  if (owner.role !== undefined && keyFor(keys, owner.role) === undefined) {
    throw invalid(`${source} has no key that allows to be a ${owner.role}`);
  }
  return keys;
}

function invalid(message: string, cause?: unknown): LeaseholdError {
  return new LeaseholdError("INVALID_CONFIG", message, { cause });
}
