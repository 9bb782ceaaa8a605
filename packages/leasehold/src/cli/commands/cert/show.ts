import { X509Certificate, createPrivateKey } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { append } from "../../../common/lists.js";
import type { Style } from "../../output/ansi.js";
import type { Presentation } from "../../output/present.js";
import { type Column, tableLines } from "../../output/table.js";
import { certificatesIn, dayOf, issuedIn } from "./authority.js";
import { certFailure } from "./failure.js";
import { textIn } from "./files.js";
import { ownerOf } from "./profile.js";
import { altNamesOf } from "../../../runtime/security/certificate.js";

const dayMs = 86_400_000;

/** A certificate and its state. */
export interface Shown {
  readonly file: string;
  /** Role and name. */
  readonly owner: string;
  readonly hosts: readonly string[];
  /** Dates, ISO 8601. */
  readonly from: string;
  readonly until: string;
  readonly daysLeft: number;
  readonly state: "ok" | "expires" | "expired" | "unfit";
  /** Why the certificate cannot be used. */
  readonly problem?: string;
}

/**
 * The certificates in these files and folders. Those in a folder must be issued by its authority.
 *
 * @param soonDays a certificate with fewer days left `expires`
 */
export async function shownOf(paths: readonly string[], soonDays: number): Promise<Shown[]> {
  const shown: Shown[] = [];
  for (const path of paths) {
    if (await isFolder(path)) {
      const ca = join(path, "ca.pem");
      const authorities = certificatesIn((await textIn(ca)) ?? "", ca);
      const files = [...(authorities.length > 0 ? [ca] : []), ...(await issuedIn(path))];
      for (const file of files) append(shown, await inFile(file, soonDays, authorities));
    } else append(shown, await inFile(path, soonDays, []));
  }
  return shown;
}

export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw certFailure("CERT_UNREADABLE", `${path} cannot be read: ${(error as Error).message}`);
  }
}

async function inFile(
  file: string,
  soonDays: number,
  authorities: readonly X509Certificate[],
): Promise<Shown[]> {
  const found = certificatesIn((await textIn(file)) ?? "", file);
  if (found.length === 0) throw certFailure("CERT_UNREADABLE", `${file} holds no certificate`);
  const key = await keyProblem(file, found[0]!);
  return found.map((certificate, index) => {
    const signer = certificate.ca ? undefined : signerProblem(certificate, authorities);
    return shownCertificate(file, certificate, soonDays, signer ?? (index === 0 ? key : undefined));
  });
}

function shownCertificate(
  file: string,
  certificate: X509Certificate,
  soonDays: number,
  problem: string | undefined,
): Shown {
  const [fromMs, untilMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const daysLeft = Math.floor((untilMs - Date.now()) / dayMs);
  const inTime = untilMs < Date.now() ? "expired" : daysLeft < soonDays ? "expires" : "ok";
  const hosts = altNamesOf(certificate.subjectAltName).filter(({ kind }) => /^(?:DNS|IP)/.test(kind));
  return {
    file,
    owner: ownerOf(certificate),
    hosts: hosts.map(({ value }) => value),
    from: new Date(fromMs).toISOString(),
    until: new Date(untilMs).toISOString(),
    daysLeft,
    state: inTime === "expired" ? inTime : problem === undefined ? inTime : "unfit",
    ...(problem !== undefined && { problem }),
  };
}

function signerProblem(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
): string | undefined {
  const isTrusted = authorities.some(
    (each) => certificate.checkIssued(each) && certificate.verify(each.publicKey),
  );
  return authorities.length === 0 || isTrusted ? undefined : "another authority signed it";
}

/** A fault of the private key in `NAME.key`; the key may be absent. */
async function keyProblem(file: string, certificate: X509Certificate): Promise<string | undefined> {
  const path = file.replace(/\.pem$/, ".key");
  const secret = path === file ? undefined : await textIn(path);
  if (secret === undefined) return undefined;
  const { mode } = await stat(path);
  if (process.platform !== "win32" && (mode & 0o007) !== 0) return `everybody can read ${path}: chmod o= it`;
  try {
    return certificate.checkPrivateKey(createPrivateKey(secret)) ? undefined : `${path} is another's key`;
  } catch {
    return `${path} is no private key without a passphrase`;
  }
}

const columns: readonly Column[] = [
  { title: "FILE", shrinks: true },
  { title: "OWNER", shrinks: true },
  { title: "HOSTS", shrinks: true },
  { title: "UNTIL" },
  { title: "STATE" },
];
const styles: Record<Shown["state"], Style> = {
  ok: "green",
  expires: "yellow",
  expired: "red",
  unfit: "red",
};

/** @param next advice on what to do */
export function presentCertificates(shown: readonly Shown[], document: unknown, next?: string): Presentation {
  const stateOf = ({ state, daysLeft, problem }: Shown): string => {
    if (state === "expires") return `${state} in ${daysLeft} days`;
    return problem === undefined ? state : `${state}: ${problem}`;
  };
  return {
    document,
    table: (paint, widthMax) => {
      const rows = shown.map((each) => [
        { text: each.file },
        { text: each.owner },
        { text: each.hosts.join(", ") },
        { text: dayOf(Date.parse(each.until)) },
        { text: stateOf(each), style: styles[each.state] },
      ]);
      const lines = rows.length === 0 ? [] : tableLines(columns, rows, paint, widthMax);
      return next === undefined ? lines : [...lines, next];
    },
  };
}
