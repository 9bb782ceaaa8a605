import { errorCodes, LeaseholdError } from "../../../lease/errors.js";
import type { ErrorCode } from "../../../lease/errors.js";
import { recordOrEmpty } from "../../../common/json.js";
import type { ByteReader, ByteWriter } from "./bytes.js";
import {
  ANSWER_FRAME_BYTES_MAX,
  CALL_FRAME_BYTES_MAX,
  MEMBER_CALL_FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FrameKind,
} from "./frame.js";
import { FrameError } from "./frame-error.js";

/** Request id, status or length of the method, the method, length of the JSON text. */
const ADMIN_FIELDS_BYTES_MAX = FRAME_HEADER_BYTES + 4 + 1 + 255 + 4;

const METHOD_BYTES_MAX = 64;

const Status = { value: 0, error: 1 } as const;

/** A call outside the protocol. */
export interface CallFrame {
  readonly id: number;
  readonly method: string;
  readonly params: unknown;
}

export interface AnswerFrame {
  readonly id: number;
  readonly error?: LeaseholdError;
  readonly value?: unknown;
}

/** @throws TypeError for values that JSON cannot represent (a bigint, a cycle). */
function textOf(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}

/** False when it is too large to be sent; then nothing has been written. */
export function encodeCall(to: ByteWriter, call: CallFrame, bytesMax = CALL_FRAME_BYTES_MAX): boolean {
  const json = textOf(call.params);
  if (Buffer.byteLength(json) + ADMIN_FIELDS_BYTES_MAX > bytesMax) return false;
  if (call.method.length === 0 || Buffer.byteLength(call.method) > METHOD_BYTES_MAX) return false;
  const start = to.beginFrame(FrameKind.call, ADMIN_FIELDS_BYTES_MAX + 3 * json.length);
  to.u32(call.id);
  to.text8(call.method);
  to.text32(json);
  to.endFrame(start);
  return true;
}

/**
 * @throws TypeError for a value that JSON cannot represent, RangeError for one that is too large for a
 * frame; then nothing has been written.
 */
export function encodeAnswer(to: ByteWriter, answer: AnswerFrame): void {
  const { error } = answer;
  const status = error === undefined ? Status.value : Status.error;
  const json = textOf(error === undefined ? answer.value : { code: error.code, message: error.message });
  if (Buffer.byteLength(json) + ADMIN_FIELDS_BYTES_MAX > ANSWER_FRAME_BYTES_MAX) {
    throw new RangeError(`the answer is larger than ${ANSWER_FRAME_BYTES_MAX} bytes`);
  }
  const start = to.beginFrame(FrameKind.answer, ADMIN_FIELDS_BYTES_MAX + 3 * json.length);
  to.u32(answer.id);
  to.u8(status);
  to.text32(json);
  to.endFrame(start);
}

export function decodeCall(from: ByteReader): CallFrame {
  const id = from.u32();
  const method = from.name8(1, METHOD_BYTES_MAX);
  // The frame's own bound depends on its sender.
  const params = json(from, MEMBER_CALL_FRAME_BYTES_MAX);
  from.finish();
  return { id, method, params };
}

export function decodeAnswer(from: ByteReader): AnswerFrame {
  const id = from.u32();
  const status = from.u8();
  if (status !== Status.value && status !== Status.error) throw new FrameError("code", `a status ${status}`);
  const value = json(from, ANSWER_FRAME_BYTES_MAX);
  from.finish();
  return status === Status.value ? { id, value } : { id, error: errorOf(value) };
}

function json(from: ByteReader, bytesMax: number): unknown {
  const text = from.text32(1, bytesMax);
  try {
    return JSON.parse(text);
  } catch {
    throw new FrameError("json", "text that is not JSON");
  }
}

function errorOf(value: unknown): LeaseholdError {
  const { code, message } = recordOrEmpty(value);
  const known = typeof code === "string" && Object.hasOwn(errorCodes, code);
  return new LeaseholdError(
    known ? (code as ErrorCode) : "UNREACHABLE",
    typeof message === "string" ? message : "the peer answered with an error",
  );
}
