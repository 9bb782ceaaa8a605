import type { LeaseSet } from "leasehold";

/**
 * Aborts when a lease is lost. `aborted`, `error` and `throwIfAborted` check the clock first, so they are
 * right in the first statement after a pause. `error` equals `reason`.
 */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

/** The signal for a routine that holds these leases. Until `stop`, a loss calls `onLost` with its error. */
export function signalOf(
  leases: LeaseSet,
  errorOf: (loss: unknown) => Error,
  onLost: (error: Error) => void,
): { readonly signal: RedlockAbortSignal; stop(): void } {
  const controller = new AbortController();
  const { signal } = controller;
  let isStopped = false;
  let error: Error | undefined;
  const check = () => {
    const { signal: inner } = leases;
    if (!inner.aborted || error !== undefined) return;
    error = errorOf(inner.reason);
    controller.abort(error);
    if (!isStopped) queueMicrotask(onLost.bind(undefined, error));
  };
  const checked = <T>(read: () => T) => {
    return () => {
      check();
      return read();
    };
  };
  const isAborted = Object.getOwnPropertyDescriptor(AbortSignal.prototype, "aborted")?.get;
  Object.defineProperties(signal, {
    aborted: { get: checked(() => isAborted?.call(signal)) },
    error: { get: checked(() => error) },
    throwIfAborted: { value: checked(() => AbortSignal.prototype.throwIfAborted.call(signal)) },
  });
  leases.signal.addEventListener("abort", check, { once: true });
  return { signal, stop: () => (isStopped = true) };
}
