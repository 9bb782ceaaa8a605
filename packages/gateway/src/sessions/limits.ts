/** The most names in one call. */
export const resourcesMax = 64;

/** The limits on what clients may request of one gateway. */
export interface Limits {
  /** Sessions of all clients. One user gets at most as many as are free; the same holds for leases. */
  readonly sessionsMax: number;
  /** Leases of all clients, held or waited for. */
  readonly leasesMax: number;
  /** Leases of one session, held or waited for. */
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
