import { LeaseholdError } from "leasehold";

/** The settings of redlock. Each call may override those of its {@link Redlock}. */
export interface Settings {
  /**
   * The part of the duration by which `Lock.expiration` is earlier than the end, besides 2 ms; for the
   * program's own steps between its check and its write. Default 0.01.
   */
  readonly driftFactor: number;
  /** The number of attempts after the first; -1: no bound. Default 10. */
  readonly retryCount: number;
  /** Milliseconds between attempts, 0 or more. Default 200. */
  readonly retryDelay: number;
  /** Milliseconds, at most, by which each delay is randomly longer or shorter. Default 100. */
  readonly retryJitter: number;
  /**
   * Milliseconds. `using` refuses a duration that isn't at least 100 ms longer; nothing else depends on it,
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

/** The settings with those of a call; one that is undefined does not count. */
export function withSettings(settings: Settings, more: Partial<Settings> = {}): Settings {
  const given = Object.entries(more).filter(([, value]) => value !== undefined);
  return { ...settings, ...Object.fromEntries(given) };
}

/** @throws LeaseholdError `INVALID_DURATION` unless it is a whole number of milliseconds, 1 or more. */
export function checkDuration(durationMs: number): void {
  if (Number.isSafeInteger(durationMs) && durationMs >= 1) return;
  throw new LeaseholdError(
    "INVALID_DURATION",
    `a lock's duration is a whole number of milliseconds, 1 or more, not ${durationMs}`,
  );
}

/** The time by which an expiration is earlier than the end. Redlock has the same 2 ms. */
export function driftMs({ driftFactor }: Settings, durationMs: number): number {
  return Math.round(driftFactor * durationMs) + 2;
}

/** The time until the next attempt. */
export function drawDelayMs({ retryDelay, retryJitter }: Settings): number {
  return Math.max(0, retryDelay + Math.floor((Math.random() * 2 - 1) * retryJitter));
}
