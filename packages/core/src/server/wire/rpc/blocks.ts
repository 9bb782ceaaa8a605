import { headerBlock } from "../../../http2/header-blocks.js";
import type { Status } from "./call.js";

const begin = [
  [":status", "200"],
  ["content-type", "application/grpc"],
] as const;

/** The head of every successful answer. */
export const answerHead = headerBlock(begin);

/** The end of every successful answer. */
export const answerEnd = headerBlock([["grpc-status", "0"]]);

/** The end of a call that has begun to answer. */
export function failedEnd({ code, details }: Status): Uint8Array {
  return headerBlock(fieldsOf(code, details));
}

/** A failure before any answer: head and end in one block. */
export function failedAtOnce({ code, details }: Status): Uint8Array {
  return headerBlock([...begin, ...fieldsOf(code, details)]);
}

/** The response to clients that do not speak gRPC. */
export function httpOnly(status: number): Uint8Array {
  return headerBlock([[":status", String(status)]]);
}

/** Bound of a percent-encoded text, which must fit into a frame; longer texts are cut off. */
const codedMax = 4_000;

function fieldsOf(code: number, details: string): (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = [["grpc-status", String(code)]];
  if (details !== "") fields.push(["grpc-message", percentCoded(details)]);
  return fields;
}

/** Percent-encodes everything but printable ASCII, and the percent sign itself. */
function percentCoded(text: string): string {
  const most = text.slice(0, codedMax);
  if (/^[ -$&-~]*$/.test(most)) return most;
  let coded = "";
  for (const byte of Buffer.from(most)) {
    if (coded.length > codedMax - 3) break;
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    coded += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return coded;
}

const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Parses `grpc-timeout`; infinite if it is missing or invalid. */
export function timeoutMs(text: string | undefined): number {
  const [, number, unit] = /^(\d{1,8})([HMSmun])$/.exec(text ?? "") ?? [];
  return number === undefined ? Number.POSITIVE_INFINITY : Number(number) * unitMs[unit!]!;
}
