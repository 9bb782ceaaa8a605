import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Waits {
  /** Calls that are not over: one connection may ask more before it is answered. */
  calls: number;
  /** Answers that are on their way to the client. */
  saying: number;
}

const waits = new WeakMap<Socket, Waits>();

function of(socket: Socket): Waits {
  let found = waits.get(socket);
  if (found === undefined) waits.set(socket, (found = { calls: 0, saying: 0 }));
  return found;
}

/**
 * While a call is under way its connection may be silent, as answers may be long in coming.
 *
 * @returns tells that it is over
 */
export function awaitAnswer(socket: Socket): () => void {
  const own = of(socket);
  own.calls += 1;
  if (own.saying === 0) socket.setTimeout(0);
  return () => void (own.calls -= 1);
}

/** Resolves with this event, or when the client is gone: one that takes nothing is sent away. */
export function taken(
  response: ServerResponse,
  stuckMs: number,
  event: "drain" | "finish",
  say?: () => void,
): Promise<void> {
  const { socket } = response.req;
  const own = of(socket);
  return new Promise((resolve) => {
    const done = () => {
      response.off(event, done).off("close", done);
      own.saying -= 1;
      // After the last answer, the port has set how long it waits for the next request.
      const isLast = event === "finish" && own.calls <= 1;
      if (own.saying === 0 && !isLast) socket.setTimeout(0);
      resolve();
    };
    own.saying += 1;
    response.once(event, done).once("close", done);
    socket.setTimeout(stuckMs);
    say?.();
  });
}
