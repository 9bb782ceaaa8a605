import type { IncomingMessage } from "node:http";

/**
 * The content of a request, as it comes. When its reader leaves early, what still comes is read and dropped:
 * many clients read no answer before they have said all. How long that may take is up to the caller.
 */
export async function* piecesOf(request: IncomingMessage): AsyncGenerator<Buffer, void> {
  try {
    // A loop that is left would otherwise destroy the connection.
    yield* request.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  } finally {
    request.resume();
  }
}
