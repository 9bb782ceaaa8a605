import { type JWTVerifyGetKey, createLocalJWKSet, createRemoteJWKSet, errors, jwtVerify } from "jose";
import { LeaseholdError } from "leasehold/common";
import { FileWatch, type Logger, realWorld, textOf, watchMs } from "leasehold/runtime";

/** The issuer of JSON Web Tokens, for example an identity provider. */
export interface IssuerOptions {
  /**
   * The issuer's keys: the path of a JWK Set, which is read again when it changes, or the `https:` address of
   * one.
   */
  readonly keys: string;
  /** The `iss` of the issuer's tokens. */
  readonly issuer: string;
  /** One of the tokens' `aud` values. Use it for this gateway alone. */
  readonly audience: string;
}

/** Verifies an issuer's tokens and returns their subjects. */
export interface TokenIssuer {
  /**
   * The subject of a valid token.
   *
   * @throws LeaseholdError `UNAUTHENTICATED`, or `UNREACHABLE` if the keys are unavailable
   */
  subjectOf(token: string): Promise<string>;
  close(): void;
}

/** Asymmetric signatures only: a shared secret does not belong in a set of public keys. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
/** The tolerance for the difference between the clocks of issuer and gateway, in seconds. */
const clockTolerance = 5;
const fetchMs = 5_000;
/** A key that is not in the set makes the gateway fetch the set again, at most once in this time. */
const askAgainMs = 10_000;
const keptMs = 600_000;

/** Three parts in base64url. Tokens of the file of users never have this form. */
export const isWebToken = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token);

/** @throws LeaseholdError `INVALID_CONFIG` */
export async function openIssuer(options: IssuerOptions, logger: Logger): Promise<TokenIssuer> {
  const { issuer, audience } = options;
  const { current, close } = await keysOf(options.keys, logger);
  const expected = { issuer, audience, algorithms, clockTolerance, requiredClaims: ["sub", "exp"] };
  return {
    close,
    subjectOf: async (token) => {
      try {
        const { payload } = await jwtVerify(token, current(), expected);
        return payload.sub!;
      } catch (cause) {
        throw failureOf(cause);
      }
    },
  };
}

async function keysOf(keys: string, logger: Logger): Promise<{ current(): JWTVerifyGetKey; close(): void }> {
  if (!/^https?:\/\//.test(keys)) {
    const read = async (): Promise<JWTVerifyGetKey> => {
      try {
        return createLocalJWKSet(JSON.parse(await textOf(keys)));
      } catch (cause) {
        if (cause instanceof LeaseholdError) throw cause;
        throw new LeaseholdError("INVALID_CONFIG", `${keys} is no JWK Set: ${(cause as Error).message}`);
      }
    };
    const watch = await FileWatch.start({
      paths: [keys],
      read,
      world: realWorld(),
      logger,
      everyMs: watchMs,
    });
    return { current: () => watch.current, close: () => watch.close() };
  }
  const url = URL.canParse(keys) ? new URL(keys) : undefined;
  const isLocal = url !== undefined && ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
  if (url === undefined || (url.protocol === "http:" && !isLocal))
    throw new LeaseholdError("INVALID_CONFIG", `the keys of tokens need an https: address, not ${keys}`);
  const times = { timeoutDuration: fetchMs, cooldownDuration: askAgainMs, cacheMaxAge: keptMs };
  const remote = createRemoteJWKSet(url, times);
  return { current: () => remote, close: () => undefined };
}

function failureOf(cause: unknown): LeaseholdError {
  const isToken =
    cause instanceof errors.JOSEError &&
    !(cause instanceof errors.JWKSTimeout || cause instanceof errors.JWKSInvalid) &&
    cause.code !== "ERR_JOSE_GENERIC";
  return isToken
    ? new LeaseholdError("UNAUTHENTICATED", `the token is refused: ${cause.code}`, { cause })
    : new LeaseholdError("UNREACHABLE", "the keys of tokens cannot be had", { cause });
}
