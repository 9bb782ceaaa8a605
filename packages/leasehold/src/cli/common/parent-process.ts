/**
 * The process that forked this one, if one did. The channel between the two closes when the parent ends,
 * however it ends: that is how its children know.
 */

export function isForked(): boolean {
  return process.send !== undefined;
}

/** Calls `run` once the parent is gone; at once if it went before we could listen. */
export function onParentGone(run: () => void): void {
  if (!isForked()) return;
  process.on("disconnect", run);
  if (!process.connected) run();
}

export function tellParent(message: object): void {
  // A parent that has just gone is no fault of ours: the closed channel says so, too.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
