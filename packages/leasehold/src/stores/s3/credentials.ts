import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { LeaseholdError } from "../../lease/errors.js";
import { loadPackage } from "../../runtime/optional-package.js";

type Environment = Readonly<Record<string, string | undefined>>;

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** The expiry; credentials are renewed before that. */
  readonly expiration?: Date | undefined;
}

export type CredentialsSource = () => Promise<S3Credentials>;

/** How long before their expiry credentials are renewed, ms: as in other clients. */
const renewBeforeMs = 300_000;

/** The exports used of the package for all other sources. */
interface ProvidersPackage {
  fromNodeProviderChain(options: { profile?: string }): CredentialsSource;
}

/** A profile from `~/.aws/credentials` and `~/.aws/config`, or from the files that the environment names. */
export type S3Profile = Readonly<Record<string, string>>;

export async function readProfile(environment: Environment): Promise<S3Profile> {
  const folder = join(environment["HOME"] ?? homedir(), ".aws");
  const name = environment["AWS_PROFILE"] ?? "default";
  const config = await readIni(environment["AWS_CONFIG_FILE"] ?? join(folder, "config"));
  const keys = await readIni(environment["AWS_SHARED_CREDENTIALS_FILE"] ?? join(folder, "credentials"));
  return { ...config.get(`profile ${name}`), ...config.get(name), ...keys.get(name) };
}

/**
 * Credentials from the environment or the profile. All other sources (roles, single sign-on, containers,
 * cloud machines) need the AWS SDK's own package.
 */
export function findCredentials(
  environment: Environment,
  profile: S3Profile,
  load: () => Promise<ProvidersPackage> = loadChain,
): CredentialsSource {
  const fixed =
    keysOf({
      id: environment["AWS_ACCESS_KEY_ID"],
      secret: environment["AWS_SECRET_ACCESS_KEY"],
      token: environment["AWS_SESSION_TOKEN"],
    }) ??
    keysOf({
      id: profile["aws_access_key_id"],
      secret: profile["aws_secret_access_key"],
      token: profile["aws_session_token"],
    });
  if (fixed !== undefined) {
    assertSendable(fixed);
    return () => Promise.resolve(fixed);
  }
  let source: CredentialsSource | undefined;
  return keepUntilTheyEnd(async () => {
    source ??= (await load()).fromNodeProviderChain(
      environment["AWS_PROFILE"] === undefined ? {} : { profile: environment["AWS_PROFILE"] },
    );
    return source();
  });
}

/** Refuses a pasted token with a line break, because the error while sending it would show the token. */
function assertSendable(credentials: S3Credentials): void {
  const texts = [credentials.accessKeyId, credentials.secretAccessKey, credentials.sessionToken ?? ""];
  if (texts.every((text) => /^[\x21-\x7e]*$/.test(text))) return;
  const what = "the keys or the token for S3 contain a line break, a space or another invalid character";
  throw new LeaseholdError("STORE_PERMISSION", what);
}

async function loadChain(): Promise<ProvidersPackage> {
  const what = "S3 without AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and without keys in the profile,";
  try {
    return await loadPackage("@aws-sdk/credential-providers", what);
  } catch (error) {
    throw error instanceof LeaseholdError ? new LeaseholdError("STORE_PERMISSION", error.message) : error;
  }
}

function keepUntilTheyEnd(ask: CredentialsSource): CredentialsSource {
  let kept: S3Credentials | undefined;
  return async () => {
    const endsMs = kept?.expiration?.getTime() ?? Infinity;
    if (kept === undefined || Date.now() > endsMs - renewBeforeMs) kept = await ask();
    return kept;
  };
}

function keysOf(found: Record<"id" | "secret" | "token", string | undefined>): S3Credentials | undefined {
  const { id, secret, token } = found;
  if (id === undefined || id === "" || secret === undefined || secret === "") return undefined;
  return { accessKeyId: id, secretAccessKey: secret, sessionToken: token === "" ? undefined : token };
}

/** Sections of `name = value` lines; a missing file has none. */
async function readIni(path: string): Promise<Map<string, Record<string, string>>> {
  const sections = new Map<string, Record<string, string>>();
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch {
    return sections;
  }
  let section: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const header = /^\s*\[\s*(.*?)\s*\]/.exec(line)?.[1];
    const [, name, value] = /^([\w-]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (header !== undefined) sections.set(header, (section = sections.get(header) ?? {}));
    else if (name !== undefined && value !== undefined) section[name.toLowerCase()] = value;
  }
  return sections;
}
