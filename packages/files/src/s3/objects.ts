import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { LeaseholdError } from "leasehold/common";
import type { Files, FileStat, FileView } from "../types.js";
import { piecesOf } from "../webdav/files-tree.js";
import { rangeOf } from "../webdav/headers.js";
import {
  answer,
  bodyOf,
  type Call,
  conditionOf,
  fileAt,
  hasEtag,
  header,
  putBytesMax,
  xmlTextOf,
} from "./call.js";
import { underCondition } from "./conditional.js";
import { S3Error, s3ErrorOf } from "./errors.js";
import { checkBucket, decodeStrictly, pathOfKey } from "./keys.js";
import { attributesOf, etagOf, objectHeaders, refuseUnsupported, replacing } from "./metadata.js";
import { childrenOf, documentIn, documentOf, elements, textOf, timeText, Xml } from "./xml.js";

/** The most keys in one DeleteObjects, and how many are removed concurrently. */
const deletedMax = 1_000;
const removalsAtOnce = 16;
/** The attribute of a folder that a client has put as an object. Such a folder stays when it is empty. */
export const markerAttribute = "s3.folder";

/** @throws S3Error `NoSuchBucket` */
export async function mustHaveBucket(files: Files, bucket: string): Promise<void> {
  const entry = await files.entry(checkBucket(bucket));
  if (entry?.kind !== "folder") throw new S3Error("NoSuchBucket", `there is no bucket ${bucket}`);
}

/** Handles GET and HEAD. */
export async function getObject(call: Call): Promise<void> {
  const { request, response, query } = call;
  if (query.has("partNumber"))
    throw new S3Error("NotImplemented", "parts of an object are not read by number");
  const { path, isFolder } = pathOfKey(call.bucket, call.key);
  const entry = await call.files.entry(path);
  if (isFolder && entry?.kind === "folder") {
    const stat = { path, size: 0, version: "folder", modifiedMs: entry.modifiedMs };
    return answer(call, 200, { ...objectHeaders(stat, false), "content-type": "application/x-directory" });
  }
  if (entry?.kind !== "file" || isFolder) {
    await mustHaveBucket(call.files, call.bucket);
    throw new S3Error("NoSuchKey", `there is no key ${call.key}`);
  }
  checkReadConditions(call, entry);
  const range =
    request.method === "GET" || request.headers.range !== undefined
      ? rangeOf(request.headers.range, entry.size)
      : undefined;
  const { start, end } = range ?? { start: 0, end: entry.size - 1 };
  const withSums = range === undefined && header(call, "x-amz-checksum-mode")?.toUpperCase() === "ENABLED";
  response.writeHead(range === undefined ? 200 : 206, {
    ...objectHeaders(entry, withSums),
    ...overrides(query),
    "content-length": end - start + 1,
    ...(range !== undefined && { "content-range": `bytes ${start}-${end}/${entry.size}` }),
  });
  if (request.method === "HEAD" || end < start) return void response.end();
  // An error cuts the response short: it has fewer bytes than its declared length, so that clients notice.
  await pipeline(Readable.from(piecesOf(entry, start, end - start + 1)), response);
}

/** Response headers that a signed request overrides. */
function overrides(query: ReadonlyMap<string, string>): Record<string, string> {
  const names = [
    "content-type",
    "content-language",
    "expires",
    "cache-control",
    "content-disposition",
    "content-encoding",
  ];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(`response-${name}`);
      if (value === undefined) return [];
      if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
        throw new S3Error("InvalidArgument", `response-${name} is no header`);
      return [[name, value] as const];
    }),
  );
}

function checkReadConditions(call: Call, file: FileStat, prefix = ""): void {
  const [match, none] = [header(call, `${prefix}if-match`), header(call, `${prefix}if-none-match`)];
  const since = dateIn(header(call, `${prefix}if-modified-since`));
  const until = dateIn(header(call, `${prefix}if-unmodified-since`));
  const [etag, seconds] = [etagOf(file), Math.floor(file.modifiedMs / 1_000) * 1_000];
  const isOld = match === undefined ? until !== undefined && seconds > until : !hasEtag(match, etag);
  if (isOld) throw new S3Error("PreconditionFailed", "the object has changed");
  const isSame = none === undefined ? since !== undefined && seconds <= since : hasEtag(none, etag);
  if (isSame)
    throw new S3Error(prefix === "" ? "NotModified" : "PreconditionFailed", "the object has not changed");
}

function dateIn(text: string | undefined): number | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}

export async function putObject(call: Call): Promise<void> {
  const { request, files, bucket, query } = call;
  const { headers } = request;
  refuseUnsupported(headers);
  const { path, isFolder } = pathOfKey(bucket, call.key);
  await mustHaveBucket(files, bucket);
  const attributes = attributesOf(headers, query);
  const { bytes, sums } = bodyOf(call, isFolder ? 0 : putBytesMax);
  if (isFolder) return putFolder(call, path, bytes);
  const condition = await conditionOf(call, path);
  const put = files.put(path, bytes, {
    ...condition,
    attributes: () => ({ ...attributes, ...sums.attributes }),
  });
  const stat = await underCondition(condition, path, put);
  answer(call, 200, { etag: etagOf(stat), ...sums.headers });
}

/** A key that ends with a slash names a folder. */
async function putFolder(call: Call, path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of bytes);
  const attributes = { [markerAttribute]: "" };
  try {
    await call.files.makeFolder(path, { attributes });
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== "FILE_EXISTS") throw error;
    if ((await call.files.entry(path))?.kind !== "folder")
      return underCondition({}, path, Promise.reject(error));
    await call.files.touch(path, { attributes });
  }
  answer(call, 200, { etag: etagOf({ version: "folder" }) });
}

export async function copyObject(call: Call): Promise<void> {
  const { request, files, bucket, query } = call;
  refuseUnsupported(request.headers);
  const { path, isFolder } = pathOfKey(bucket, call.key);
  await mustHaveBucket(files, bucket);
  const source = await sourceOf(call);
  if (isFolder) throw new S3Error("InvalidRequest", "a folder is no target of a copy");
  const directive = header(call, "x-amz-metadata-directive") ?? "COPY";
  if (directive !== "COPY" && directive !== "REPLACE")
    throw new S3Error("InvalidArgument", "x-amz-metadata-directive is COPY or REPLACE");
  const attributes =
    directive === "COPY" ? undefined : replacing(source.attributes, attributesOf(request.headers, query));
  if (header(call, "if-match") !== undefined)
    throw new S3Error("NotImplemented", "If-Match is no condition of a copy here");
  const { ifMissing = false } = await conditionOf(call, path);
  const ifVersion = source.version;
  if (source.path !== path) {
    const over = ifMissing ? "nothing" : "file";
    const copy = files.copy(source.path, path, { over, ifVersion, attributes });
    await underCondition({ ifMissing, ifVersion }, path, copy);
  } else {
    if (attributes === undefined)
      throw new S3Error("InvalidRequest", "an object is copied to itself only with other metadata");
    await underCondition(
      { ifVersion },
      path,
      files.touch(path, { attributes, modifiedMs: Date.now(), ifVersion }),
    );
  }
  const stat = await files.stat(path);
  const result = elements([
    ["LastModified", timeText(stat.modifiedMs)],
    ["ETag", etagOf(stat)],
  ]);
  answer(call, 200, {}, documentOf("CopyObjectResult", result));
}

/**
 * The object named by `x-amz-copy-source`.
 * @throws S3Error
 */
export async function sourceOf(call: Call): Promise<FileView> {
  const text = header(call, "x-amz-copy-source") ?? "";
  if (text.includes("?")) throw new S3Error("NotImplemented", "there are no versions to copy from");
  const [bucket = "", ...parts] = decodeStrictly(text).replace(/^\//, "").split("/");
  const { path } = pathOfKey(bucket, parts.join("/"));
  const file = await fileAt(call, path);
  if (file === undefined) {
    await mustHaveBucket(call.files, bucket);
    throw new S3Error("NoSuchKey", `there is no key ${parts.join("/")} to copy`);
  }
  checkReadConditions(call, file, "x-amz-copy-source-");
  return file;
}

export async function deleteObject(call: Call): Promise<void> {
  const { files, bucket, key } = call;
  await mustHaveBucket(files, bucket);
  const match = header(call, "if-match");
  await remove(call, key, match);
  answer(call, 204);
}

async function remove(call: Call, key: string, match: string | undefined): Promise<void> {
  const { files, bucket } = call;
  const { path, isFolder } = pathOfKey(bucket, key);
  const entry = await files.entry(path);
  if (match !== undefined && (entry?.kind !== "file" || !hasEtag(match, etagOf(entry))))
    throw new S3Error("PreconditionFailed", "If-Match: the object has another ETag");
  // Only the folder's mark is an object. Removing it leaves the folder and its contents.
  if (entry === undefined || (entry.kind === "folder") !== isFolder) return;
  const ifVersion = entry.kind === "file" && match !== undefined ? entry.version : undefined;
  try {
    await files.remove(path, { ifVersion, pruneIn: bucket });
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    if (error.code === "FILE_CHANGED")
      throw new S3Error("PreconditionFailed", "the object has changed meanwhile");
    // Another call came first, or the folder isn't empty.
    if (error.code !== "FILE_NOT_FOUND" && error.code !== "FILE_EXISTS") throw error;
  }
}

/** DeleteObjects: removes each key by a change of its own. */
export async function deleteObjects(call: Call): Promise<void> {
  const { bucket, files } = call;
  await mustHaveBucket(files, bucket);
  const wanted = documentIn(await xmlTextOf(call), "Delete");
  const objects = childrenOf(wanted, "Object");
  if (objects.length === 0 || objects.length > deletedMax)
    throw new S3Error("MalformedXML", `a request deletes 1 to ${deletedMax} keys`);
  const isQuiet = textOf(wanted, "Quiet") === "true";
  const results: string[] = [];
  const todo = objects.entries();
  const work = async (): Promise<void> => {
    for (const [at, object] of todo) {
      const key = childrenOf(object, "Key")[0]?.text ?? "";
      const result = await removed(call, key, textOf(object, "ETag"));
      results[at] = result.isDone && isQuiet ? "" : result.xml;
    }
  };
  await Promise.all(Array.from({ length: removalsAtOnce }, work));
  answer(call, 200, {}, documentOf("DeleteResult", new Xml(results.join(""))));
}

async function removed(call: Call, key: string, match: string | undefined) {
  try {
    await remove(call, key, match);
    return { isDone: true, xml: elements([["Deleted", elements([["Key", key]])]]).text };
  } catch (error) {
    const known = s3ErrorOf(error);
    if (known === undefined) throw error;
    const fields = elements([
      ["Key", key],
      ["Code", known.code],
      ["Message", known.message],
    ]);
    return { isDone: false, xml: elements([["Error", fields]]).text };
  }
}
