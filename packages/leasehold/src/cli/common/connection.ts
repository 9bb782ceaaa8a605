import { parseDuration } from "../../lease/duration.js";
import type { Leases } from "../../lease/types.js";
import { open } from "../../index.js";
import { type Settings, WAIT_DEFAULT, openOptions } from "./settings.js";
import { unlessAborted } from "../../common/abort-watch.js";
import { few } from "../../common/lists.js";

/**
 * Opens the leases, uses them, and closes them whatever happened.
 *
 * @param signal gives up while they are being opened; the promise rejects with its reason. Nothing is held
 * then, and what is under way ends with the process.
 */
export async function withLeases<T>(
  settings: Settings,
  use: (leases: Leases) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const leases = await unlessAborted(open(...few(settings.endpoints), openOptions(settings)), signal);
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
 * The same for a command that waits its turn: the wait begins here, and is for the members or stores as well.
 * A `--wait` that was given overrides `--timeout`: a longer one for when hundreds of commands start at once,
 * a shorter one as nobody wants to wait longer than that.
 *
 * @param use is told how much of the wait is left, ms; 0 for a command that is not to wait.
 */
export function withLeasesInTurn<T>(
  settings: Settings,
  options: WaitOptions,
  signal: AbortSignal,
  use: (leases: Leases, waitMs: number) => Promise<T>,
): Promise<T> {
  const waitMs = options.try === true ? 0 : parseDuration(options.wait ?? WAIT_DEFAULT, "--wait");
  const begunMs = performance.now();
  const timeoutMs = options.wait === undefined || waitMs === 0 ? settings.timeoutMs : waitMs;
  const inTurn = (leases: Leases): Promise<T> => {
    const leftMs = waitMs - (performance.now() - begunMs);
    return use(leases, waitMs === 0 ? 0 : Math.max(WAIT_LEFT_MS_MIN, leftMs));
  };
  return withLeases({ ...settings, timeoutMs }, inTurn, signal);
}
