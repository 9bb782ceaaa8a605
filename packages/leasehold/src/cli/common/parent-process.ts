/**
 * Whether a process forked this one. The channel between the two closes when the parent ends for any reason,
 * which notifies the children.
 */

export function isForked(): boolean {
  return process.send !== undefined;
}

/** Calls `run` once the parent has exited; at once if it already has. */
export function onParentGone(run: () => void): void {
  if (!isForked()) return;
  process.on("disconnect", run);
  if (!process.connected) run();
}

export function notifyParent(message: object): void {
  // A parent that has just exited is not a fault: the channel reports that, too.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
