import { LeaseholdError } from "../../lease/errors.js";

const portDefault = 6379;
const keyDefault = "leasehold";

export interface RedisAddress {
  /** For messages: no credentials. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly database: number;
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** The key of the hash that contains the whole store. */
  readonly key: string;
}

/**
 * Parses `redis://host:port/database?key=leasehold`, or `rediss:` with TLS. If the URL has no password, the
 * one in the environment is used, as by `redis-cli` (`REDISCLI_AUTH`).
 *
 * @throws LeaseholdError `INVALID_URL`
 */
export function parseRedisUrl(
  url: URL,
  environment: Readonly<Record<string, string | undefined>>,
): RedisAddress {
  const database = /^\/?(\d{0,4})$/.exec(url.pathname)?.[1];
  const unknown = [...url.searchParams.keys()].find((name) => name !== "key");
  const key = url.searchParams.get("key") ?? keyDefault;
  const isRight = url.hostname !== "" && database !== undefined && unknown === undefined && key !== "";
  if (!isRight || !["redis:", "rediss:"].includes(url.protocol)) {
    throw new LeaseholdError(
      "INVALID_URL",
      "the address of a Redis store is redis://host:port/database?key=name (rediss: with TLS)",
    );
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? portDefault : Number(url.port);
  return {
    name: `${url.protocol}//${url.hostname}:${port}/${Number(database)}${key === keyDefault ? "" : `?key=${key}`}`,
    host,
    port,
    database: Number(database),
    tls: url.protocol === "rediss:",
    username: url.username === "" ? undefined : decodeURIComponent(url.username),
    password: url.password === "" ? environment["REDISCLI_AUTH"] : decodeURIComponent(url.password),
    key,
  };
}
