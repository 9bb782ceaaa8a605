import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout } from "node:timers/promises";
import { LeaseholdError } from "leasehold/common";
import type { FileChange, Files } from "../types.js";

/** The pause between two comments that show clients and proxies that the connection is alive, ms. */
const aliveMs = 15_000;
/** How long to wait before a user is checked again, while too many passwords wait to be checked, ms. */
const againMs = 500;

/** The name of these requests in metrics, alongside HTTP's methods. */
export const followMethod = "FOLLOW";

/** Whether the request asks for events. */
export function wantsEvents({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && /\btext\/event-stream\b/i.test(headers.accept ?? "");
}

/**
 * Sends the changes of a folder as server-sent events. The id of an event is its cursor; an id without an
 * event moves the cursor. A client that reconnects with `Last-Event-ID` continues there.
 * @param stillMay rejects when the user may no longer read the folder
 * @param closing aborts when the server closes: the client is notified, and reconnects to another node
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
    // The first batch arrives at once, so a cursor that cannot be resumed is refused before anything is sent.
    for await (const { changes, cursor } of files.changes(folder, { after, signal })) {
      while (!(await isAllowed(stillMay))) await setTimeout(againMs, undefined, { signal });
      if (!response.headersSent)
        response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      const events = changes.length === 0 ? `id: ${cursor}\n\n` : changes.map(eventOf).join("");
      // Nothing is read ahead for a slow client.
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
 * @returns false while the user cannot be checked
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
