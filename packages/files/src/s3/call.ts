import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Files, FileView } from "../types.js";
import { type Chunked, unchunked } from "./chunks.js";
import { S3Error } from "./errors.js";
import { etagOf, BodySums } from "./metadata.js";

/** The limit of an XML body: enough for 1,000 keys, or 10,000 parts with their checksums. */
const xmlBytesMax = 2 * 2 ** 20;
/** S3's limit for one PUT. */
export const putBytesMax = 5 * 2 ** 30;

/** A request and the dependencies of all operations. */
export interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Includes the `x-amz-` headers that a presigned URL has in its query. */
  readonly files: Files;
  readonly bucket: string;
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  /** How the body is chunked, if it is `aws-chunked`. */
  readonly chunked: Chunked | undefined;
  /** The SHA-256 of the body in hex, if the signature contains it. */
  readonly sha256: string | undefined;
}

export function answer(
  { response }: Call,
  status: number,
  headers: OutgoingHttpHeaders = {},
  body = "",
): void {
  const type = body === "" ? {} : { "content-type": "application/xml" };
  response.writeHead(status, { ...type, "content-length": Buffer.byteLength(body), ...headers });
  response.end(body);
}

export function header({ request }: Call, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}

/**
 * The body. Its length and checksums are checked before its end is reported.
 * @param headers with the checksums of the body
 */
export function bodyOf(
  call: Call,
  bytesMax: number,
  headers: IncomingHttpHeaders = call.request.headers,
): { readonly bytes: AsyncIterable<Uint8Array>; readonly sums: BodySums } {
  const { request, chunked } = call;
  const sums = new BodySums(headers, call.sha256);
  const length = header(call, chunked === undefined ? "content-length" : "x-amz-decoded-content-length");
  if (length === undefined || !/^\d{1,16}$/.test(length))
    throw new S3Error("MissingContentLength", "the length of the body is not told");
  const expected = Number(length);
  if (expected > bytesMax) throw new S3Error("EntityTooLarge", `a body has at most ${bytesMax} bytes here`);
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    const trailer = new Map<string, string>();
    const source = chunked === undefined ? request : unchunked(request, chunked, trailer);
    let seen = 0;
    for await (const piece of source as AsyncIterable<Uint8Array>) {
      seen += piece.length;
      if (seen > expected) throw new S3Error("IncompleteBody", `the body has more than ${expected} bytes`);
      sums.add(piece);
      yield piece;
    }
    if (seen !== expected)
      throw new S3Error("IncompleteBody", `the body has ${seen} bytes, and not ${expected}`);
    sums.end(trailer);
  };
  return { bytes: bytes(), sums };
}

/**
 * The text of an XML body.
 * @throws S3Error
 */
export async function xmlTextOf(call: Call, headers?: IncomingHttpHeaders): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bodyOf(call, xmlBytesMax, headers).bytes) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

export async function fileAt({ files }: Call, path: string): Promise<FileView | undefined> {
  const entry = await files.entry(path);
  return entry?.kind === "file" ? entry : undefined;
}

/** Whether a list of ETags contains this one; `*` contains every ETag. */
export function hasEtag(list: string, etag: string): boolean {
  const bare = (text: string): string => text.trim().replace(/^W\//, "").replaceAll('"', "");
  return list.trim() === "*" || list.split(",").some((each) => bare(each) === bare(etag));
}

/**
 * What a change requires of its path, so that the request's conditions still hold when the change is made.
 */
export interface Condition {
  readonly ifMissing?: boolean;
  readonly ifVersion?: string;
}

/**
 * The conditions of a write, from `If-Match` and `If-None-Match`. The change itself checks them again.
 * @throws S3Error `PreconditionFailed`, `NoSuchKey`
 */
export async function conditionOf(call: Call, path: string): Promise<Condition> {
  const match = header(call, "if-match");
  const none = header(call, "if-none-match");
  if (match === undefined && none === undefined) return {};
  const file = await fileAt(call, path);
  if (none !== undefined && file !== undefined && hasEtag(none, etagOf(file)))
    throw new S3Error("PreconditionFailed", "If-None-Match: the object exists");
  if (match !== undefined && file === undefined)
    throw new S3Error("NoSuchKey", "If-Match: the object does not exist");
  if (match !== undefined && !hasEtag(match, etagOf(file!)))
    throw new S3Error("PreconditionFailed", "If-Match: the object has another ETag");
  return file === undefined ? { ifMissing: true } : { ifVersion: file.version };
}
