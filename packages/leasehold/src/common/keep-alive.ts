/**
 * Keeps a process from exiting by itself while work is in progress. A counter: each `ref` needs an `unref`.
 */
export interface KeepAlive {
  ref(): void;
  unref(): void;
}

/** Runs `work`, and keeps the process alive until it has settled. */
export async function keptAlive<T>(keepAlive: KeepAlive | undefined, work: () => Promise<T>): Promise<T> {
  keepAlive?.ref();
  try {
    return await work();
  } finally {
    keepAlive?.unref();
  }
}
