import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout } from "node:timers/promises";
import { LeaseholdError } from "leasehold/common";
import type { FileChange, Files } from "../types.js";

/** The pause between two comments that show a client, and a proxy, that the connection is alive, ms. */
const aliveMs = 15_000;
/** The pause before a user is looked at again, while too many passwords wait for their check, ms. */
const againMs = 500;

/** The name of such requests in metrics, beside the methods of HTTP. */
export const followMethod = "FOLLOW";

/** Whether the request is for events. */
export function wantsEvents({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && /\btext\/event-stream\b/i.test(headers.accept ?? "");
}

/**
 * Sends the changes of a folder as server-sent events, each with its cursor as its id; an id without an event
 * moves the cursor. A client that comes back with `Last-Event-ID` goes on there.
 *
 * @param stillMay rejects when the user may not read the folder any more
 * @param closing aborts when the server closes: the client is told, and comes back to another node
 */
export async function follow(
  files: Files,
  folder: string,
  request: IncomingMessage,
  response: ServerResponse,
  stillMay: () => Promise<unknown>,
  closing: AbortSignal,
): Promise<void> {
  const [gone, denied] = [new AbortController(), new AbortController()];
  const signal = AbortSignal.any([gone.signal, denied.signal, closing]);
  response.on("close", () => gone.abort());
  const given = request.headers["last-event-id"];
  const after = typeof given === "string" && given !== "" ? given : undefined;
  const alive = setInterval(() => {
    isAllowed(stillMay).catch((error: unknown) => denied.abort(error));
    if (response.headersSent && !response.writableNeedDrain) response.write(":\n\n");
  }, aliveMs);
  try {
    // The first batch comes at once; a cursor that cannot be resumed is refused before anything is sent.
    for await (const { changes, cursor } of files.changes(folder, { after, signal })) {
      while (!(await isAllowed(stillMay))) await setTimeout(againMs, undefined, { signal });
      if (!response.headersSent)
        response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      const events = changes.length === 0 ? `id: ${cursor}\n\n` : changes.map(eventOf).join("");
      // A client that reads slowly is not read ahead for.
      if (!response.write(events)) await once(response, "drain", { signal });
    }
  } catch (error) {
    if (gone.signal.aborted) return;
    const fault = closing.aborted
      ? new LeaseholdError("CLOSED")
      : ((denied.signal.reason as unknown) ?? error);
    if (!response.headersSent) throw fault;
    const code = fault instanceof LeaseholdError ? fault.code : "UNEXPECTED";
    response.end(`event: failed\ndata: ${JSON.stringify({ code })}\n\n`);
  } finally {
    clearInterval(alive);
  }
}

/**
 * @returns false while that cannot be checked
 * @throws LeaseholdError `PERMISSION_DENIED`
 */
async function isAllowed(stillMay: () => Promise<unknown>): Promise<boolean> {
  try {
    await stillMay();
    return true;
  } catch (cause) {
    if (cause instanceof LeaseholdError && cause.code === "OVERLOADED") return false;
    throw new LeaseholdError("PERMISSION_DENIED", "the user may not read the folder any more", { cause });
  }
}

function eventOf({ cursor, ...change }: FileChange): string {
  return `id: ${cursor}\ndata: ${JSON.stringify(change)}\n\n`;
}
