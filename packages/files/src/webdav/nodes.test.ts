import { Readable } from "node:stream";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { LeaseholdError } from "leasehold/common";
import { expect, test } from "vitest";
import { MemoryFiles } from "../../../../test/support/memory-files.js";
import { FileUncertainError } from "../uncertain.js";
import type { NodesReport } from "../types.js";
import { answerNodes, nodesType } from "./nodes.js";

async function audited(outcome: () => Promise<NodesReport>, change: unknown): Promise<unknown[]> {
  const files = new MemoryFiles();
  files.changeNodes = outcome;
  const request = Readable.from([JSON.stringify(change)]) as IncomingMessage;
  request.headers = { "content-type": nodesType };
  const lines: unknown[] = [];
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  await answerNodes(files, request, response, (made, how) => lines.push([made, how])).catch(
    (error: unknown) => lines.push((error as LeaseholdError).code),
  );
  return lines;
}

const drain = { what: "drain", id: "c" };

test("a change of nodes is audited if it was made or may have been", async () => {
  const report = { version: 2, copies: 3, nodes: [] };
  expect(await audited(async () => report, drain)).toEqual([[drain, "done"]]);
  const lost = new FileUncertainError("no answer", false);
  expect(await audited(() => Promise.reject(lost), drain)).toEqual([[drain, "unknown"], "FILE_UNCERTAIN"]);
  const refusal = new LeaseholdError("FILE_CHANGED");
  expect(await audited(() => Promise.reject(refusal), drain)).toEqual(["FILE_CHANGED"]);
  expect(await audited(() => Promise.reject(refusal), null)).toEqual([]);
});
