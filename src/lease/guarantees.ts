/** What a provider promises and what that rests on; for programs to check and for people to read. */
export interface Guarantees {
  readonly ground: "flease" | "grid" | "delta" | "core" | "memory";
  /** When two can't hold one resource: a sentence. */
  readonly exclusion: string;
  /** When the order of tokens is right: a sentence. */
  readonly token: string;
  /** When leases can be had: a sentence. */
  readonly progress: string;
  /**
   * What the three rest on, with this cluster's numbers: a sentence each, in the order in which the three
   * cite them.
   */
  readonly assumptions: readonly string[];
  /** The shortest `ttl` that may be asked for, in milliseconds. */
  readonly ttlMinMs: number;
  /** The longest `ttl` that may be asked for, in milliseconds, and the default. */
  readonly ttlMaxMs: number;
  /** How far the clocks of two participants may be apart, in milliseconds. */
  readonly maxClockSkewMs: number;
  /**
   * The longest time, in milliseconds, from a holder's crash until another can have the resource, when a
   * majority is up: for a lease of `ttlMaxMs`.
   */
  readonly takeoverMsMax: number;
  /** A tenure can carry data for others to read (`TenureOptions.data`). */
  readonly data: boolean;
  /** A lease that was detached can be attached (`Leases.attach`). */
  readonly attach: boolean;
  /**
   * In which order those get a resource who wait for it with `fair` ({@link AcquireOptions.fair}).
   * `strict`: in the order in which their calls reached the ground. `bounded`: participants in the order in
   * which they came to the members, the callers of each in turn; one that is told of a release and does not
   * answer in time goes to the end, so a lost message costs one round. `none`: such calls are refused with
   * `UNSUPPORTED`.
   */
  readonly fair: "strict" | "bounded" | "none";
  /** A holder can give way to one who is named (`Leases.handOver`). */
  readonly handOver: boolean;
}
