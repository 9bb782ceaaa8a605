import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { DescField, DescMethod, Message, MessageShape } from "@bufbuild/protobuf";
import { Watch } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CoreError } from "../../../state/errors.js";
import { LongRange } from "../../../state/long-range.js";
import { finishInTurns, Turns } from "../../accounts/turns.js";
import type { Caller } from "../calls/calls.js";
import { CallFailed, type LocalCall, type LocalClient } from "../calls/local.js";
import { hasContent } from "../calls/methods.js";
import type { CallSlots } from "../../accounts/call-slots.js";
import { messageFrom } from "./json-message.js";
import { jsonText, TextParts, writeMessage } from "../../wire/json/json-text.js";
import { JsonValues, NoJson } from "../../wire/json/json-values.js";
import type { HttpCall } from "../../wire/http/pipeline.js";
import { answerWhole, end, pieceBytes, write } from "../../wire/http/slow-client.js";
import { piecesOf } from "../../wire/http/body-pieces.js";
import type { HttpTimes } from "../../wire/http/timeouts.js";
import type { CodedError } from "../../wire/rpc/call.js";

const statusUnknown = 2;
const statusInvalid = 3;

/** HTTP status for each gRPC status, as in etcd's gateway. */
const httpStatus: readonly number[] = [
  200, 408, 500, 400, 504, 404, 409, 403, 429, 412, 409, 400, 501, 500, 503, 500, 401,
];
const statusOf = (code: number) => httpStatus[code] ?? 500;

/** Shared by all JSON calls. */
interface Shared {
  readonly client: LocalClient;
  readonly slots: CallSlots;
  readonly times: HttpTimes;
}

/** Answers a call of etcd's API in JSON: one request, and one answer or lines of answers. */
export async function answerJson(
  { client, slots, times }: Shared,
  method: DescMethod,
  call: HttpCall,
): Promise<void> {
  const { charge, gone, response } = call;
  let asking: LocalCall<DescMethod> | undefined;
  let free: (() => void) | undefined;
  try {
    free = await slots.take(call.client, gone);
    asking = client.open(method, callerOf(call), gone, charge.part(), () => call.socket.destroy());
    // Requests of a bidirectional stream may arrive while answers are sent.
    if (method.methodKind === "bidi_streaming") await askedFirst(method, call, asking, times);
    else await askedOnce(method, call, asking, times);
    if (method.methodKind === "unary") await answerOne(method, asking, call, times);
    else await answerLines(method, asking, call, times);
  } catch (error) {
    asking?.cancel();
    if (!response.destroyed) await refuse(call, error, method, times);
  } finally {
    free?.();
  }
}

function callerOf({ client, request }: HttpCall): Caller {
  const { authorization } = request.headers;
  return { client, metadata: authorization === undefined ? {} : { authorization } };
}

/** etcd accepts no larger requests: base64 and field names make them about half as large again. */
const requestJsonBytesMax = 3 * 1024 * 1024;

function newValues(): JsonValues {
  return new JsonValues(requestJsonBytesMax, new CoreError("requestTooLarge").message);
}

/** Bound of other requests, which are small: etcd's have at most some kilobytes. */
const textLengthMax = 256 * 1024;

/**
 * @throws NoJson
 * @throws CoreError `requestTooLarge`, `tooManyOperations`
 */
function messageOf(
  { input }: DescMethod,
  text: string,
  gone: AbortSignal,
): Promise<MessageShape<DescMethod["input"]>> {
  if (text.length > textLengthMax && !hasContent(input)) throw new CoreError("requestTooLarge");
  return finishInTurns(messageFrom(input, text), gone);
}

async function askedOnce(
  method: DescMethod,
  { charge, gone, request }: HttpCall,
  asking: LocalCall<DescMethod>,
  { requestMs }: HttpTimes,
): Promise<void> {
  const values = newValues();
  const count = charge.part();
  let asked: string | undefined;
  const late = endWhenLate(request, requestMs);
  try {
    for await (const piece of piecesOf(request)) {
      asked ??= values.take(piece, 1)[0];
      count(asked?.length ?? values.heldBytes);
    }
  } finally {
    clearTimeout(late);
  }
  if (asked === undefined) values.end();
  asking.send(await messageOf(method, asked ?? "{}", gone));
  // From here on the request is counted in its queue.
  count(0);
  asking.end();
}

function endWhenLate(request: IncomingMessage, requestMs: number): NodeJS.Timeout {
  return setTimeout(() => request.destroy(new NoJson("the request did not come in time")), requestMs);
}

/** Resolves with the first request; further ones are passed on as they arrive. */
async function askedFirst(
  method: DescMethod,
  { charge, gone, request }: HttpCall,
  asking: LocalCall<DescMethod>,
  { requestMs }: HttpTimes,
): Promise<void> {
  const values = newValues();
  const count = charge.part();
  const pieces = piecesOf(request);
  const turns = new Turns();
  /** Returns the number of requests completed by the next piece; undefined at the end. */
  const next = async (): Promise<number | undefined> => {
    const { done, value } = await pieces.next();
    if (done === true) {
      values.end();
      // A watch continues after the client's last request.
      if (method !== Watch.method.watch) asking.end();
      return undefined;
    }
    const texts = values.take(value);
    count(values.heldBytes);
    for (const text of texts) {
      if (turns.isOver) await turns.next();
      asking.send(await messageOf(method, text, gone));
    }
    return texts.length;
  };
  const late = endWhenLate(request, requestMs);
  let came: number | undefined = 0;
  try {
    while (came === 0) came = await next();
  } catch (error) {
    await pieces.return();
    throw error;
  } finally {
    clearTimeout(late);
  }
  if (came === undefined) return;
  const follow = async () => {
    while ((await next()) !== undefined);
  };
  follow().catch((error: unknown) => {
    asking.cancel(failureOf(error, method));
    void pieces.return();
  });
}

async function answerOne(
  method: DescMethod,
  asking: LocalCall<DescMethod>,
  call: HttpCall,
  { stuckMs }: HttpTimes,
): Promise<void> {
  const { response } = call;
  const parts = new TextParts();
  // An answer counts as unread until its iteration ends.
  for await (const each of asking.answers) {
    await writeMessageTo(parts, method, each, call, stuckMs);
    if (!response.headersSent) await answerWhole(call, 200, answerHeaders, parts.take(), stuckMs);
    else await end(call, stuckMs, parts.take());
  }
  if (!response.headersSent) await answerWhole(call, 200, answerHeaders, "{}", stuckMs);
}

/** A long range makes its list while it is iterated. */
const keyValuesOf = (message: Message, { name }: DescField) =>
  name === "kvs" && message instanceof LongRange ? message.keyValues() : undefined;

/**
 * Writes an answer. A long one is streamed, and has no Content-Length, as in etcd.
 *
 * @throws the reason of `gone`
 */
async function writeMessageTo(
  parts: TextParts,
  { output }: DescMethod,
  answer: MessageShape<DescMethod["output"]>,
  call: HttpCall,
  stuckMs: number,
): Promise<void> {
  const { gone, response } = call;
  const turns = new Turns();
  for (const _step of writeMessage(parts, output, answer, keyValuesOf)) {
    if (turns.isOver) await turns.next();
    if (parts.length >= pieceBytes) {
      if (!response.headersSent) response.writeHead(200, answerHeaders);
      await write(call, Buffer.from(parts.take()), stuckMs);
    }
    gone.throwIfAborted();
  }
}

async function answerLines(
  method: DescMethod,
  asking: LocalCall<DescMethod>,
  call: HttpCall,
  { stuckMs }: HttpTimes,
): Promise<void> {
  const { response } = call;
  for await (const each of asking.answers) {
    if (!response.headersSent) response.writeHead(200, answerHeaders);
    const parts = new TextParts();
    parts.push('{"result":');
    await writeMessageTo(parts, method, each, call, stuckMs);
    parts.push("}\n");
    await write(call, Buffer.from(parts.take()), stuckMs);
  }
  if (!response.headersSent) response.writeHead(200, answerHeaders);
  await end(call, stuckMs);
}

const answerHeaders = {
  "Content-Type": "application/json",
  "Grpc-Metadata-Content-Type": "application/grpc",
};

/** Builds the error response. Invalid JSON has no code of the core. */
function failureOf(error: unknown, { methodKind }: DescMethod): CallFailed {
  if (error instanceof CallFailed) return error;
  const ofNoJson = methodKind === "bidi_streaming" ? statusUnknown : statusInvalid;
  return new CallFailed(error instanceof CoreError ? error.code : ofNoJson, (error as Error).message);
}

async function refuse(
  call: HttpCall,
  error: unknown,
  method: DescMethod,
  { stuckMs }: HttpTimes,
): Promise<void> {
  // An error cannot follow within an answer.
  if (call.response.headersSent && method.methodKind === "unary") {
    call.socket.destroy();
    return;
  }
  const { code, message } = failureOf(error, method);
  const status = statusOf(code);
  const isOfCore = error instanceof CallFailed || error instanceof CoreError;
  const isOfStream = isOfCore && method.methodKind !== "unary";
  const text = isOfStream
    ? jsonText({ error: { grpc_code: code, http_code: status, message, http_status: STATUS_CODES[status] } })
    : failureText(code, message);
  if (call.response.headersSent) await end(call, stuckMs, `${text}\n`);
  else await answerWhole(call, status, { "Content-Type": "application/json" }, text, stuckMs);
}

function failureText(code: number, message: string): string {
  return jsonText({ error: message, message, code });
}

/** Answers a request for which there is no room. */
export function answerFull(
  call: HttpCall,
  { code, message }: CodedError,
  { stuckMs }: HttpTimes,
): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  return answerWhole(call, statusOf(code), headers, failureText(code, message), stuckMs);
}
