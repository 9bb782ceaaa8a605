import { X509Certificate, createPrivateKey } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { altNamesOf } from "../../../runtime/security/certificate.js";
import { certFailure } from "./failure.js";
import { createFile, publicMode, replaceFile, secretMode, textIn } from "./files.js";
import { makeAuthority, makeCertificate } from "./openssl.js";
import { type KindName, type Profile, profileIn, profileOf } from "./profile.js";

/** The cluster without `--cluster`, as in every command. */
const clusterDefault = "leasehold";

const dayMs = 86_400_000;

export type Step = "trust" | "switch" | "finish";

/** Creates an authority in a folder: `ca.pem` and `ca.key`. Returns the certificate's path. */
export async function createAuthority(
  folder: string,
  cluster: string | undefined,
  days: number,
): Promise<string> {
  const at = pathsIn(folder);
  for (const path of [at.cert, at.key])
    if ((await textIn(path)) !== undefined)
      throw certFailure("CERT_EXISTS", `${path} exists already, and is not overwritten`);
  const { cert, key } = await makeAuthority(at.folder, cluster ?? clusterDefault, days);
  await createFile(at.cert, cert, publicMode, () => createFile(at.key, key, secretMode));
  return at.cert;
}

/** An authority in a folder, with the certificates that it has issued. */
export class Authority {
  readonly #at: Paths;
  /** The authority that signs and, during a rotation, the other one. */
  readonly #trusted: readonly X509Certificate[];

  private constructor(at: Paths, trusted: readonly X509Certificate[]) {
    this.#at = at;
    this.#trusted = trusted;
  }

  /** @throws CommandFailure `CERT_NO_AUTHORITY` */
  static async in(folder: string): Promise<Authority> {
    const at = pathsIn(folder);
    const trusted = certificatesIn((await textIn(at.cert)) ?? "", at.cert);
    if (trusted.length === 0)
      throw certFailure(
        "CERT_NO_AUTHORITY",
        `${folder} has no ca.pem: leasehold cert authority ${folder} makes one`,
      );
    return new Authority(at, trusted);
  }

  /**
   * Issues a certificate as `NAME.pem` with `NAME.key`, and returns its path.
   *
   * @throws CommandFailure `CERT_EXISTS`, `CERT_NAME`
   */
  async issue(kind: KindName, name: string, options: IssueOptions): Promise<string> {
    const profile = profileOf(kind, name, this.#cluster(options.cluster), options.hosts);
    const path = join(this.#at.folder, `${name}.pem`);
    if ((await textIn(path)) !== undefined)
      throw certFailure("CERT_EXISTS", `${path} exists already: leasehold cert renew renews it`);
    if ((await textIn(keyOf(path))) !== undefined)
      throw certFailure("CERT_EXISTS", `${keyOf(path)} exists without a certificate, and is not overwritten`);
    const { cert, key } = await this.#make(profile, options.days);
    await createFile(path, cert, publicMode, () => createFile(keyOf(path), key, secretMode));
    return path;
  }

  /**
   * Renews each certificate of the folder that `isDue`, with a new key; returns their paths. Also renews
   * certificates whose key does not match, which means that a renewal was killed between writing the two
   * files.
   */
  async renew(isDue: (certificate: X509Certificate) => boolean, days: number): Promise<string[]> {
    const renewed: string[] = [];
    const issued = await this.#issued();
    // All are read before any is changed, so that nothing changes if one cannot be renewed.
    const profiles: { readonly path: string; readonly profile: Profile }[] = [];
    for (const { certificate, path } of issued)
      if (isDue(certificate) || (await isHalfRenewed(certificate, path)))
        profiles.push({ path, profile: profileIn(certificate, path) });
    for (const { path, profile } of profiles) {
      const { cert, key } = await this.#make(profile, days);
      // A process that rereads the files between the two writes keeps the former pair until the new one
      // matches.
      await replaceFile(path, cert, publicMode, () => replaceFile(keyOf(path), key, secretMode));
      renewed.push(path);
    }
    return renewed;
  }

  /** Carries out one step of a rotation; returns the paths of the written certificates. */
  async rotate(step: Step, days: { readonly authority: number; readonly others: number }): Promise<string[]> {
    switch (step) {
      case "trust":
        return this.#trustNext(days.authority);
      case "switch":
        return this.#switchToNext(days.others);
      case "finish":
        return this.#finish();
    }
  }

  async #trustNext(days: number): Promise<string[]> {
    const { cert, key, next, old } = this.#at;
    if ((await textIn(next.cert)) !== undefined) throw outOfStep("trust was the last whole step", "switch");
    if ((await textIn(old.cert)) !== undefined) throw outOfStep("switch was the last step", "finish");
    await this.#mustSign(cert, key);
    const made = await makeAuthority(this.#at.folder, this.#cluster(undefined), days);
    const madeCert = certificatesIn(made.cert, next.cert)[0]!.toString();
    await replaceFile(next.key, made.key, secretMode);
    await replaceFile(cert, `${this.#trusted[0]!.toString()}${madeCert}`, publicMode);
    // Written last: if this file is missing, an interrupted step begins again.
    await createFile(next.cert, madeCert, publicMode);
    return [cert];
  }

  /** Can be repeated after an interruption: it then does the rest. */
  async #switchToNext(days: number): Promise<string[]> {
    const { cert, key, next, old } = this.#at;
    const nextCert = await textIn(next.cert);
    if (nextCert === undefined && (await textIn(old.cert)) === undefined)
      throw outOfStep("no new authority is trusted yet", "trust");
    if (nextCert !== undefined) {
      const former = this.#trusted[0]!.toString();
      if (former !== nextCert) {
        const nextKey = await textIn(next.key);
        if (
          nextKey === undefined ||
          !new X509Certificate(nextCert).checkPrivateKey(createPrivateKey(nextKey))
        )
          throw certFailure("CERT_NO_AUTHORITY", `${next.key} is missing, or not the key of ${next.cert}`);
        await replaceFile(old.cert, former, publicMode);
        await replaceFile(key, nextKey, secretMode);
        await replaceFile(cert, `${nextCert}${former}`, publicMode);
      }
      await rm(next.key, { force: true });
      await rm(next.cert);
    }
    const current = await Authority.in(this.#at.folder);
    return [cert, ...(await current.renew((each) => !current.#signed(each), days))];
  }

  async #finish(): Promise<string[]> {
    const { cert, next, old } = this.#at;
    // True also after an interrupted switch.
    if ((await textIn(next.cert)) !== undefined) throw outOfStep("the switch has not ended", "switch");
    if ((await textIn(old.cert)) === undefined) throw outOfStep("no rotation has begun", "trust");
    const left = (await this.#issued()).filter(({ certificate }) => !this.#signed(certificate));
    if (left.length > 0)
      throw outOfStep(`${left.map(({ path }) => path).join(", ")} is of the former authority`, "switch");
    await replaceFile(cert, this.#trusted[0]!.toString(), publicMode);
    await rm(old.cert);
    return [cert];
  }

  async #make(profile: Profile, days: number): Promise<{ readonly cert: string; readonly key: string }> {
    const { folder, cert, key } = this.#at;
    await this.#mustSign(cert, key);
    const endMs = Date.parse(this.#trusted[0]!.validTo);
    if (Date.now() + days * dayMs > endMs)
      throw certFailure(
        "CERT_NO_AUTHORITY",
        `the authority of ${folder} ends on ${dayOf(endMs)}, before the certificate would: give fewer --days, or rotate it`,
      );
    return makeCertificate(folder, profile, days, { cert, key });
  }

  /** The key may be kept elsewhere, or after an interrupted step belong to the next authority. */
  async #mustSign(cert: string, key: string): Promise<void> {
    const secret = await textIn(key);
    if (secret === undefined)
      throw certFailure("CERT_NO_AUTHORITY", `${key} is missing, and without it nothing can be signed`);
    let isIts: boolean;
    try {
      isIts = this.#trusted[0]!.checkPrivateKey(createPrivateKey(secret));
    } catch (error) {
      throw certFailure("CERT_UNREADABLE", `${key} is no private key: ${(error as Error).message}`);
    }
    if (!isIts)
      throw certFailure("CERT_NO_AUTHORITY", `${key} is not the key of the first certificate of ${cert}`);
  }

  #signed(certificate: X509Certificate): boolean {
    const authority = this.#trusted[0]!;
    return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
  }

  /** The authority's cluster. Members accept no certificate for another one. */
  #cluster(asked: string | undefined): string {
    const uri = altNamesOf(this.#trusted[0]!.subjectAltName).find(({ kind }) => kind === "URI")?.value ?? "";
    const [, encoded] = /^leasehold:\/\/([^/]+)\/authority$/.exec(uri) ?? [];
    const own = encoded === undefined ? undefined : decodeURIComponent(encoded);
    if (own !== undefined && asked !== undefined && own !== asked)
      throw certFailure(
        "CERT_NAME",
        `the authority is the cluster ${JSON.stringify(own)}'s and not ${JSON.stringify(asked)}'s`,
      );
    return own ?? asked ?? clusterDefault;
  }

  async #issued(): Promise<{ readonly path: string; readonly certificate: X509Certificate }[]> {
    const paths = await issuedIn(this.#at.folder);
    return Promise.all(
      paths.map(async (path) => {
        const [certificate] = certificatesIn((await textIn(path)) ?? "", path);
        if (certificate === undefined) throw certFailure("CERT_UNREADABLE", `${path} holds no certificate`);
        return { path, certificate };
      }),
    );
  }
}

interface IssueOptions {
  readonly cluster: string | undefined;
  readonly hosts: readonly string[];
  readonly days: number;
}

type Paths = ReturnType<typeof pathsIn>;

function pathsIn(folder: string) {
  const pair = (name: string) => ({ cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) });
  return { folder, ...pair("ca"), next: pair("ca-next"), old: pair("ca-old") };
}

function keyOf(certificate: string): string {
  return certificate.replace(/\.pem$/, ".key");
}

/** A missing key may be kept elsewhere; only a key that belongs to another certificate counts. */
async function isHalfRenewed(certificate: X509Certificate, path: string): Promise<boolean> {
  const secret = await textIn(keyOf(path));
  if (secret === undefined) return false;
  try {
    return !certificate.checkPrivateKey(createPrivateKey(secret));
  } catch {
    return false;
  }
}

/** Paths of the certificates in a folder, except its authority's. */
export async function issuedIn(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  const issued = names.filter((name) => name.endsWith(".pem") && !/^ca(?:-next|-old)?\.pem$/.test(name));
  return issued.toSorted().map((name) => join(folder, name));
}

/**
 * The certificates of a file, in order.
 *
 * @throws CommandFailure `CERT_UNREADABLE`
 */
export function certificatesIn(text: string, path: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    throw certFailure("CERT_UNREADABLE", `${path} holds no certificate: ${(error as Error).message}`);
  }
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function outOfStep(why: string, next: Step): Error {
  return certFailure("CERT_STEP", `${why}: the next step is ${next}`);
}
