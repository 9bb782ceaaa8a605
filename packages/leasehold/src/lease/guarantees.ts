/** The guarantees of a provider and their assumptions, which programs can check and people can read. */
export interface Guarantees {
  readonly ground: "flease" | "grid" | "delta" | "core" | "memory";
  /** The conditions under which two participants never hold the same resource: a sentence. */
  readonly exclusion: string;
  /** The conditions under which tokens are ordered: a sentence. */
  readonly token: string;
  /** The conditions under which leases can be acquired: a sentence. */
  readonly progress: string;
  /**
   * The assumptions of the three above, with this cluster's numbers: one sentence each, in the order of
   * citation.
   */
  readonly assumptions: readonly string[];
  /** The shortest `ttl` that a call may ask for, in milliseconds. */
  readonly ttlMinMs: number;
  /** The longest `ttl` that a call may ask for, in milliseconds, and the default. */
  readonly ttlMaxMs: number;
  /** How far the clocks of two participants may differ, in milliseconds. */
  readonly maxClockSkewMs: number;
  /**
   * The longest time, in milliseconds, from a holder's crash until another can have the resource, for a lease
   * of `ttlMaxMs` and while a majority is up.
   */
  readonly takeoverMsMax: number;
  /** Whether a tenure can carry data for others to read (`TenureOptions.data`). */
  readonly data: boolean;
  /** Whether a detached lease can be attached (`Leases.attach`). */
  readonly attach: boolean;
  /**
   * The order in which callers that wait with `fair` get a resource ({@link AcquireOptions.fair}). `strict`:
   * the order in which their calls reached the ground. `bounded`: participants in the order in which they
   * reached the members, the callers of each in turn; a participant that is notified of a release and does
   * not answer in time goes to the end, so a lost message costs one round. `none`: such calls are refused
   * with `UNSUPPORTED`.
   */
  readonly fair: "strict" | "bounded" | "none";
  /** Whether a holder can hand over the lease to a named participant (`Leases.handOver`). */
  readonly handOver: boolean;
}
