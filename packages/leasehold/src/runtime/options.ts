import { LeaseholdError } from "../lease/errors.js";
import { checkOptionNames, type OptionNames } from "../lease/option-names.js";
import type { Duration } from "../lease/types.js";
import type { Logger } from "./logger.js";

/** The options of every ground. */
export interface ParticipantOptions {
  /**
   * The name under which this participant holds leases; an incarnation is appended. Default: host name and
   * process id.
   */
  name?: string | undefined;
  /**
   * A note of up to about 200 bytes. Queries for holders show it after the machine's name and the process id.
   * It is not verified.
   */
  label?: string | undefined;
  /** Timeout for finding a first member, store or server that answers. Default `"5s"`. */
  timeout?: Duration | undefined;
  /** The target of log messages. Default: none. */
  logger?: Logger | undefined;
}

export const participantOptionNames: OptionNames<ParticipantOptions> = {
  name: true,
  label: true,
  timeout: true,
  logger: true,
};

/**
 * Certificates for TLS with mutual authentication: each a PEM text, or the path of a PEM file
 * (`docs/security.md`).
 */
export interface TlsFiles {
  /** The trusted authorities; no others are trusted. */
  ca: string;
  /** This participant's certificate, followed by intermediate certificates, if any. */
  cert: string;
  /** The private key of that certificate, without a passphrase. */
  key: string;
}

/** The arguments of `open` and similar functions: one or more addresses, then the options. */
export type UrlsAndOptions<Options, Url extends string = string> = [...urls: Url[], options: Options] | Url[];

/**
 * Separates the addresses from the options.
 *
 * @throws LeaseholdError `INVALID_URL` when the addresses are one array, `INVALID_CONFIG` when the options
 * are not the last argument, or not an object.
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
      "give the addresses as text and then at most one object of options",
    );
  return { urls, options };
}

/** The options that only some grounds have. */
const optionsOfSome = ["cluster", "role", "tls", "key", "keyFile", "renewInWorker", "user", "password"];

/**
 * Refuses unknown options and those that the ground does not support. TypeScript does this too; the check is
 * for JavaScript.
 *
 * @param names the options of the ground.
 * @throws LeaseholdError `INVALID_CONFIG`
 */
export function checkOpenOptions(options: object, names: Readonly<Record<string, true>>, why: string): void {
  const own = { ...names };
  const values = options as Readonly<Record<string, unknown>>;
  for (const name of optionsOfSome) {
    if (Object.hasOwn(names, name)) continue;
    // `false` means the same as absent.
    if (values[name] !== undefined && values[name] !== false)
      throw new LeaseholdError("INVALID_CONFIG", `${name} has no meaning for ${why}`);
    own[name] = true;
  }
  checkOptionNames("open", options, own);
}
