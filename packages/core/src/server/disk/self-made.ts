import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { diskError, syncFolder } from "../../journal/files.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import { selfSigned } from "../wire/tls/self-signed.js";

const dayMs = 86_400_000;

/** etcd's value. */
const validMs = 365 * dayMs;
/** A certificate with less time left is replaced at the start, since the server may then run for long. */
const leftMsMin = 30 * dayMs;
/** Certificates are valid from this long before, for clients whose clocks are slow. */
const earlierMs = dayMs;

/**
 * Makes a server's own certificate (`--auto-tls`), or keeps the existing one.
 *
 * @throws LeaseholdError `DISK_FAILED`
 */
export async function keepSelfMade(tls: TlsFiles | undefined): Promise<void> {
  if (tls?.selfMadeFor === undefined) return;
  const { certFile, keyFile, selfMadeFor: hosts } = tls;
  const nowMs = Date.now();
  if (await isGood(tls, hosts, nowMs + leftMsMin)) return;
  const { cert, key } = selfSigned(hosts, nowMs - earlierMs, nowMs + validMs);
  try {
    await mkdir(dirname(certFile), { recursive: true, mode: 0o700 });
    await replace(keyFile, key);
    await replace(certFile, cert);
    await syncFolder(dirname(certFile));
  } catch (error) {
    throw diskError(`the certificate ${certFile} cannot be made`, error);
  }
}

/** Whether the existing certificate can be kept. After a crash the two files may not match. */
async function isGood({ certFile, keyFile }: TlsFiles, hosts: readonly string[], untilMs: number) {
  try {
    const certificate = new X509Certificate(await readFile(certFile));
    const covers = (host: string) => (certificate.checkIP(host) ?? certificate.checkHost(host)) !== undefined;
    return (
      certificate.checkPrivateKey(createPrivateKey(await readFile(keyFile))) &&
      Date.parse(certificate.validTo) > untilMs &&
      hosts.every(covers)
    );
  } catch {
    return false;
  }
}

async function replace(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}
