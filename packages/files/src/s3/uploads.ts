import { randomUUID } from "node:crypto";
import { LeaseholdError } from "leasehold/common";
import type { Attributes, Files, FileStat, FolderStat } from "../types.js";
import { piecesOf } from "../webdav/files-tree.js";
import { answer, bodyOf, type Call, conditionOf, header, putBytesMax, xmlTextOf } from "./call.js";
import { underCondition } from "./conditional.js";
import { checksumHeader, checksums } from "./checksums.js";
import { combined, isCombined, type SummedPart } from "./combined-checksums.js";
import { S3Error } from "./errors.js";
import { uploadsFolder } from "../names/uploads-folder.js";
import { encodeStrictly, pathOfKey } from "./keys.js";
import { limitOf } from "./listing.js";
import {
  attributesOf,
  BodySums,
  etagAttribute,
  etagOf,
  etagOfParts,
  refuseUnsupported,
  sumAttribute,
} from "./metadata.js";
import { mustHaveBucket, sourceOf } from "./objects.js";
import { childrenOf, documentIn, documentOf, elements, textOf, timeText, Xml } from "./xml.js";

/** S3's limits: the parts of an upload, and the least size of all parts but the last. */
const partsMax = 10_000;
const partBytesMin = 5 * 2 ** 20;
/** The most uploads at a time. Each is a folder. */
const uploadsMax = 1_000;
/** The age at which an upload that has not been completed is removed, ms. */
export const uploadMsMax = 7 * 86_400_000;

const bucketAttribute = "s3.bucket";
const keyAttribute = "s3.key";
/** The attributes for the object. */
const objectPrefix = "s3.object.";

const folderOf = (upload: string): string => `${uploadsFolder}/${upload}`;
const nameOfPart = (number: number): string => String(number).padStart(5, "0");

/**
 * Creates a folder for the upload, with a file for each part. So all nodes see the upload, and it survives a
 * restart.
 */
export async function createUpload(call: Call): Promise<void> {
  const { files, bucket, key, request, query } = call;
  refuseUnsupported(request.headers);
  const { isFolder } = pathOfKey(bucket, key);
  if (isFolder) throw new S3Error("InvalidRequest", "a folder is not uploaded");
  await mustHaveBucket(files, bucket);
  const open = await uploadsPage(files, undefined);
  if (open.next !== undefined || open.entries.length >= uploadsMax)
    throw new S3Error("SlowDown", `there are ${uploadsMax} uploads that are not completed`);
  const upload = randomUUID().replaceAll("-", "");
  const object = Object.entries(attributesOf(request.headers, query));
  await files.makeFolder(folderOf(upload), {
    attributes: {
      [bucketAttribute]: bucket,
      [keyAttribute]: key,
      ...Object.fromEntries(object.map(([name, value]) => [objectPrefix + name, value])),
    },
  });
  const result = elements([
    ["Bucket", bucket],
    ["Key", key],
    ["UploadId", upload],
  ]);
  answer(call, 200, {}, documentOf("InitiateMultipartUploadResult", result));
}

/**
 * The folder of the upload named in the query.
 * @throws S3Error `NoSuchUpload`
 */
async function uploadOf({ files, bucket, key, query }: Call): Promise<FolderStat & { readonly id: string }> {
  const id = query.get("uploadId") ?? "";
  const folder = /^[0-9a-f]{32}$/.test(id) ? await files.entry(folderOf(id)) : undefined;
  const { attributes = {} } = folder ?? {};
  const isRight = attributes[bucketAttribute] === bucket && attributes[keyAttribute] === key;
  if (folder?.kind !== "folder" || !isRight)
    throw new S3Error("NoSuchUpload", "there is no such upload: it was completed, aborted, or is too old");
  return { ...folder, id };
}

/** Makes a change in an upload that may have been completed or aborted meanwhile. */
async function inUpload<T>(change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== "FILE_NOT_FOUND") throw error;
    throw new S3Error("NoSuchUpload", "the upload was completed or aborted meanwhile");
  }
}

export async function uploadPart(call: Call): Promise<void> {
  const { files, request } = call;
  refuseUnsupported(request.headers);
  const path = `${folderOf((await uploadOf(call)).id)}/${nameOfPart(partNumberIn(call))}`;
  const { bytes, sums } = bodyOf(call, putBytesMax);
  const stat = await inUpload(
    files.put(path, bytes, { makeFolders: false, attributes: () => sums.attributes }),
  );
  answer(call, 200, { etag: etagOf(stat), ...sums.headers });
}

function partNumberIn({ query }: Call): number {
  const text = query.get("partNumber") ?? "";
  if (/^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= partsMax) return Number(text);
  throw new S3Error("InvalidArgument", `partNumber is 1 to ${partsMax}`);
}

/** UploadPartCopy. The bytes are read and written, because the part needs an MD5 of its own. */
export async function copyPart(call: Call): Promise<void> {
  const { files } = call;
  const path = `${folderOf((await uploadOf(call)).id)}/${nameOfPart(partNumberIn(call))}`;
  const source = await sourceOf(call);
  const { start, end } = sourceRange(header(call, "x-amz-copy-source-range"), source.size);
  if (end - start + 1 > putBytesMax) throw new S3Error("EntityTooLarge", "the part is too large");
  const sums = new BodySums({}, undefined);
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of piecesOf(source, start, end - start + 1)) {
      sums.add(piece);
      yield piece;
    }
    sums.end(new Map());
  };
  const stat = await inUpload(
    files.put(path, bytes(), { makeFolders: false, attributes: () => sums.attributes }),
  );
  const result = elements([
    ["LastModified", timeText(stat.modifiedMs)],
    ["ETag", etagOf(stat)],
  ]);
  answer(call, 200, {}, documentOf("CopyPartResult", result));
}

function sourceRange(text: string | undefined, size: number) {
  if (text === undefined) return { start: 0, end: size - 1 };
  const match = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(text);
  const [start, end] = [Number(match?.[1]), Number(match?.[2])];
  if (match === null || !(start <= end && end < size))
    throw new S3Error("InvalidArgument", `x-amz-copy-source-range is within ${size} bytes`);
  return { start, end };
}

/** The versions and MD5s of the parts, by part number. */
async function partsOf(files: Files, upload: string): Promise<Map<number, FileStat>> {
  const parts = new Map<number, FileStat>();
  for (let after: string | undefined; ;) {
    const { entries, next } = await inUpload(files.children(folderOf(upload), { after }));
    for (const entry of entries) {
      const number = Number(entry.path.slice(entry.path.lastIndexOf("/") + 1));
      if (entry.kind === "file" && number >= 1 && number <= partsMax) parts.set(number, entry);
    }
    if (next === undefined || parts.size > partsMax) return parts;
    after = next;
  }
}

export async function listParts(call: Call): Promise<void> {
  const { files, bucket, key, query } = call;
  const { id } = await uploadOf(call);
  const limit = limitOf(query.get("max-parts"), "max-parts");
  const after = Number(query.get("part-number-marker") ?? 0);
  const all = [...(await partsOf(files, id))].filter(([number]) => number > after);
  const shown = all.slice(0, limit);
  const parts = shown.map(([number, stat]) =>
    elements([
      [
        "Part",
        elements([
          ["PartNumber", number],
          ["LastModified", timeText(stat.modifiedMs)],
          ["ETag", etagOf(stat)],
          ["Size", stat.size],
        ]),
      ],
    ]),
  );
  const head = elements([
    ["Bucket", bucket],
    ["Key", key],
    ["UploadId", id],
    ["StorageClass", "STANDARD"],
    ["PartNumberMarker", after],
    ["NextPartNumberMarker", shown.at(-1)?.[0] ?? after],
    ["MaxParts", limit],
    ["IsTruncated", shown.length < all.length],
  ]);
  answer(
    call,
    200,
    {},
    documentOf("ListPartsResult", new Xml(head.text + parts.map(({ text }) => text).join(""))),
  );
}

async function uploadsPage(files: Files, after: string | undefined) {
  try {
    return await files.children(uploadsFolder, { after });
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== "FILE_NOT_FOUND") throw error;
    return { entries: [] };
  }
}

export async function listUploads(call: Call): Promise<void> {
  const { files, bucket, query } = call;
  await mustHaveBucket(files, bucket);
  if ((query.get("delimiter") ?? "") !== "")
    throw new S3Error("NotImplemented", "uploads are listed without delimiter");
  const prefix = query.get("prefix") ?? "";
  const limit = limitOf(query.get("max-uploads"), "max-uploads");
  const [keyMarker, idMarker] = [query.get("key-marker") ?? "", query.get("upload-id-marker") ?? ""];
  const encode = query.get("encoding-type") === "url";
  const text = (name: string): string => (encode ? name.split("/").map(encodeStrictly).join("/") : name);
  const all = (await uploadsPage(files, undefined)).entries
    .flatMap((entry) => {
      const key = entry.attributes?.[keyAttribute] ?? "";
      const id = entry.path.slice(entry.path.lastIndexOf("/") + 1);
      const isWanted = entry.attributes?.[bucketAttribute] === bucket && key.startsWith(prefix);
      return isWanted ? [{ key, id, startedMs: entry.modifiedMs }] : [];
    })
    .filter(({ key, id }) => key > keyMarker || (key === keyMarker && idMarker !== "" && id > idMarker))
    .sort((one, other) => (one.key < other.key || (one.key === other.key && one.id < other.id) ? -1 : 1));
  const shown = all.slice(0, limit);
  const uploads = shown.map(({ key, id, startedMs }) =>
    elements([
      [
        "Upload",
        elements([
          ["Key", text(key)],
          ["UploadId", id],
          ["StorageClass", "STANDARD"],
          ["Initiated", timeText(startedMs)],
        ]),
      ],
    ]),
  );
  const isTruncated = shown.length < all.length;
  const last = isTruncated ? shown.at(-1) : undefined;
  const head = elements([
    ["Bucket", bucket],
    ["KeyMarker", text(keyMarker)],
    ["UploadIdMarker", idMarker],
    ["NextKeyMarker", last && text(last.key)],
    ["NextUploadIdMarker", last?.id],
    ["Prefix", text(prefix)],
    ["EncodingType", encode ? "url" : undefined],
    ["MaxUploads", limit],
    ["IsTruncated", isTruncated],
  ]);
  const body = new Xml(head.text + uploads.map((each) => each.text).join(""));
  answer(call, 200, {}, documentOf("ListMultipartUploadsResult", body));
}

export async function abortUpload(call: Call): Promise<void> {
  const { id } = await uploadOf(call);
  await inUpload(call.files.remove(folderOf(id), { recursive: true }));
  answer(call, 204);
}

/** CompleteMultipartUpload: a single change, which names the parts' contents and removes the upload. */
export async function completeUpload(call: Call): Promise<void> {
  const { files, bucket, key } = call;
  const { path } = pathOfKey(bucket, key);
  // Any other checksums in the headers are the object's.
  const md5 = header(call, "content-md5");
  const wanted = wantedParts(await xmlTextOf(call, md5 === undefined ? {} : { "content-md5": md5 }));
  const done = await completedBefore(call, path);
  if (done !== undefined) return complete(call, done);
  const folder = await uploadOf(call);
  const parts = chosenParts(await partsOf(files, folder.id), wanted);
  const sums = await sumsOfObject(call, parts);
  const etag = etagOfParts(parts.map(({ attributes }) => attributes![etagAttribute]!));
  const condition = await conditionOf(call, path);
  const names = parts.map(
    ({ path: part, version }) => [part.slice(part.lastIndexOf("/") + 1), version] as const,
  );
  const how = {
    ...condition,
    attributes: {
      ...objectAttributes(folder.attributes),
      ...sums,
      [etagAttribute]: etag,
      [uploadAttribute]: folder.id,
    },
  };
  const composed = files.compose(path, folder.id, folderOf(folder.id), names, how);
  try {
    complete(call, await inUpload(underCondition(condition, path, composed)));
  } catch (error) {
    // Only the conditions on the parts' versions can fail without an error of their own.
    if (!(error instanceof S3Error) || error.code !== "SlowDown") throw error;
    throw new S3Error("InvalidPart", "a part was replaced meanwhile");
  }
}

/** The id of the upload that made the object, for clients that repeat the request. */
const uploadAttribute = "content.upload";

async function completedBefore({ files, query }: Call, path: string): Promise<FileStat | undefined> {
  const id = query.get("uploadId") ?? "";
  const entry = await files.entry(path);
  return entry?.kind === "file" && id !== "" && entry.attributes?.[uploadAttribute] === id
    ? entry
    : undefined;
}

function complete(call: Call, stat: FileStat): void {
  const { bucket, key } = call;
  const result = elements([
    ["Location", `/${bucket}/${key.split("/").map(encodeStrictly).join("/")}`],
    ["Bucket", bucket],
    ["Key", key],
    ["ETag", etagOf(stat)],
    ...[...checksums.keys()].map(
      (name) => [sumElement(name), stat.attributes?.[sumAttribute + name]] as const,
    ),
  ]);
  answer(call, 200, {}, documentOf("CompleteMultipartUploadResult", result));
}

function objectAttributes(attributes: Attributes = {}): Record<string, string> {
  const all = Object.entries(attributes).filter(([name]) => name.startsWith(objectPrefix));
  return Object.fromEntries(all.map(([name, value]) => [name.slice(objectPrefix.length), value]));
}

interface WantedPart {
  readonly number: number;
  readonly etag: string;
  /** The part's checksums, by attribute. */
  readonly sums: ReadonlyMap<string, string>;
}

const sumElement = (name: string): string => `Checksum${name.toUpperCase()}`;

/**
 * The object's checksums, as far as they can be computed from its parts' checksums: CRCs of the whole. A
 * checksum sent by the client is compared, even if it is a checksum of the parts' checksums (`…-N`).
 * @throws S3Error `BadDigest`
 */
async function sumsOfObject(call: Call, parts: readonly FileStat[]): Promise<Record<string, string>> {
  const sums: Record<string, string> = {};
  for (const name of checksums.keys()) {
    const expected = header(call, checksumHeader + name);
    const all = parts.flatMap(({ attributes, size }) => {
      const sum = attributes?.[sumAttribute + name];
      return sum === undefined ? [] : [{ sum, bytes: size }];
    });
    const isKnown = all.length === parts.length;
    const isOfParts = expected?.includes("-") === true;
    const whole = isKnown && isCombined(name) ? await combined(name, all) : undefined;
    const found = isOfParts && isKnown ? overParts(name, all) : whole;
    if (expected !== undefined && expected !== found)
      throw new S3Error("BadDigest", `the object's ${name} is not ${expected}, or its parts do not tell it`);
    if (whole !== undefined) sums[sumAttribute + name] = whole;
  }
  return sums;
}

function overParts(name: string, parts: readonly SummedPart[]): string {
  const sum = checksums.get(name)!();
  for (const part of parts) sum.add(Buffer.from(part.sum, "base64"));
  return `${sum.end()}-${parts.length}`;
}

/** @throws S3Error `MalformedXML`, `InvalidPartOrder` */
function wantedParts(text: string): WantedPart[] {
  const parts = childrenOf(documentIn(text, "CompleteMultipartUpload"), "Part").map((part) => ({
    number: Number(textOf(part, "PartNumber") ?? NaN),
    etag: (textOf(part, "ETag") ?? "").replaceAll('"', ""),
    sums: new Map(
      [...checksums.keys()].flatMap((name) => {
        const sum = textOf(part, sumElement(name));
        return sum === undefined ? [] : [[sumAttribute + name, sum] as const];
      }),
    ),
  }));
  if (parts.length === 0 || parts.length > partsMax || parts.some(({ number }) => !Number.isInteger(number)))
    throw new S3Error("MalformedXML", `an upload is completed with 1 to ${partsMax} parts`);
  for (const [at, { number }] of parts.entries())
    if (at > 0 && number <= parts[at - 1]!.number)
      throw new S3Error("InvalidPartOrder", "the parts are not in ascending order");
  return parts;
}

/** @throws S3Error `InvalidPart`, `EntityTooSmall` */
function chosenParts(there: ReadonlyMap<number, FileStat>, wanted: readonly WantedPart[]): FileStat[] {
  return wanted.map(({ number, etag, sums }, at) => {
    const part = there.get(number);
    if (part?.attributes?.[etagAttribute] === undefined || part.attributes[etagAttribute] !== etag)
      throw new S3Error("InvalidPart", `part ${number} was not uploaded, or has another ETag`);
    for (const [name, sum] of sums)
      if (part.attributes[name] !== sum)
        throw new S3Error("InvalidPart", `part ${number} has another ${name}`);
    if (at < wanted.length - 1 && part.size < partBytesMin)
      throw new S3Error("EntityTooSmall", `part ${number} has less than ${partBytesMin} bytes`);
    return part;
  });
}

/** Removes uploads that are too old. */
export async function collectUploads(files: Files, nowMs: number): Promise<void> {
  const { entries } = await uploadsPage(files, undefined);
  for (const { path, modifiedMs, kind } of entries)
    if (kind === "folder" && nowMs - modifiedMs > uploadMsMax)
      await files.remove(path, { recursive: true }).catch(() => undefined);
}
