import { parseDuration, invalidConfig } from "leasehold/common";

/** The kind of tokens: kept by servers, or signed. */
export type TokenOptions = { readonly kind: "simple"; readonly ttlMs: number } | JwtOptions;

export interface JwtOptions {
  readonly kind: "jwt";
  readonly method: string;
  /** For an `HS…` method, this file has the secret itself. */
  readonly privateKeyFile: string | undefined;
  readonly publicKeyFile: string | undefined;
  readonly ttlMs: number;
}

const ttlSecondsDefault = 300;
const methods = ["RS", "PS", "ES", "HS"].flatMap((kind) => [256, 384, 512].map((bits) => `${kind}${bits}`));
const known = new Set(["sign-method", "pub-key", "priv-key", "ttl"]);

/**
 * `--auth-token` as in etcd: `simple`, or `jwt,sign-method=RS256,priv-key=FILE,pub-key=FILE,ttl=10m`.
 *
 * @param ttl `--auth-token-ttl`, of simple tokens, seconds
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function parseTokens(text = "simple", ttl = `${ttlSecondsDefault}`): TokenOptions {
  if (!/^[1-9]\d{0,8}$/.test(ttl))
    throw invalidConfig(
      `--auth-token-ttl is ${JSON.stringify(ttl)}, and must be a number of seconds from 1 on`,
    );
  const [kind, ...parts] = text.split(",");
  if (kind === "simple" && parts.length === 0) return { kind, ttlMs: Number(ttl) * 1_000 };
  if (kind !== "jwt")
    throw invalidConfig(`--auth-token is ${JSON.stringify(text)}, and must be simple or jwt,sign-method=…`);
  const options = new Map<string, string>();
  for (const part of parts) {
    const [, name, value] = /^([^=]+)=([^=]+)$/.exec(part) ?? [];
    if (name === undefined || value === undefined || !known.has(name) || options.has(name))
      throw invalidConfig(
        `--auth-token has ${JSON.stringify(part)}, which is not one of ${[...known].join(", ")}`,
      );
    options.set(name, value);
  }
  return jwt(options);
}

function jwt(options: ReadonlyMap<string, string>): JwtOptions {
  const method = options.get("sign-method") ?? "";
  if (!methods.includes(method))
    throw invalidConfig(
      `--auth-token: sign-method is ${JSON.stringify(method)}, not one of ${methods.join(", ")}`,
    );
  const [privateKeyFile, publicKeyFile] = [options.get("priv-key"), options.get("pub-key")];
  if (privateKeyFile === undefined && (publicKeyFile === undefined || method.startsWith("HS")))
    throw invalidConfig("--auth-token jwt needs priv-key");
  const ttlMs = parseDuration(options.get("ttl") ?? `${ttlSecondsDefault}s`);
  return { kind: "jwt", method, privateKeyFile, publicKeyFile, ttlMs };
}
