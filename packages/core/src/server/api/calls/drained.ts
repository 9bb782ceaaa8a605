import type { ServerStream } from "../../wire/rpc/call.js";

/**
 * Resolves when the client has read most of the output, or on abort. It removes its listeners, since one
 * stream may wait thousands of times.
 */
export function drained(stream: Pick<ServerStream, "whenDrained">, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const done = () => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    stream.whenDrained(done);
    signal.addEventListener("abort", done);
  });
}
