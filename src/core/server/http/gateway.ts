import type { IncomingMessage, ServerResponse } from "node:http";
import { STATUS_CODES } from "node:http";
import type { DescMethod, MessageShape } from "@bufbuild/protobuf";
import { Watch } from "../../gen/etcd/rpc_pb.js";
import type { Caller } from "../grpc/calls.js";
import { CallFailed, type LocalCall, type LocalClient } from "../grpc/local.js";
import { CoreError } from "../../state/errors.js";
import { addressOf } from "../common/address-of.js";
import { finishInTurns } from "../common/turns.js";
import type { CallSlots } from "./call-slots.js";
import { jsonText, messageText } from "./json-text.js";
import { messageFrom } from "./json-message.js";
import { JsonValues, NoJson } from "./json-values.js";
import { awaitAnswer, taken } from "./patience.js";
import type { HttpTimes } from "./times.js";

const statusUnknown = 2;
const statusInvalid = 3;

/** HTTP's status for each of gRPC's, as etcd's gateway has them. */
const httpStatus: readonly number[] = [
  200, 408, 500, 400, 504, 404, 409, 403, 429, 412, 409, 400, 501, 500, 503, 500, 401,
];
const statusOf = (code: number) => httpStatus[code] ?? 500;

/** What JSON calls share. */
interface Room {
  readonly client: LocalClient;
  readonly slots: CallSlots;
  readonly times: HttpTimes;
}

/** etcd's API as JSON: one request and one answer, or lines of answers. */
export async function answerJson(
  { client, slots, times }: Room,
  method: DescMethod,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const isStream = method.methodKind !== "unary";
  const answered = awaitAnswer(request.socket);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  let call: LocalCall<DescMethod> | undefined;
  let giveBack: (() => void) | undefined;
  try {
    giveBack = await slots.take(gone.signal);
    call = client.open(method, callerOf(request), gone.signal);
    // Those of a stream that is asked in both directions come while it is answered.
    if (method.methodKind === "bidi_streaming") await askedFirst(method, request, call, times);
    else await askedOnce(method, request, call, times);
    if (isStream) await answerLines(method, call, response, times);
    else await answerOne(method, call, response, times);
  } catch (error) {
    call?.cancel();
    if (!response.destroyed) refuse(response, error, method);
  } finally {
    giveBack?.();
    answered();
  }
}

function callerOf({ headers, socket }: IncomingMessage): Caller {
  const { authorization } = headers;
  const metadata = authorization === undefined ? {} : { authorization };
  return { client: addressOf(socket), metadata };
}

async function askedOnce(
  method: DescMethod,
  body: IncomingMessage,
  call: LocalCall<DescMethod>,
  { requestMs }: HttpTimes,
): Promise<void> {
  const values = new JsonValues();
  let asked: string | undefined;
  const late = endWhenLate(body, requestMs);
  try {
    for await (const piece of body as AsyncIterable<Buffer>) asked ??= values.take(piece, 1)[0];
  } finally {
    clearTimeout(late);
  }
  if (asked === undefined) values.end();
  call.send(await finishInTurns(messageFrom(method.input, asked ?? "{}")));
  call.end();
}

function endWhenLate(body: IncomingMessage, requestMs: number): NodeJS.Timeout {
  return setTimeout(() => body.destroy(new NoJson("the request did not come in time")), requestMs);
}

/** Resolves with the first request; the others follow as they come. */
async function askedFirst(
  method: DescMethod,
  body: IncomingMessage,
  call: LocalCall<DescMethod>,
  { requestMs }: HttpTimes,
): Promise<void> {
  const values = new JsonValues();
  const pieces = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  /** How many requests have ended with the next piece; nothing at the end. */
  const next = async (): Promise<number | undefined> => {
    const { done, value } = await pieces.next();
    if (done === true) {
      values.end();
      // A watch goes on when nothing more is asked.
      if (method !== Watch.method.watch) call.end();
      return undefined;
    }
    const texts = values.take(value);
    for (const text of texts) call.send(await finishInTurns(messageFrom(method.input, text)));
    return texts.length;
  };
  const late = endWhenLate(body, requestMs);
  let came: number | undefined = 0;
  try {
    while (came === 0) came = await next();
  } finally {
    clearTimeout(late);
  }
  if (came === undefined) return;
  const follow = async () => {
    while ((await next()) !== undefined);
  };
  follow().catch(() => call.cancel());
}

async function answerOne(
  method: DescMethod,
  call: LocalCall<DescMethod>,
  response: ServerResponse,
  { stuckMs }: HttpTimes,
): Promise<void> {
  let isAnswered = false;
  const say = async (text: string) => {
    isAnswered = true;
    const headers = { "Content-Type": "application/json", "Grpc-Metadata-Content-Type": "application/grpc" };
    response.writeHead(200, { ...headers, "Content-Length": Buffer.byteLength(text) });
    await taken(response, stuckMs, "finish", () => response.end(text));
  };
  // It counts as not taken in, where such are counted, until this has been done.
  for await (const answer of call.answers) await say(await textOf(method, answer));
  if (!isAnswered) await say("{}");
}

async function answerLines(
  method: DescMethod,
  call: LocalCall<DescMethod>,
  response: ServerResponse,
  { stuckMs }: HttpTimes,
): Promise<void> {
  for await (const answer of call.answers) {
    if (!response.headersSent) begin(response);
    const line = `{"result":${await textOf(method, answer)}}\n`;
    if (!response.write(line)) await taken(response, stuckMs, "drain");
  }
  if (!response.headersSent) begin(response);
  response.end();
}

function begin(response: ServerResponse): void {
  response.writeHead(200, {
    "Content-Type": "application/json",
    "Grpc-Metadata-Content-Type": "application/grpc",
  });
}

function textOf(method: DescMethod, answer: MessageShape<DescMethod["output"]>): Promise<string> {
  return finishInTurns(messageText(method.output, answer));
}

function refuse(response: ServerResponse, error: unknown, { methodKind }: DescMethod): void {
  const { message } = error as Error;
  const invalid = methodKind === "bidi_streaming" ? statusUnknown : statusInvalid;
  const isOfCore = error instanceof CallFailed || error instanceof CoreError;
  const code = isOfCore ? error.code : invalid;
  const status = statusOf(code);
  const isOfStream = isOfCore && methodKind !== "unary";
  const text = jsonText(
    isOfStream
      ? { error: { grpc_code: code, http_code: status, message, http_status: STATUS_CODES[status] } }
      : { error: message, message, code },
  );
  if (response.headersSent) {
    response.end(`${text}\n`);
    return;
  }
  const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) };
  response.writeHead(status, headers);
  response.end(text);
}
