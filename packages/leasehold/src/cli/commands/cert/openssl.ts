import { execFile } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { certFailure } from "./failure.js";
import { makeWorkFolder, secretMode } from "./files.js";
import { type Profile, clusterUri } from "./profile.js";

/** A certificate and its private key, PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** Paths of an authority's certificate and key. */
interface Signer {
  readonly cert: string;
  readonly key: string;
}

/** Certificates are backdated: the clocks of machines differ. */
const backdateMs = 3_600_000;
const dayMs = 86_400_000;
/** Timeout, ms; `openssl` normally takes milliseconds. */
const opensslMsMax = 60_000;

/** A new authority, which cannot sign other authorities. */
export function makeAuthority(folder: string, cluster: string, days: number): Promise<Issued> {
  // Unique, because during a rotation the right one of two trusted authorities is found by name.
  const commonName = `leasehold authority ${randomBytes(4).toString("hex")}`;
  const extensions = [
    "basicConstraints = critical, CA:TRUE, pathlen:0",
    "keyUsage = critical, keyCertSign, cRLSign",
    `subjectAltName = URI:${clusterUri(cluster)}authority`,
    "subjectKeyIdentifier = hash",
  ];
  return make(folder, commonName, extensions, days, undefined);
}

/** A certificate with a new key, signed by the authority of these files. */
export function makeCertificate(
  folder: string,
  { commonName, uri, hosts, usages }: Profile,
  days: number,
  signer: Signer,
): Promise<Issued> {
  const names = [
    ...(uri === undefined ? [] : [`URI:${uri}`]),
    ...hosts.map((host) => `${isIP(host) === 0 ? "DNS" : "IP"}:${host}`),
  ];
  const extensions = [
    "basicConstraints = critical, CA:FALSE",
    "keyUsage = critical, digitalSignature",
    `extendedKeyUsage = ${usages.join(", ")}`,
    "subjectKeyIdentifier = hash",
    "authorityKeyIdentifier = keyid",
    ...(names.length === 0 ? [] : [`subjectAltName = ${names.join(", ")}`]),
  ];
  return make(folder, commonName, extensions, days, signer);
}

/**
 * Self-signed if there is no signer. The private key is only written to `folder`, in a file with mode 0600.
 */
async function make(
  folder: string,
  commonName: string,
  extensions: readonly string[],
  days: number,
  signer: Signer | undefined,
): Promise<Issued> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  const work = await makeWorkFolder(folder);
  try {
    await writeFile(join(work, "own.key"), key, { mode: secretMode });
    await writeFile(join(work, "openssl.cnf"), configuration(extensions));
    await writeFile(join(work, "index.txt"), "");
    const serial = randomBytes(16);
    // Neither negative nor with a redundant leading zero.
    serial[0] = (serial[0]! & 0x3f) | 0x40;
    await writeFile(join(work, "serial"), `${serial.toString("hex")}\n`);
    const config = ["-config", "openssl.cnf"];
    // Slashes separate the parts of a subject.
    const subject = ["-subj", `/CN=${commonName.replaceAll("/", "\\/")}`];
    await openssl(work, ["req", "-new", ...config, ...subject, "-key", "own.key", "-out", "own.csr"]);
    const nowMs = Date.now();
    const dates = ["-startdate", asn1Time(nowMs - backdateMs), "-enddate", asn1Time(nowMs + days * dayMs)];
    const by =
      signer === undefined
        ? ["-selfsign", "-keyfile", "own.key"]
        : ["-cert", resolve(signer.cert), "-keyfile", resolve(signer.key)];
    const request = ["-batch", "-notext", ...dates, ...by, "-in", "own.csr", "-out", "own.pem"];
    await openssl(work, ["ca", ...config, ...request]);
    const cert = await readFile(join(work, "own.pem"), "utf8");
    // openssl reports success even if the disk is full.
    if (!cert.endsWith("-----END CERTIFICATE-----\n"))
      throw certFailure("CERT_OPENSSL", "openssl ca wrote no whole certificate: is the disk full?");
    return { key, cert };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function configuration(extensions: readonly string[]): string {
  return `[req]
distinguished_name = names
[ca]
default_ca = this
[this]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = policy
x509_extensions = extensions
[names]
[policy]
commonName = supplied
[extensions]
${extensions.join("\n")}
`;
}

function asn1Time(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, "");
}

/** @throws CommandFailure `CERT_OPENSSL` */
async function openssl(cwd: string, words: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)("openssl", words, { cwd, timeout: opensslMsMax });
  } catch (error) {
    const { code, stderr = "" } = error as { code?: unknown; stderr?: string };
    if (code === "ENOENT")
      throw certFailure("CERT_OPENSSL", "the command openssl, which signs certificates, is not installed");
    const why = stderr.trim().split("\n").at(-1) ?? "";
    throw certFailure("CERT_OPENSSL", `openssl ${words[0]} failed: ${why}`);
  }
}
