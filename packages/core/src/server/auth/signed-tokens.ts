import { createPrivateKey, createPublicKey, createSecretKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { invalidConfig } from "leasehold/common";
import type { Credentials } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import type { JwtOptions } from "../config/token-options.js";

/** Number of cached tokens with verified signatures: a client sends the same token with every request. */
const knownMax = 1_024;

interface Known {
  readonly credentials: Credentials;
  readonly endMs: number;
}

type Jose = typeof import("jose");

/**
 * JSON web tokens (RFC 7519), used instead of tokens that servers keep. They are valid until they expire, or
 * users, roles or permissions change. Their content is etcd's.
 */
export class SignedTokens {
  readonly #jose: Jose;
  readonly #options: JwtOptions;
  readonly #signing: KeyObject | undefined;
  readonly #verifying: KeyObject;
  /**
   * The core's id, which is part of each token: a core restored from a backup is another core, though it has
   * the same users.
   */
  #cluster = "";
  /** Evicted in order of insertion. */
  readonly #known = new Map<string, Known>();

  private constructor(jose: Jose, options: JwtOptions) {
    this.#jose = jose;
    this.#options = options;
    const { method, privateKeyFile, publicKeyFile } = options;
    if (method.startsWith("HS")) {
      this.#signing = createSecretKey(read(privateKeyFile!));
      this.#verifying = this.#signing;
      return;
    }
    this.#signing = privateKeyFile === undefined ? undefined : key(privateKeyFile, createPrivateKey);
    const derived = this.#signing && createPublicKey(this.#signing);
    this.#verifying = publicKeyFile === undefined ? derived! : key(publicKeyFile, createPublicKey);
    if (derived !== undefined && !derived.equals(this.#verifying))
      throw invalidConfig("--auth-token: pub-key and priv-key do not belong together");
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if a key cannot be read */
  static async open(options: JwtOptions): Promise<SignedTokens> {
    const tokens = new SignedTokens(await import("jose"), options);
    // Detects a key of the wrong kind now, not at the first login.
    if (tokens.#signing !== undefined)
      await tokens.sign("", 0n).catch((error: unknown) => {
        throw invalidConfig(
          `--auth-token: the key does not fit ${options.method}: ${(error as Error).message}`,
        );
      });
    return tokens;
  }

  /** Sets the core for which tokens are valid; to be called before the first one is signed or read. */
  bindTo(cluster: string): void {
    this.#cluster = cluster;
  }

  /** @throws CoreError `tokensNotSigned` if this server has only the public key */
  async sign(username: string, revision: bigint): Promise<string> {
    if (this.#signing === undefined) throw new CoreError("tokensNotSigned");
    const endSeconds = Math.floor((Date.now() + this.#options.ttlMs) / 1_000);
    return new this.#jose.SignJWT({ username, revision: Number(revision), cluster: this.#cluster })
      .setProtectedHeader({ alg: this.#options.method, typ: "JWT" })
      .setExpirationTime(endSeconds)
      .sign(this.#signing);
  }

  /**
   * Returns the token's user, synchronously if it was verified before. Rejects with CoreError
   * `invalidAuthToken`.
   */
  read(token: string): Credentials | Promise<Credentials> {
    const known = this.#known.get(token);
    if (known !== undefined && Date.now() < known.endMs) return known.credentials;
    this.#known.delete(token);
    return this.#verify(token);
  }

  async #verify(token: string): Promise<Credentials> {
    const algorithms = [this.#options.method];
    const verified = await this.#jose
      .jwtVerify(token, this.#verifying, { algorithms, requiredClaims: ["exp"] })
      .catch(() => undefined);
    const { cluster, exp, revision, username } = verified?.payload ?? {};
    // Other issuers that sign etcd's claims with our key name no core.
    if (cluster !== undefined && cluster !== this.#cluster) throw new CoreError("invalidAuthToken");
    const isWhole = typeof username === "string" && username !== "" && isRevision(revision);
    if (!isWhole || exp === undefined) throw new CoreError("invalidAuthToken");
    const credentials = { kind: "user", user: username, revision: BigInt(revision) } as const;
    this.#known.set(token, { credentials, endMs: exp * 1_000 });
    if (this.#known.size > knownMax)
      for (const first of this.#known.keys()) return this.#forget(first, credentials);
    return credentials;
  }

  #forget(token: string, credentials: Credentials): Credentials {
    this.#known.delete(token);
    return credentials;
  }
}

function isRevision(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function key(file: string, parse: (pem: Buffer) => KeyObject): KeyObject {
  const pem = read(file);
  try {
    return parse(pem);
  } catch (error) {
    throw invalidConfig(`--auth-token: ${file} is not a key: ${(error as Error).message}`);
  }
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw invalidConfig(`--auth-token: ${(error as Error).message}`);
  }
}
