import { LeaseholdError } from "leasehold";

/** The settings of redlock. Each call may override those of its {@link Redlock}. */
export interface Settings {
  /**
   * The share of the duration by which `Lock.expiration` is earlier than the end, in addition to 2 ms. It
   * covers the program's steps between its check and its write. Default 0.01.
   */
  readonly driftFactor: number;
  /** The number of attempts after the first; -1 for no bound. Default 10. */
  readonly retryCount: number;
  /** Milliseconds between attempts, 0 or more. Default 200. */
  readonly retryDelay: number;
  /** The greatest random change of each delay, in either direction, in milliseconds. Default 100. */
  readonly retryJitter: number;
  /**
   * Milliseconds. `using` refuses a duration that isn't at least 100 ms longer. Nothing else depends on it,
   * because leases renew themselves. Default 500.
   */
  readonly automaticExtensionThreshold: number;
}

export const defaultSettings: Settings = Object.freeze({
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
});

/** The settings, overridden by those of a call that are not undefined. */
export function withSettings(settings: Settings, more: Partial<Settings> = {}): Settings {
  const given = Object.entries(more).filter(([, value]) => value !== undefined);
  return { ...settings, ...Object.fromEntries(given) };
}

/**
 * @throws LeaseholdError `INVALID_DURATION` unless the duration is a whole number of milliseconds, 1 or more.
 */
export function checkDuration(durationMs: number): void {
  if (Number.isSafeInteger(durationMs) && durationMs >= 1) return;
  throw new LeaseholdError(
    "INVALID_DURATION",
    `a lock's duration is a whole number of milliseconds, 1 or more, not ${durationMs}`,
  );
}

/** The time by which an expiration is earlier than the end. The 2 ms are redlock's. */
export function driftMs({ driftFactor }: Settings, durationMs: number): number {
  return Math.round(driftFactor * durationMs) + 2;
}

/** The time until the next attempt. */
export function drawDelayMs({ retryDelay, retryJitter }: Settings): number {
  return Math.max(0, retryDelay + Math.floor((Math.random() * 2 - 1) * retryJitter));
}
