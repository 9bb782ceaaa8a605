/** Calls `work` for each item with limited concurrency; the first failure ends it. */
export async function forEachOf<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  let failed = false;
  const worker = async (): Promise<void> => {
    for (let next = iterator.next(); !failed && next.done !== true; next = iterator.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const settled = await Promise.allSettled(Array.from({ length: atOnce }, worker));
  const rejected = settled.find((each) => each.status === "rejected");
  if (rejected !== undefined) throw rejected.reason;
}
