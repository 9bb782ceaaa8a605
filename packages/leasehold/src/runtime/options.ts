import { LeaseholdError } from "../lease/errors.js";
import { checkOptionNames, type OptionNames } from "../lease/option-names.js";
import type { Duration } from "../lease/types.js";
import type { Logger } from "./logger.js";

/** What every ground understands. */
export interface ParticipantOptions {
  /**
   * Name under which this participant holds leases; an incarnation is appended. Default: host name and
   * process id.
   */
  name?: string | undefined;
  /**
   * What those read who ask who holds what, after this machine's name and the process id: a note of up to
   * about 200 bytes. Anybody can write anything; nothing rests on it.
   */
  label?: string | undefined;
  /** How long to look for a first member, store or server that answers. Default `"5s"`. */
  timeout?: Duration | undefined;
  /** Where to say what goes wrong meanwhile. Default: nowhere. */
  logger?: Logger | undefined;
}

export const participantOptionNames: OptionNames<ParticipantOptions> = {
  name: true,
  label: true,
  timeout: true,
  logger: true,
};

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

/**
 * Tells the addresses from the options.
 *
 * @throws LeaseholdError `INVALID_URL` when the addresses are one argument, `INVALID_CONFIG` when what is not
 * an address is not the last argument, or is no object.
 */
export function splitArguments<Options extends object>(
  args: readonly (string | Options)[],
): { urls: string[]; options: Partial<Options> } {
  if (args.some(Array.isArray))
    throw new LeaseholdError(
      "INVALID_URL",
      "each address is an argument of its own: write open(...addresses)",
    );
  const urls = args.filter((arg) => typeof arg === "string");
  const [options = {}, ...others] = args.slice(urls.length);
  if (typeof options !== "object" || options === null || others.length > 0)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      "give the addresses as text and then, at most, one object of options",
    );
  return { urls, options };
}

/** What only some grounds understand. */
const optionsOfSome = ["cluster", "role", "tls", "key", "keyFile", "renewInWorker", "user", "password"];

/**
 * Refuses options that mean nothing to a ground, and those that no ground has. The types do so, too; this is
 * for JavaScript.
 *
 * @param names those that the ground has.
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function checkOpenOptions(options: object, names: Readonly<Record<string, true>>, why: string): void {
  const own = { ...names };
  const values = options as Readonly<Record<string, unknown>>;
  for (const name of optionsOfSome) {
    if (Object.hasOwn(names, name)) continue;
    // `false` asks for nothing.
    if (values[name] !== undefined && values[name] !== false)
      throw new LeaseholdError("INVALID_CONFIG", `${name} has no meaning for ${why}`);
    own[name] = true;
  }
  checkOptionNames("open", options, own);
}
