import type { ServerResponse } from "node:http";

/** Size of the pieces by which a client's progress with a long answer is measured. */
export const pieceBytes = 64 * 1024;

/** The receiver of output. */
export interface Receiver {
  readonly response: ServerResponse;
  readonly socket: { destroy(): void };
}

/**
 * Writes the bytes. Resolves when there is room for more, or the client is gone. A client that reads nothing
 * for `stuckMs` is disconnected, even if it sends meanwhile.
 */
export async function write(receiver: Receiver, bytes: Buffer, stuckMs: number): Promise<void> {
  const { response } = receiver;
  for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes)
    if (!response.write(bytes.subarray(at, at + pieceBytes))) await taken(receiver, stuckMs, "drain");
}

/** Ends the output. Resolves when the client has read everything, or is gone. */
export function end(receiver: Receiver, stuckMs: number, last = ""): Promise<void> {
  return taken(receiver, stuckMs, "finish", () => receiver.response.end(last));
}

/** Sends a complete answer. */
export async function answerWhole(
  receiver: Receiver,
  status: number,
  headers: Readonly<Record<string, string>>,
  text: string,
  stuckMs: number,
): Promise<void> {
  const bytes = Buffer.byteLength(text);
  receiver.response.writeHead(status, { ...headers, "Content-Length": bytes });
  if (bytes <= pieceBytes) {
    await end(receiver, stuckMs, text);
    return;
  }
  await write(receiver, Buffer.from(text), stuckMs);
  await end(receiver, stuckMs);
}

function taken(
  { response, socket }: Receiver,
  stuckMs: number,
  event: "drain" | "finish",
  begin?: () => void,
): Promise<void> {
  return new Promise((resolve) => {
    // The client is gone: nothing more is sent.
    if (response.destroyed) {
      resolve();
      return;
    }
    const stuck = setTimeout(() => socket.destroy(), stuckMs);
    const done = () => {
      clearTimeout(stuck);
      response.off(event, done).off("close", done);
      resolve();
    };
    response.once(event, done).once("close", done);
    begin?.();
  });
}
