import { isatty } from "node:tty";
import { isForked, onParentGone } from "./parent-process.js";
import { listenToSignals } from "./signals.js";

/**
 * Resolves when this server must stop because of a signal or because its parent has exited.
 *
 * @param reload runs at each SIGHUP, which then stops only a server in a terminal that hangs up
 */
export function stopRequested(reload?: () => void): Promise<void> {
  return new Promise((resolve) => {
    onParentGone(resolve);
    listenToSignals(["SIGINT", "SIGTERM", "SIGHUP"], (signal) => {
      if (signal === "SIGHUP" && reload !== undefined && !hasTerminal()) {
        reload();
        return;
      }
      // A terminal sends the other signals to all its processes; a forked server lets its parent decide.
      if (signal === "SIGTERM" || !isForked()) resolve();
    });
  });
}

function hasTerminal(): boolean {
  return [0, 1, 2].some((fd) => isatty(fd));
}
