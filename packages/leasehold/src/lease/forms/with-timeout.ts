import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import type { Timers } from "../../common/ports.js";
import { LeaseholdError } from "../errors.js";

/** Runs `work` with a signal that aborts with `signal`, and as `TIMEOUT` after `ms`. */
export async function withTimeout<T>(
  timers: Timers,
  ms: number,
  signal: AbortSignal | undefined,
  work: (bounded: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const abort = () => stop.abort(signal?.reason);
  const timer = timers.after(ms, () => stop.abort(new LeaseholdError("TIMEOUT")));
  watchAbort(signal, abort);
  try {
    return await work(stop.signal);
  } finally {
    timer.cancel();
    unwatchAbort(signal, abort);
  }
}
