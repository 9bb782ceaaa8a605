/** Registers how to close what has just been opened. */
export type OnFailure = (close: () => void | Promise<void>) => void;

/**
 * Runs steps that each open something. If a step fails, everything opened so far is closed in reverse order
 * before the call rejects: its caller has no handle to close it with.
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
