/** Several names in one call. */
export const resourcesMax = 64;

/** The bounds on what clients may ask of one gateway. */
export interface Limits {
  /** Sessions of all clients. One user has at most as many as are free, and of leases, too. */
  readonly sessionsMax: number;
  /** Leases of all clients, those that are waited for included. */
  readonly leasesMax: number;
  /** Leases of one session, those that are waited for included. */
  readonly leasesOfSessionMax: number;
  /** The ttl of a session, ms. */
  readonly ttlMinMs: number;
  readonly ttlMaxMs: number;
}

export const limitsDefault: Limits = {
  sessionsMax: 100_000,
  leasesMax: 400_000,
  leasesOfSessionMax: 256,
  ttlMinMs: 1_000,
  ttlMaxMs: 3_600_000,
};
