import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TlsFiles } from "../../packages/leasehold/src/runtime/options.js";

/** The validity period of a certificate, in days from now. */
export interface Validity {
  readonly fromDays?: number;
  readonly toDays?: number;
}

const dayMs = 86_400_000;

/**
 * A certificate authority for one test, made with the `openssl` command, in a folder that `remove` deletes.
 */
export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), "leasehold-pki-"));
  readonly caFile = join(this.folder, "ca.pem");
  #made = 0;

  constructor(subject = "/CN=test authority") {
    this.#run(
      "req",
      "-x509",
      ...newKey,
      "-days",
      "30",
      "-subj",
      subject,
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
    );
    writeFileSync(join(this.folder, "index.txt"), "");
    writeFileSync(join(this.folder, "index.txt.attr"), "unique_subject = no\n");
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }

  /** The files of a certificate with these lines of extensions. */
  issue(extensions: readonly string[], validity: Validity = {}): TlsFiles {
    const name = `c${++this.#made}`;
    this.#run("req", ...newKey, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`);
    this.#sign(
      name,
      join(this.folder, `${name}.csr`),
      ["basicConstraints = CA:FALSE", ...extensions],
      validity,
    );
    const file = (end: string) => join(this.folder, name + end);
    return { ca: this.caFile, cert: file(".pem"), key: file(".key") };
  }

  /** A certificate that puts another authority below this one. */
  vouchFor(other: Authority, validity: Validity = {}): string {
    const name = `c${++this.#made}`;
    const csr = join(other.folder, "ca.csr");
    other.#run("x509", "-x509toreq", "-in", "ca.pem", "-signkey", "ca.key", "-out", "ca.csr");
    this.#sign(name, csr, ["basicConstraints = critical, CA:TRUE"], validity);
    return join(this.folder, `${name}.pem`);
  }

  #sign(
    name: string,
    csr: string,
    extensions: readonly string[],
    { fromDays = -1, toDays = 30 }: Validity,
  ): void {
    const config = `
[ca]
default_ca = this
[this]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = names
x509_extensions = extensions
unique_subject = no
[names]
commonName = supplied
[extensions]
${extensions.join("\n")}
`;
    writeFileSync(join(this.folder, `${name}.cnf`), config);
    const dates = ["-startdate", asn1Time(fromDays), "-enddate", asn1Time(toDays)];
    const ca = ["-cert", "ca.pem", "-keyfile", "ca.key", "-config", `${name}.cnf`];
    this.#run("ca", "-batch", "-notext", ...ca, ...dates, "-in", csr, "-out", `${name}.pem`);
  }

  /**
   * Revokes a certificate, and writes the list of all revoked certificates anew.
   *
   * @param inDays when the next list is due, from now
   */
  revoke({ cert }: Pick<TlsFiles, "cert">, inDays = 30): string {
    const config = ["-config", cert.replace(/pem$/, "cnf"), "-cert", "ca.pem", "-keyfile", "ca.key"];
    this.#run("ca", ...config, "-revoke", cert);
    const dates = ["-crl_lastupdate", asn1Time(inDays - 30), "-crl_nextupdate", asn1Time(inDays)];
    this.#run("ca", ...config, "-gencrl", ...dates, "-out", "crl.new");
    renameSync(join(this.folder, "crl.new"), join(this.folder, "crl.pem"));
    return join(this.folder, "crl.pem");
  }

  /** A certificate for a name in Leasehold's scheme, such as `member/a` or `client`. */
  for(who: string, cluster = "leasehold", validity: Validity = {}): TlsFiles {
    const usage = who.startsWith("member/") ? "serverAuth, clientAuth" : "clientAuth";
    const uri = `subjectAltName = URI:leasehold://${cluster}/${who}`;
    return this.issue([uri, `extendedKeyUsage = ${usage}`], validity);
  }

  #run(...args: string[]): void {
    execFileSync("openssl", args, { cwd: this.folder, stdio: ["ignore", "ignore", "pipe"] });
  }
}

/** A self-signed certificate. */
export function selfSigned(authority: Authority, who: string): TlsFiles {
  const key = join(authority.folder, "self.key");
  const cert = join(authority.folder, "self.pem");
  const extensions = ["-addext", `subjectAltName=URI:leasehold://leasehold/${who}`];
  const request = [
    "req",
    "-x509",
    ...newKey,
    "-subj",
    "/CN=self",
    "-config",
    emptyConfig(authority),
    ...extensions,
  ];
  execFileSync("openssl", [...request, "-days", "30", "-keyout", key, "-out", cert], { stdio: "ignore" });
  return { ca: authority.caFile, cert, key };
}

/**
 * A configuration without the extensions of the system's own, which would make the certificate an authority.
 */
function emptyConfig(authority: Authority): string {
  const path = join(authority.folder, "empty.cnf");
  writeFileSync(path, "[req]\ndistinguished_name = d\n[d]\n");
  return path;
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

function asn1Time(inDays: number): string {
  const [date, time] = new Date(Date.now() + inDays * dayMs).toISOString().split(/[T.]/);
  return `${date!.replaceAll("-", "")}${time!.replaceAll(":", "")}Z`;
}

/** The contents of the files, as text. */
export function asText({ ca, cert, key }: TlsFiles): TlsFiles {
  const text = (path: string) => readFileSync(path, "utf8");
  return { ca: text(ca), cert: text(cert), key: text(key) };
}
