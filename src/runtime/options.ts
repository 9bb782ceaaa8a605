import { LeaseholdError } from "../lease/errors.js";
import type { Duration } from "../lease/types.js";
import type { Logger } from "./logger.js";

/** What every ground understands. */
export interface ParticipantOptions {
  /**
   * Name under which this participant holds leases; an incarnation is appended. Default: host name and
   * process id.
   */
  name?: string;
  /**
   * What those read who ask who holds what, after this machine's name and the process id: a note of up to
   * about 200 bytes. Anybody can write anything; nothing rests on it.
   */
  label?: string;
  /** How long to look for a first member, store or server that answers. Default `"5s"`. */
  timeout?: Duration;
  /** Where to say what goes wrong meanwhile. Default: nowhere. */
  logger?: Logger;
}

/**
 * Certificates for TLS with mutual authentication: each PEM text, or the path of a PEM file
 * (`docs/security.md`).
 */
export interface TlsFiles {
  /** The authorities whose certificates count, and no others. */
  ca: string;
  /** This participant's certificate, followed by those between it and the authority, if there are any. */
  cert: string;
  /** The private key of that certificate, without a passphrase. */
  key: string;
}

/** The arguments of `open` and its like: one or more addresses, and at last the options. */
export type UrlsAndOptions<Options, Url extends string = string> = [...urls: Url[], options: Options] | Url[];

/** Tells the addresses from the options. */
export function splitArguments<Options extends object>(
  args: readonly (string | Options)[],
): { urls: string[]; options: Partial<Options> } {
  const last = args.at(-1);
  return {
    urls: args.filter((arg) => typeof arg === "string"),
    options: typeof last === "object" ? last : ({} as Partial<Options>),
  };
}

/**
 * Refuses options that mean nothing to a ground. The types do so, too; this is for JavaScript.
 *
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function refuseOptions(options: object, names: readonly string[], why: string): void {
  const values = options as Readonly<Record<string, unknown>>;
  const given = names.find((name) => values[name] !== undefined && values[name] !== false);
  if (given !== undefined) throw new LeaseholdError("INVALID_CONFIG", `${given} has no meaning for ${why}`);
}
