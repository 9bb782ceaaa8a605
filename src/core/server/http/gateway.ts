import type { IncomingMessage, ServerResponse } from "node:http";
import { STATUS_CODES } from "node:http";
import { type DescMethod, fromJsonString, type MessageShape, toJson } from "@bufbuild/protobuf";
import { Watch } from "../../gen/etcd/rpc_pb.js";
import type { Caller } from "../grpc/calls.js";
import { CallFailed, type LocalCall, type LocalClient } from "../grpc/local.js";
import { CoreError } from "../../state/errors.js";
import type { CallSlots } from "./call-slots.js";
import { JsonValues, NoJson } from "./json-values.js";

const statusUnknown = 2;
const statusInvalid = 3;

/** HTTP's status for each of gRPC's, as etcd's gateway has them. */
const httpStatus: readonly number[] = [
  200, 408, 500, 400, 504, 404, 409, 403, 429, 412, 409, 400, 501, 500, 503, 500, 401,
];
const statusOf = (code: number) => httpStatus[code] ?? 500;

/** A request that is one message has to be there in this time after its head: it holds a slot. */
const requestMs = 60_000;

/** etcd's API as JSON: one request and one answer, or lines of answers. */
export async function answerJson(
  client: LocalClient,
  slots: CallSlots,
  method: DescMethod,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const isStream = method.methodKind !== "unary";
  // Answers may be long in coming.
  request.socket.setTimeout(0);
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  let call: LocalCall<DescMethod> | undefined;
  let giveBack: (() => void) | undefined;
  try {
    giveBack = await slots.take(gone.signal);
    call = client.open(method, callerOf(request), gone.signal);
    // Those of a stream that is asked in both directions come while it is answered.
    if (method.methodKind === "bidi_streaming") await askedFirst(method, request, call);
    else await askedOnce(method, request, call);
    if (isStream) await answerLines(method, call, response);
    else await answerOne(method, call, response);
  } catch (error) {
    call?.cancel();
    if (!response.destroyed) refuse(response, error, method);
  } finally {
    giveBack?.();
  }
}

function callerOf({ headers, socket }: IncomingMessage): Caller {
  const { authorization } = headers;
  const metadata = authorization === undefined ? {} : { authorization };
  return { client: `${socket.remoteAddress ?? ""}:${socket.remotePort ?? 0}`, metadata };
}

const reading = { ignoreUnknownFields: true };

async function askedOnce(
  method: DescMethod,
  body: IncomingMessage,
  call: LocalCall<DescMethod>,
): Promise<void> {
  const values = new JsonValues();
  let asked: string | undefined;
  const late = setTimeout(() => body.destroy(new NoJson("the request did not come in time")), requestMs);
  try {
    for await (const piece of body as AsyncIterable<Buffer>) asked ??= values.take(piece, 1)[0];
  } finally {
    clearTimeout(late);
  }
  if (asked === undefined) values.end();
  call.send(parsed(method, asked ?? "{}"));
  call.end();
}

/** Resolves with the first request; the others follow as they come. */
async function askedFirst(
  method: DescMethod,
  body: IncomingMessage,
  call: LocalCall<DescMethod>,
): Promise<void> {
  const values = new JsonValues();
  const pieces = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  const next = async (): Promise<boolean> => {
    const { done, value } = await pieces.next();
    if (done === true) {
      values.end();
      // A watch goes on when nothing more is asked.
      if (method !== Watch.method.watch) call.end();
      return false;
    }
    for (const text of values.take(value)) call.send(parsed(method, text));
    return true;
  };
  const isOpen = await next();
  if (!isOpen) return;
  const follow = async () => {
    while (await next());
  };
  follow().catch(() => call.cancel());
}

/**
 * JavaScript would round whole numbers of more than 15 digits, and ids are such. Protobuf's JSON takes them
 * as text, too.
 */
function withLargeNumbersQuoted(text: string): string {
  return text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d{16,}(?![\d.eE])/gs, (found) =>
    found.startsWith('"') ? found : `"${found}"`,
  );
}

/** @throws NoJson */
function parsed(method: DescMethod, text: string): MessageShape<DescMethod["input"]> {
  try {
    return fromJsonString(method.input, withLargeNumbersQuoted(text), reading);
  } catch (error) {
    throw new NoJson((error as Error).message);
  }
}

async function answerOne(
  method: DescMethod,
  call: LocalCall<DescMethod>,
  response: ServerResponse,
): Promise<void> {
  let text = "{}";
  for await (const answer of call.answers) text = jsonOf(method, answer);
  const headers = { "Content-Type": "application/json", "Grpc-Metadata-Content-Type": "application/grpc" };
  response.writeHead(200, { ...headers, "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

async function answerLines(
  method: DescMethod,
  call: LocalCall<DescMethod>,
  response: ServerResponse,
): Promise<void> {
  for await (const answer of call.answers) {
    if (!response.headersSent) begin(response);
    if (!response.write(`{"result":${jsonOf(method, answer)}}\n`)) await drained(response);
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

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => void response.once("drain", resolve).once("close", resolve));
}

/** What Go escapes in JSON, so that a browser takes it for nothing else. */
const escaped: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

function jsonText(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, (character) => escaped[character]!);
}

function jsonOf(method: DescMethod, answer: MessageShape<DescMethod["output"]>): string {
  return jsonText(toJson(method.output, answer, { useProtoFieldName: true }));
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
