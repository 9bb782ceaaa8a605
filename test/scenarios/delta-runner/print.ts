import { decodeRecord } from "../../../packages/leasehold/src/delta/record/codec.js";
import type { AttemptResult } from "../../../packages/leasehold/src/delta/lease-protocol.js";
import { leaseRegister } from "../../../packages/leasehold/src/delta/record/registers.js";
import type { StoreAnswer, StoreRequest } from "../../../packages/leasehold/src/delta/store.js";

/** The one resource of a script. */
export const resource = "r";

/** The operation on a store and the store's answer. */
export function printOperation(request: StoreRequest, answer: StoreAnswer): string {
  return `${printRequest(request)}: ${printAnswer(answer)}`;
}

function printRequest(request: StoreRequest): string {
  if (request.op === "list") return `list ${request.prefix}`;
  const where = request.register === leaseRegister(resource) ? "" : ` of ${request.register}`;
  if (request.op === "read") return `read${where}`;
  const next = where === "" ? ` ${printRecord(request.next)}` : "";
  if (request.op === "put") return `write${next}${where}`;
  const over = request.expected === undefined ? "nothing" : printRecord(request.expected);
  return `replace ${over} by${next}${where}`;
}

function printAnswer(answer: StoreAnswer): string {
  switch (answer.kind) {
    case "cells":
      return printCells(answer.cells);
    case "conflict":
      return `no, it has ${printCells(answer.cells)}`;
    case "registers":
      return `${answer.registers.size} registers`;
    case "failed":
      return answer.error.code;
    case "quiet":
      return "nothing new";
    case "written":
      return "done";
  }
}

/** The content of a register. */
export function printCells(cells: readonly Uint8Array[]): string {
  return cells.length === 0 ? "nothing" : cells.map(printRecord).join(" and ");
}

/** A record as its writer, its number (`#`), and the token if it is a lease. */
function printRecord(bytes: Uint8Array): string {
  const { writer, number, epoch, state } = decodeRecord(bytes);
  return state === "held" ? `[${writer} #${number} token ${epoch}]` : `[${writer} #${number} free]`;
}

export function printResult(result: AttemptResult): string {
  if (result.kind === "granted") return `granted, token ${result.tenure.token}`;
  if (result.kind === "failed") return `failed (${result.error.code})`;
  return result.holder === undefined ? "refused, others try too" : `refused, ${result.holder} has it`;
}
