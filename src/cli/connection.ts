import { parseDuration } from "../lease/duration.js";
import type { Leases } from "../lease/types.js";
import { open } from "../index.js";
import { type Settings, WAIT_DEFAULT, openOptions } from "./settings.js";
import { few } from "../lease/lists.js";

/** Opens the leases, uses them, and closes them whatever happened. */
export async function withLeases<T>(settings: Settings, use: (leases: Leases) => Promise<T>): Promise<T> {
  const leases = await open(...few(settings.endpoints), openOptions(settings));
  try {
    return await use(leases);
  } finally {
    await leases.close();
  }
}

/** The options of a command that waits its turn. */
export interface WaitOptions {
  readonly wait?: string;
  readonly try?: boolean;
}

/** When a wait is over before anything was asked, one look is left. */
const WAIT_LEFT_MS_MIN = 1;

/**
 * The same for a command that waits its turn: the wait begins here, and is for the members or stores as well. Whoever said how long
 * to wait does not want to hear of a shorter `--timeout`, as when hundreds of commands start at once.
 *
 * @param use is told how much of the wait is left, ms; 0 for a command that is not to wait.
 */
export function withLeasesInTurn<T>(
  settings: Settings,
  options: WaitOptions,
  use: (leases: Leases, waitMs: number) => Promise<T>,
): Promise<T> {
  const waitMs = options.try === true ? 0 : parseDuration(options.wait ?? WAIT_DEFAULT, "--wait");
  const begunMs = performance.now();
  const openMs = options.wait === undefined ? 0 : waitMs;
  const timeoutMs = Math.max(settings.timeoutMs, openMs);
  return withLeases({ ...settings, timeoutMs }, (leases) => {
    const leftMs = waitMs - (performance.now() - begunMs);
    return use(leases, waitMs === 0 ? 0 : Math.max(WAIT_LEFT_MS_MIN, leftMs));
  });
}
