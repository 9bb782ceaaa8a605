import type { Store } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";

/** One thing that a probe tried on a store. */
export interface ProbeFinding {
  /** What was done, as a sentence that goes on "It …": `created a file that existed`. */
  readonly tried: string;
  /** What came of it. */
  readonly seen: string;
  /** That is what leases need. */
  readonly ok: boolean;
}

/**
 * A store that has been probed, and what the probe found: every finding is good, or it would not have been
 * opened.
 */
export interface OpenedStore extends Store {
  readonly findings: readonly ProbeFinding[];
}

export interface OpenStoreOptions {
  /**
   * Name and incarnation of this process, different from every other's: whose slot it is on a slotted store.
   */
  readonly writer: string;
  /** Gives up opening; rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * A medium that has to be laid out (a block device) may be, if it is empty; otherwise it must have been.
   */
  readonly format?: boolean | undefined;
  /**
   * Where credentials and their profiles are looked up: `process.env` by default. Nothing of it is ever
   * logged.
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/**
 * Opens one store and probes it. `url` is the address of this store alone, without `delta+` and with what it
 * needs in its path and query: `file:///mnt/a`, `block:/dev/sdx`, `redis://h1:6379/0`.
 *
 * Rejects with {@link StoreUnfitError} when the probe saw that the store does not do what leases need, and
 * with a `LeaseholdError` of another `STORE_…` code (or `INVALID_URL`) when it did not come that far.
 */
export type OpenStore = (url: URL, options: OpenStoreOptions) => Promise<OpenedStore>;

/** The probe refused the store. */
export class StoreUnfitError extends LeaseholdError {
  readonly findings: readonly ProbeFinding[];

  constructor(name: string, findings: readonly ProbeFinding[]) {
    const bad = findings.filter((finding) => !finding.ok);
    const what = bad.map((finding) => `${finding.tried}: ${finding.seen}`).join("; ");
    super("STORE_UNFIT", `${name} cannot be used for leases: ${what}`);
    this.name = "StoreUnfitError";
    this.findings = findings;
  }
}

/**
 * Passes the findings on if all are good.
 *
 * @throws StoreUnfitError
 */
export function assertFit(name: string, findings: readonly ProbeFinding[]): readonly ProbeFinding[] {
  if (findings.some((finding) => !finding.ok)) throw new StoreUnfitError(name, findings);
  return findings;
}
