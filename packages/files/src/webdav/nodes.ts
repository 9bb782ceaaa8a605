import type { IncomingMessage, ServerResponse } from "node:http";
import { isRecord, LeaseholdError } from "leasehold/common";
import type { Files, NodesChange, NodesReport } from "../types.js";

/** The media type of a request about the list of nodes. HTML forms cannot send it. */
export const nodesType = "application/vnd.leasehold.nodes+json";

const bytesMax = 4_096;

/**
 * Makes the change of the list of nodes, if any, and answers with the list.
 * @param audit called with a change that was made, or may have been
 */
export async function answerNodes(
  files: Files,
  request: IncomingMessage,
  response: ServerResponse,
  audit: (change: NodesChange, outcome: "done" | "unknown") => void,
): Promise<void> {
  if (request.headers["content-type"] !== nodesType)
    throw new LeaseholdError("INVALID_PATH", `a request for the list of nodes has the type ${nodesType}`);
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > bytesMax) throw new LeaseholdError("INVALID_PATH", "the request is too long");
  }
  const change = changeIn(text);
  const report = change === null ? await files.nodes() : await changed(files, change, audit);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(`${JSON.stringify(report)}\n`);
}

async function changed(
  files: Files,
  change: NodesChange,
  audit: (change: NodesChange, outcome: "done" | "unknown") => void,
): Promise<NodesReport> {
  try {
    const report = await files.changeNodes(change);
    audit(change, "done");
    return report;
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === "FILE_UNCERTAIN") audit(change, "unknown");
    throw error;
  }
}

/** The subject of a change, for the audit trail. */
export function subjectOf(change: NodesChange): string {
  if (change.what === "add") return `${change.node.id}=${change.node.address}`;
  if (change.what !== "copies") return change.id;
  return change.folder === undefined ? String(change.copies) : `${change.copies} in ${change.folder}`;
}

function changeIn(text: string): NodesChange | null {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new LeaseholdError("INVALID_PATH", "the request is no JSON");
  }
  if (given === null) return null;
  const { what, id, copies, folder, node } = isRecord(given) ? given : {};
  if ((what === "drain" || what === "serve" || what === "remove") && typeof id === "string")
    return { what, id };
  if (what === "copies" && typeof copies === "number" && (folder === undefined || typeof folder === "string"))
    return { what, copies, folder };
  const { id: added, address, zone } = isRecord(node) ? node : {};
  const isNode = typeof added === "string" && typeof address === "string" && typeof zone === "string";
  if (what === "add" && isNode) return { what, node: { id: added, address, zone } };
  throw new LeaseholdError("INVALID_PATH", "this is no change of the list of nodes");
}
