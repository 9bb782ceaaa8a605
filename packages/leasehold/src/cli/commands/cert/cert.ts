import type { X509Certificate } from "node:crypto";
import { dirname } from "node:path";
import { exitCode } from "../../common/exit-codes.js";
import { type SharedOptions, settingsOf } from "../../common/settings.js";
import { present } from "../../output/present.js";
import { Authority, type Step, createAuthority } from "./authority.js";
import { createClusterKey, rotateClusterKey } from "./cluster-key-file.js";
import { secretFolder } from "./files.js";
import { withFolderLock } from "./folder-lock.js";
import type { KindName } from "./profile.js";
import { isFolder, presentCertificates, shownOf } from "./show.js";

export interface CertOptions extends SharedOptions {
  readonly days?: number;
  readonly host?: readonly string[];
  readonly within?: number;
  readonly all?: boolean;
  readonly roles?: boolean;
}

const authorityDays = 3650;
const certificateDays = 90;
const soonDays = 30;
const dayMs = 86_400_000;

/** `leasehold cert authority`. */
export async function authority(folder: string, options: CertOptions): Promise<number> {
  await secretFolder(folder);
  const days = options.days ?? authorityDays;
  const path = await withFolderLock(folder, () => createAuthority(folder, options.cluster, days));
  return printMade([path], options);
}

/** `leasehold cert member` and the like. */
export async function issue(
  kind: KindName,
  folder: string,
  name: string,
  options: CertOptions,
): Promise<number> {
  const { cluster, days = certificateDays, host: hosts = [] } = options;
  const path = await changed(folder, (own) => own.issue(kind, name, { cluster, hosts, days }));
  return printMade([path], options);
}

/** `leasehold cert renew`. */
export async function renew(folder: string, options: CertOptions): Promise<number> {
  const { all = false, days = certificateDays, within = soonDays } = options;
  const dueMs = Date.now() + within * dayMs;
  const isDue = ({ validTo }: X509Certificate) => all || Date.parse(validTo) < dueMs;
  const renewed = await changed(folder, (own) => own.renew(isDue, days));
  return printMade(
    renewed,
    options,
    renewed.length === 0 ? "no certificate is due" : "copy them to their machines: they are reread there",
  );
}

/** `leasehold cert show`: exit code 78 unless all are ok. */
export async function show(paths: readonly string[], options: CertOptions): Promise<number> {
  const shown = await shownOf(paths, options.within ?? soonDays);
  present(settingsOf(options).output, presentCertificates(shown, shown));
  return exitCode(shown.every(({ state }) => state === "ok") ? "ok" : "unfit");
}

/** `leasehold cert key`. */
export async function key(path: string, options: CertOptions): Promise<number> {
  await withFolderLock(dirname(path), () => createClusterKey(path, options.roles === true));
  const text = `${path}: copy it to every machine`;
  present(settingsOf(options).output, { document: { file: path }, table: () => [text] });
  return exitCode("ok");
}

/** `leasehold cert rotate`: an authority in a folder, or the keys of a file. */
export async function rotate(path: string, step: Step, options: CertOptions): Promise<number> {
  if (await isFolder(path)) {
    const days = { authority: authorityDays, others: options.days ?? certificateDays };
    const written = await changed(path, (own) => own.rotate(step, days));
    const what = step === "switch" ? "ca.pem and the new certificates" : "ca.pem";
    return printMade(written, options, nextText(what, path, step));
  }
  await withFolderLock(dirname(path), () => rotateClusterKey(path, step));
  const text = nextText(path, path, step);
  present(settingsOf(options).output, { document: { file: path, next: text }, table: () => [text] });
  return exitCode("ok");
}

/** Changes the certificates of an existing folder. */
async function changed<T>(folder: string, change: (own: Authority) => Promise<T>): Promise<T> {
  await Authority.in(folder);
  // Read under the lock, as another command may have changed it.
  return withFolderLock(folder, async () => change(await Authority.in(folder)));
}

/** A core's server takes longest to reread its files: 10 s. */
function nextText(what: string, path: string, step: Step): string {
  const copy = `copy ${what} to every machine`;
  if (step === "finish") return `${copy}: that ends the rotation`;
  const next = step === "trust" ? "switch" : "finish";
  return `${copy}, wait 15 s until every process has reread it, and then: leasehold cert rotate ${path} ${next}`;
}

async function printMade(paths: readonly string[], options: CertOptions, next?: string): Promise<number> {
  const shown = await shownOf(paths, 0);
  const document = { certificates: shown, ...(next !== undefined && { next }) };
  present(settingsOf(options).output, presentCertificates(shown, document, next));
  return exitCode("ok");
}
