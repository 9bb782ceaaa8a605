import { isForked, onParentGone } from "./parent-process.js";

/** Resolves when this server is to stop: by a signal, or as the process that forked it is gone. */
export function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    process.on("SIGTERM", resolve);
    onParentGone(resolve);
    // A terminal sends these to every process in it: a server that was forked leaves the decision to its parent.
    const asked = isForked() ? () => undefined : resolve;
    process.on("SIGINT", asked);
    process.on("SIGHUP", asked);
  });
}
