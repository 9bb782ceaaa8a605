/** Takes note of how to close what has just been opened. */
export type OnFailure = (close: () => void | Promise<void>) => void;

/**
 * Runs a call that opens one thing after the other. If a step fails, all that was opened until then is closed
 * again, the last first, before the call rejects: its caller has nothing in hand by which to close it.
 */
export async function opening<T>(steps: (onFailure: OnFailure) => Promise<T>): Promise<T> {
  const closes: (() => void | Promise<void>)[] = [];
  try {
    return await steps((close) => closes.push(close));
  } catch (error) {
    for (const close of closes.toReversed()) await close();
    throw error;
  }
}
