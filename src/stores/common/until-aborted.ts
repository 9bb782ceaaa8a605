/**
 * Rejects with the signal's reason. What was asked goes on, and may still take effect: nobody waits for it
 * any more.
 */
export async function untilAborted<T>(result: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return result;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    void result.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
