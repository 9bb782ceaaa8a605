import type { Store } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";

/** The result of one test of a probe. */
export interface ProbeFinding {
  /** The test, as a sentence without its beginning "It …": `created a file that existed`. */
  readonly tried: string;
  /** The result. */
  readonly seen: string;
  /** Whether leases can work with this result. */
  readonly ok: boolean;
}

/** A probed store and the probe's findings, which are all ok; otherwise it would not have been opened. */
export interface OpenedStore extends Store {
  readonly findings: readonly ProbeFinding[];
}

export interface OpenStoreOptions {
  /** The unique name and incarnation of this process, which identify its slot on a slotted store. */
  readonly writer: string;
  /** Cancels the opening, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether an empty medium that needs a format (a block device) may be formatted. Without this, it must be
   * formatted already.
   */
  readonly format?: boolean | undefined;
  /** The source of credentials and their profiles, by default `process.env`. Its values are never logged. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/**
 * Opens one store and probes it. `url` is the address of this store alone, without `delta+`, with the
 * settings of its kind in path and query: `file:///mnt/a`, `block:/dev/sdx`, `redis://h1:6379/0`.
 *
 * Rejects with {@link StoreUnfitError} if the probe finds that leases can't work with the store, and with
 * another `STORE_…` code (or `INVALID_URL`) if the probe can't be completed.
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
 * Returns the findings if all are ok.
 *
 * @throws StoreUnfitError
 */
export function assertFit(name: string, findings: readonly ProbeFinding[]): readonly ProbeFinding[] {
  if (findings.some((finding) => !finding.ok)) throw new StoreUnfitError(name, findings);
  return findings;
}
