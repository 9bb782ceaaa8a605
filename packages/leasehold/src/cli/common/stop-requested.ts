import { isForked, onParentGone } from "./parent-process.js";
import { listenToSignals } from "./signals.js";

/** Resolves when this server must stop: by a signal, or because its parent has exited. */
export function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    onParentGone(resolve);
    listenToSignals(["SIGINT", "SIGTERM", "SIGHUP"], (signal) => {
      // A terminal sends the other signals to all its processes: a forked server leaves the decision to its
      // parent.
      if (signal === "SIGTERM" || !isForked()) resolve();
    });
  });
}
