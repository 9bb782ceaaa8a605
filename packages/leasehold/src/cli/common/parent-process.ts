/**
 * Whether a process forked this one. The channel between the two closes when the parent ends, however it
 * ends, and so notifies its children.
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
  // A parent that has just exited is no fault: the channel reports it, too.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
