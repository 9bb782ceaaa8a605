/**
 * Keeps a process from ending by itself while work is in progress. It counts: each `ref` needs its `unref`.
 */
export interface KeepAlive {
  ref(): void;
  unref(): void;
}

/** Runs `work`; the process lives at least until it has settled. */
export async function keptAlive<T>(keepAlive: KeepAlive | undefined, work: () => Promise<T>): Promise<T> {
  keepAlive?.ref();
  try {
    return await work();
  } finally {
    keepAlive?.unref();
  }
}
