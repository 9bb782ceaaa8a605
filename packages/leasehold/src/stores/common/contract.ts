import type { Store } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";

/** One trial of a probe on a store. */
export interface ProbeFinding {
  /** The trial, as a sentence that continues "It …": `created a file that existed`. */
  readonly tried: string;
  /** The result. */
  readonly seen: string;
  /** Whether leases can work with that. */
  readonly ok: boolean;
}

/** A probed store with the findings of its probe: all of them are ok, or it would not have been opened. */
export interface OpenedStore extends Store {
  readonly findings: readonly ProbeFinding[];
}

export interface OpenStoreOptions {
  /** Name and incarnation of this process, unique: the owner of its slot on a slotted store. */
  readonly writer: string;
  /** Cancels opening; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether a medium that needs a format (a block device) may be formatted if it is empty; otherwise it must
   * be formatted already.
   */
  readonly format?: boolean | undefined;
  /** The source of credentials and their profiles: `process.env` by default. Nothing of it is ever logged. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/**
 * Opens one store and probes it. `url` is the address of this store alone, without `delta+`, with the
 * settings of its kind in path and query: `file:///mnt/a`, `block:/dev/sdx`, `redis://h1:6379/0`.
 *
 * Rejects with {@link StoreUnfitError} when the probe found that leases can't work with the store, and with a
 * `LeaseholdError` of another `STORE_…` code (or `INVALID_URL`) when the probe could not finish.
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
