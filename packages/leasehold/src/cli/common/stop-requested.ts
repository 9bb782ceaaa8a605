import { isForked, onParentGone } from "./parent-process.js";
import { listenToSignals } from "./signals.js";

/** Resolves when this server is to stop: by a signal, or as the process that forked it is gone. */
export function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    onParentGone(resolve);
    listenToSignals(["SIGINT", "SIGTERM", "SIGHUP"], (signal) => {
      // A terminal sends the others to every process in it: a server that was forked leaves the decision to
      // its parent.
      if (signal === "SIGTERM" || !isForked()) resolve();
    });
  });
}
