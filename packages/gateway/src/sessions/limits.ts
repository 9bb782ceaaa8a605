/** The bounds on what clients may ask of one gateway. */
export interface Limits {
  /** Sessions of all clients. */
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
  sessionsMax: 50_000,
  leasesMax: 200_000,
  leasesOfSessionMax: 256,
  ttlMinMs: 1_000,
  ttlMaxMs: 3_600_000,
};
