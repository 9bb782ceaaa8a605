/**
 * Programs share one signal among many calls, and Node warns of a leak at the eleventh listener: so there is one
 * listener for each signal, however many calls wait for it.
 */
const watches = new WeakMap();
/** Calls `run` once when the signal aborts, until {@link unwatchAbort}. Not for a signal that has aborted already. */
export function watchAbort(signal, run) {
    let watch = watches.get(signal);
    if (watch === undefined) {
        const runs = new Set();
        const listener = () => {
            watches.delete(signal);
            for (const each of runs)
                each();
        };
        watch = { runs, listener };
        watches.set(signal, watch);
        signal.addEventListener("abort", listener, { once: true });
    }
    watch.runs.add(run);
}
export function unwatchAbort(signal, run) {
    const watch = watches.get(signal);
    if (watch === undefined)
        return;
    watch.runs.delete(run);
    if (watch.runs.size > 0)
        return;
    watches.delete(signal);
    signal.removeEventListener("abort", watch.listener);
}
