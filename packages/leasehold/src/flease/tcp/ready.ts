import { unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import { parseDuration } from "../../lease/duration.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import type { ReadyOptions } from "./types.js";

/** Interval for checking whether the recovery wait is over. */
const lookEveryMs = 50;

/** A member in its recovery wait. */
interface Recovering {
  isReady(): boolean;
  /** Aborts when the member is closed. */
  readonly ended: AbortSignal;
}

/** Resolves when a member's vote counts; rejects as soon as waiting is pointless. */
export async function whenReady(
  member: Recovering,
  { signal, timeout }: ReadyOptions,
  { clock, timers }: World,
): Promise<void> {
  const timeoutMs = timeout === undefined ? Infinity : parseDuration(timeout, "timeout");
  const endMs = clock.monotonicMs() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    if (member.ended.aborted) throw new LeaseholdError("CLOSED", "the member was closed before it was ready");
    if (member.isReady()) return;
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) throw new LeaseholdError("TIMEOUT", `the member was not ready within ${timeoutMs} ms`);
    await new Promise<void>((resolve) => {
      const signals = signal === undefined ? [member.ended] : [member.ended, signal];
      const wake = () => {
        timer.cancel();
        for (const each of signals) unwatchAbort(each, wake);
        resolve();
      };
      const timer = timers.after(Math.min(lookEveryMs, leftMs), wake);
      for (const each of signals) watchAbort(each, wake);
    });
  }
}
