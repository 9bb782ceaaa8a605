import type { IncomingMessage } from "node:http";

/**
 * Yields a request's content as it arrives. If the reader leaves early, the rest is read and dropped, as many
 * clients read no answer before they have sent everything. The caller bounds the time.
 */
export async function* piecesOf(request: IncomingMessage): AsyncGenerator<Buffer, void> {
  try {
    // Leaving the loop would otherwise destroy the connection.
    yield* request.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  } finally {
    request.resume();
  }
}
