interface Watch {
  readonly runs: Set<() => void>;
  readonly listener: () => void;
}

/**
 * Adds one listener per signal, however many calls wait for it: programs share a signal among many calls, and
 * Node warns of a leak at the eleventh listener.
 */
const watches = new WeakMap<AbortSignal, Watch>();

/**
 * Calls `run` once when the signal aborts, until {@link unwatchAbort}; synchronously if it has already
 * aborted.
 */
export function watchAbort(signal: AbortSignal | undefined, run: () => void): void {
  if (signal === undefined) return;
  if (signal.aborted) {
    run();
    return;
  }
  let watch = watches.get(signal);
  if (watch === undefined) {
    const runs = new Set<() => void>();
    const listener = () => {
      watches.delete(signal);
      for (const each of runs) each();
    };
    watch = { runs, listener };
    watches.set(signal, watch);
    signal.addEventListener("abort", listener, { once: true });
  }
  watch.runs.add(run);
}

export function unwatchAbort(signal: AbortSignal | undefined, run: () => void): void {
  if (signal === undefined) return;
  const watch = watches.get(signal);
  if (watch === undefined) return;
  watch.runs.delete(run);
  if (watch.runs.size > 0) return;
  watches.delete(signal);
  signal.removeEventListener("abort", watch.listener);
}

/** Settles like the promise, but rejects with the signal's reason if the signal aborts first. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let giveUp = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => (giveUp = () => reject(signal.reason)));
  watchAbort(signal, giveUp);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    unwatchAbort(signal, giveUp);
  }
}
