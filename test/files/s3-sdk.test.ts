import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import {
  ChecksumAlgorithm,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLocationCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListMultipartUploadsCommand,
  ListObjectsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  UploadPartCopyCommand,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { serveS3 } from "../../packages/files/src/s3/server.js";
import type { FrontServer } from "../../packages/files/src/webdav/listen.js";
import { MemoryFiles } from "../support/memory-files.js";

/** The AWS SDK, used as programs use it, against files in memory. */

let files: MemoryFiles;
let server: FrontServer;
let s3: S3Client;
const faults: string[] = [];
const Bucket = "a-bucket";
const md5 = (bytes: Uint8Array | string) => createHash("md5").update(bytes).digest("hex");

const clientOf = (url: string, secret = "secret-4711", more = {}) =>
  new S3Client({
    endpoint: url,
    region: "eu-west-1",
    forcePathStyle: true,
    credentials: { accessKeyId: "me", secretAccessKey: secret },
    maxAttempts: 1,
    ...more,
  });

beforeAll(async () => {
  files = new MemoryFiles();
  server = await serveS3(files, { credentials: "me:secret-4711", fault: (text) => faults.push(text) });
  s3 = clientOf(server.url);
  await s3.send(new CreateBucketCommand({ Bucket }));
});
afterEach(() => {
  if (faults.length > 0) throw new Error(faults.join("\n"));
});
afterAll(async () => {
  s3.destroy();
  await server.close();
});

const put = (Key: string, Body: Uint8Array | string = Key, more = {}) =>
  s3.send(new PutObjectCommand({ Bucket, Key, Body, ...more }));

async function get(Key: string, more = {}): Promise<string> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key, ...more }));
  return (await Body!.transformToByteArray().then((bytes) => Buffer.from(bytes))).toString("latin1");
}

const nameOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    ({ name }: Error) => name,
  );

describe("buckets", () => {
  test("are made, found, listed, and removed when they are empty", async () => {
    const name = { Bucket: "other.bucket-1" };
    await s3.send(
      new CreateBucketCommand({ ...name, CreateBucketConfiguration: { LocationConstraint: "EU" } }),
    );
    expect(await nameOf(s3.send(new CreateBucketCommand(name)))).toBe("BucketAlreadyOwnedByYou");
    await s3.send(new HeadBucketCommand(name));
    const { Buckets = [] } = await s3.send(new ListBucketsCommand());
    expect(Buckets.map((each) => each.Name)).toEqual([Bucket, name.Bucket]);
    expect((await s3.send(new GetBucketLocationCommand(name))).LocationConstraint).toBeUndefined();
    await s3.send(new PutObjectCommand({ ...name, Key: "a/b/c", Body: "1" }));
    expect(await nameOf(s3.send(new DeleteBucketCommand(name)))).toBe("BucketNotEmpty");
    await s3.send(new DeleteObjectCommand({ ...name, Key: "a/b/c" }));
    await s3.send(new PutObjectCommand({ ...name, Key: "marker/", Body: "" }));
    await s3.send(new DeleteBucketCommand(name));
    expect(await nameOf(s3.send(new HeadBucketCommand(name)))).toBe("NotFound");
    expect(await nameOf(s3.send(new ListObjectsV2Command(name)))).toBe("NoSuchBucket");
    for (const wrong of ["Upper", "under_score", ".s3-uploads", "x"])
      expect(await nameOf(s3.send(new CreateBucketCommand({ Bucket: wrong })))).toMatch(
        /InvalidBucketName|Error/,
      );
  });
});

describe("objects", () => {
  test("are put and read with their ETag, headers and metadata", async () => {
    const answer = await put("docs/ä & b+c.txt", "content", {
      ContentType: "text/plain",
      CacheControl: "no-cache",
      ContentDisposition: "attachment",
      ContentEncoding: "identity",
      Metadata: { one: "1", "two-words": "x y" },
    });
    expect(answer.ETag).toBe(`"${md5("content")}"`);
    const found = await s3.send(
      new GetObjectCommand({ Bucket, Key: "docs/ä & b+c.txt", ChecksumMode: "ENABLED" }),
    );
    expect(await found.Body!.transformToString()).toBe("content");
    expect(found).toMatchObject({
      ETag: answer.ETag,
      ContentType: "text/plain",
      CacheControl: "no-cache",
      ContentDisposition: "attachment",
      ContentEncoding: "identity",
      ContentLength: 7,
      Metadata: { one: "1", "two-words": "x y" },
      ChecksumCRC32: answer.ChecksumCRC32,
    });
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: "docs/ä & b+c.txt" }));
    expect(head).toMatchObject({ ContentLength: 7, ETag: answer.ETag, Metadata: { one: "1" } });
    await put("docs/ä & b+c.txt", "again");
    const again = await s3.send(new HeadObjectCommand({ Bucket, Key: "docs/ä & b+c.txt" }));
    expect(again).toMatchObject({ ContentType: "application/octet-stream", Metadata: {} });
    await s3.send(new DeleteObjectCommand({ Bucket, Key: "docs/ä & b+c.txt" }));
    expect(await nameOf(get("docs/ä & b+c.txt"))).toBe("NoSuchKey");
    expect(await nameOf(s3.send(new HeadObjectCommand({ Bucket, Key: "none" })))).toBe("NotFound");
    expect(await nameOf(s3.send(new DeleteObjectCommand({ Bucket, Key: "none" })))).toBe("done");
    expect(files.paths).toEqual([]);
    expect(await files.entry(`${Bucket}/docs`)).toBeUndefined();
  });

  test.each(Object.values(ChecksumAlgorithm).filter((each) => !/MD5|XXHASH|SHA512/.test(each)))(
    "are checked by %s, in one piece and as streams of chunks",
    async (ChecksumAlgorithm) => {
      const bytes = randomBytes(300_001);
      await put("sum/one", bytes, { ChecksumAlgorithm });
      const stream = Readable.from([bytes.subarray(0, 100_000), bytes.subarray(100_000)]);
      await put("sum/two", stream as never, { ChecksumAlgorithm, ContentLength: bytes.length });
      for (const Key of ["sum/one", "sum/two"]) {
        const answer = await s3.send(new GetObjectCommand({ Bucket, Key, ChecksumMode: "ENABLED" }));
        expect(Buffer.from(await answer.Body!.transformToByteArray()).equals(bytes)).toBe(true);
        expect(answer).toHaveProperty(`Checksum${ChecksumAlgorithm}`);
      }
      const field = `Checksum${ChecksumAlgorithm}`;
      const size = { CRC32: 4, CRC32C: 4, CRC64NVME: 8, SHA1: 20, SHA256: 32 }[ChecksumAlgorithm as "CRC32"];
      const wrong = { [field]: Buffer.alloc(size).toString("base64") };
      expect(await nameOf(put("sum/three", bytes, wrong))).toBe("BadDigest");
      expect(files.paths).not.toContain(`${Bucket}/sum/three`);
    },
  );

  test("are read in ranges and under conditions", async () => {
    const { ETag } = await put("r", "0123456789");
    expect(await get("r", { Range: "bytes=2-4" })).toBe("234");
    expect(await get("r", { Range: "bytes=-3" })).toBe("789");
    expect(await get("r", { Range: "bytes=8-100" })).toBe("89");
    expect(await nameOf(get("r", { Range: "bytes=10-" }))).toBe("InvalidRange");
    expect(await get("r", { IfMatch: ETag })).toBe("0123456789");
    expect(await nameOf(get("r", { IfMatch: '"x"' }))).toBe("PreconditionFailed");
    expect(await nameOf(get("r", { IfNoneMatch: ETag }))).toBe("Unknown");
    expect(await nameOf(get("r", { IfModifiedSince: new Date(2_000_000_000_000) }))).toBe("Unknown");
    expect(await nameOf(get("r", { IfUnmodifiedSince: new Date(0) }))).toBe("PreconditionFailed");
  });

  test("are written under conditions: of ten at once, one creates and one replaces", async () => {
    const results = (writes: readonly Promise<unknown>[]) => Promise.all(writes.map(nameOf));
    const creates = Array.from({ length: 10 }, (_, at) => put("c", `create ${at}`, { IfNoneMatch: "*" }));
    const created = await results(creates);
    expect(created.filter((name) => name === "done")).toHaveLength(1);
    expect(new Set(created)).toEqual(new Set(["done", "PreconditionFailed"]));
    const { ETag } = await s3.send(new HeadObjectCommand({ Bucket, Key: "c" }));
    const replaced = await results(
      Array.from({ length: 10 }, (_, at) => put("c", `replace ${at}`, { IfMatch: ETag })),
    );
    expect(replaced.filter((name) => name === "done")).toHaveLength(1);
    expect(await get("c")).toBe(`replace ${replaced.indexOf("done")}`);
    expect(await nameOf(put("missing", "x", { IfMatch: ETag }))).toBe("NoSuchKey");
    const remove = (IfMatch: string) =>
      nameOf(s3.send(new DeleteObjectCommand({ Bucket, Key: "c", IfMatch })));
    expect(await remove(ETag!)).toBe("PreconditionFailed");
    expect(await remove(`"${md5(await get("c"))}"`)).toBe("done");
  });

  test("are copied with their metadata or with new metadata, also onto themselves", async () => {
    await put("from", "content", { Metadata: { a: "1" }, ContentType: "text/a" });
    const copy = (Key: string, more = {}) =>
      s3.send(new CopyObjectCommand({ Bucket, Key, CopySource: `${Bucket}/from`, ...more }));
    const head = (Key: string) => s3.send(new HeadObjectCommand({ Bucket, Key }));
    expect((await copy("to/one")).CopyObjectResult!.ETag).toBe(`"${md5("content")}"`);
    expect(await head("to/one")).toMatchObject({ Metadata: { a: "1" }, ContentType: "text/a" });
    await copy("to/two", { MetadataDirective: "REPLACE", Metadata: { b: "2" } });
    expect((await head("to/two")).Metadata).toEqual({ b: "2" });
    expect(await get("to/two")).toBe("content");
    expect(await nameOf(copy("from"))).toBe("InvalidRequest");
    await copy("from", { MetadataDirective: "REPLACE", Metadata: { c: "3" } });
    expect(await head("from")).toMatchObject({ Metadata: { c: "3" }, ETag: `"${md5("content")}"` });
    expect(await nameOf(copy("to/one", { IfNoneMatch: "*" }))).toBe("PreconditionFailed");
    expect(await nameOf(copy("to/3", { CopySourceIfMatch: '"x"' }))).toBe("PreconditionFailed");
    expect(await nameOf(copy("to/3", { CopySource: `${Bucket}/none` }))).toBe("NoSuchKey");
  });

  test("whose keys are not valid names are refused, and folders are keys that end with a slash", async () => {
    await put("f/", "");
    expect(await s3.send(new HeadObjectCommand({ Bucket, Key: "f/" }))).toMatchObject({ ContentLength: 0 });
    await put("f/a");
    expect(await nameOf(put("f", "x"))).toBe("KeyConflict");
    expect(await nameOf(put("f/a/b", "x"))).toBe("KeyConflict");
    expect(await nameOf(put("g/", "x"))).toBe("EntityTooLarge");
    for (const key of ["a//b", "a/./b", "a/../b", "/a", "a\u0001"])
      expect([key, await nameOf(put(key))]).toEqual([key, expect.stringMatching(/InvalidArgument/)]);
    const longest = "k".repeat(480 - Bucket.length - 1);
    expect(await nameOf(put(longest))).toBe("done");
    expect(await nameOf(put(`${longest}k`))).toBe("KeyTooLongError");
    expect(await nameOf(put("meta", "", { Metadata: { k: "m".repeat(2_047) } }))).toBe("done");
    expect(await nameOf(put("meta", "", { Metadata: { k: "m".repeat(2_048) } }))).toBe("MetadataTooLarge");
    const many = { Metadata: Object.fromEntries(Array.from({ length: 63 }, (_, at) => [`${at}`, "m"])) };
    expect(await nameOf(put("meta", "", many))).toBe("MetadataTooLarge");
    await s3.send(new DeleteObjectCommand({ Bucket, Key: "f/a" }));
    expect(await files.entry(`${Bucket}/f`)).toMatchObject({ kind: "folder" });
    await s3.send(new DeleteObjectCommand({ Bucket, Key: "f/" }));
    expect(await files.entry(`${Bucket}/f`)).toBeUndefined();
    expect(await nameOf(put("tagged", "x", { Tagging: "a=b" }))).toBe("NotImplemented");
  });

  test("that were created without S3 have an ETag that is not an MD5, and conditions accept it", async () => {
    await files.set(`${Bucket}/other`, "by WebDAV");
    const { ETag } = await s3.send(new HeadObjectCommand({ Bucket, Key: "other" }));
    expect(ETag).toMatch(/-0"$/);
    await files.set(`${Bucket}/other`, "again");
    expect(await nameOf(put("other", "x", { IfMatch: ETag }))).toBe("PreconditionFailed");
    await put("other", "by S3", { Metadata: { a: "1" } });
    await files.set(`${Bucket}/other`, "by WebDAV");
    const after = await s3.send(new HeadObjectCommand({ Bucket, Key: "other" }));
    expect([after.ETag, after.Metadata]).toEqual([expect.stringMatching(/-0"$/), {}]);
  });
});

describe("lists", () => {
  test("10,000 keys are listed by prefix and delimiter, in pages, in their order", async () => {
    const name = "listed";
    await s3.send(new CreateBucketCommand({ Bucket: name }));
    const keys = Array.from(
      { length: 10_000 },
      (_, at) => `d${at % 100}/e ${at % 7}/${String(at).padStart(5, "0")}`,
    );
    keys.push("a", "d1", "d1.x", "z");
    for (const key of keys.filter((each) => each !== "d1")) await files.set(`${name}/${key}`, "");
    keys.splice(keys.indexOf("d1"), 1);
    const all = async (how: {
      Prefix?: string;
      Delimiter?: string;
      MaxKeys?: number;
      StartAfter?: string;
    }) => {
      const found: string[] = [];
      for (let ContinuationToken: string | undefined, pages = 0; ; pages += 1) {
        const page = await s3.send(new ListObjectsV2Command({ Bucket: name, ContinuationToken, ...how }));
        found.push(
          ...(page.Contents ?? []).map((each) => each.Key!),
          ...(page.CommonPrefixes ?? []).map((each) => each.Prefix!),
        );
        expect(page.KeyCount).toBeLessThanOrEqual(how.MaxKeys ?? 1_000);
        if (page.IsTruncated !== true) return found;
        expect(pages).toBeLessThan(2_000);
        ContinuationToken = page.NextContinuationToken;
      }
    };
    const wanted = (prefix: string, delimiter: string): string[] => {
      const below = keys.filter((key) => key.startsWith(prefix));
      const cut = (key: string): string => {
        const at = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
        return at < 0 ? key : key.slice(0, at + 1);
      };
      return [...new Set(below.map(cut))].sort();
    };
    for (const [Prefix, Delimiter] of [
      ["", ""],
      ["", "/"],
      ["d1", "/"],
      ["d1/", "/"],
      ["d1/e", ""],
      ["d1/e 3/", "/"],
      ["no/", "/"],
    ] as const)
      expect([Prefix, Delimiter, (await all({ Prefix, Delimiter })).sort()]).toEqual([
        Prefix,
        Delimiter,
        wanted(Prefix, Delimiter),
      ]);
    expect(await all({ Delimiter: "/", MaxKeys: 7 })).toHaveLength(wanted("", "/").length);
    expect((await all({ Prefix: "d1/", MaxKeys: 1 })).length).toBe(100);
    expect(await all({ StartAfter: "d99/e 6/" })).toEqual(keys.filter((key) => key > "d99/e 6/").sort());
    expect((await all({ StartAfter: "d1/", Delimiter: "/" })).sort()).toEqual(
      wanted("", "/").filter((each) => each > "d1/"),
    );
    const first: string[] = [];
    for (let Marker: string | undefined; ;) {
      const page = await s3.send(
        new ListObjectsCommand({ Bucket: name, Delimiter: "/", MaxKeys: 10, Marker, EncodingType: "url" }),
      );
      first.push(
        ...(page.Contents ?? []).map((each) => each.Key!),
        ...(page.CommonPrefixes ?? []).map((each) => each.Prefix!),
      );
      if (page.IsTruncated !== true) break;
      Marker = page.NextMarker;
    }
    expect(first.sort()).toEqual(wanted("", "/"));
    const nothing = await s3.send(new ListObjectsV2Command({ Bucket: name, MaxKeys: 0 }));
    expect(nothing).toMatchObject({ KeyCount: 0, IsTruncated: false });
    expect(await nameOf(s3.send(new ListObjectsV2Command({ Bucket: name, Delimiter: "e" })))).toBe(
      "NotImplemented",
    );
    const remove = (from: number, to: number) =>
      s3.send(
        new DeleteObjectsCommand({
          Bucket: name,
          Delete: { Objects: keys.slice(from, to).map((Key) => ({ Key })) },
        }),
      );
    expect(await nameOf(remove(0, 1_001))).toBe("MalformedXML");
    for (let at = 0; at < keys.length; at += 1_000)
      expect((await remove(at, at + 1_000)).Errors ?? []).toEqual([]);
    expect(await all({})).toEqual([]);
    await s3.send(new DeleteBucketCommand({ Bucket: name }));
  });
});

describe("uploads in parts", () => {
  const partBytes = 5 * 2 ** 20;

  test("lib-storage uploads a stream in parts, and nothing of the upload is left", async () => {
    const bytes = randomBytes(3 * partBytes + 17);
    const upload = new Upload({
      client: s3,
      params: { Bucket, Key: "big", Body: Readable.from([bytes]), ContentType: "a/b", Metadata: { m: "1" } },
    });
    const done = await upload.done();
    const sums = [0, 1, 2, 3].map((at) => md5(bytes.subarray(at * partBytes, (at + 1) * partBytes)));
    expect(done.ETag).toBe(`"${md5(Buffer.from(sums.join(""), "hex"))}-4"`);
    expect(await get("big")).toBe(bytes.toString("latin1"));
    expect(await get("big", { Range: `bytes=${partBytes - 2}-${partBytes + 1}` })).toBe(
      bytes.toString("latin1", partBytes - 2, partBytes + 2),
    );
    // The SDK sends a CRC of each part; the CRC of the whole is computed from these.
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(bytes));
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: "big", ChecksumMode: "ENABLED" }));
    expect([done.ChecksumCRC32, head.ChecksumCRC32]).toEqual(Array(2).fill(sum.toString("base64")));
    expect(head).toMatchObject({ ContentType: "a/b", Metadata: { m: "1" }, ContentLength: bytes.length });
    const { entries } = await files.children(".s3-uploads");
    expect(entries).toEqual([]);
  });

  test("parts are listed, replaced, copied, and completed under conditions, again with the same answer", async () => {
    const target = { Bucket, Key: "deep/parts" };
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand(target));
    const part = (PartNumber: number, Body: Uint8Array | string) =>
      s3.send(new UploadPartCommand({ ...target, UploadId, PartNumber, Body }));
    await part(1, "wrong");
    const one = await part(1, Buffer.alloc(partBytes, "1"));
    await put("source", "0123456789");
    const copied = await s3.send(
      new UploadPartCopyCommand({
        ...target,
        UploadId,
        PartNumber: 10_000,
        CopySource: `${Bucket}/source`,
        CopySourceRange: "bytes=2-4",
      }),
    );
    for (const wrong of [0, 10_001]) expect(await nameOf(part(wrong, ""))).toBe("InvalidArgument");
    const listed = await s3.send(new ListPartsCommand({ ...target, UploadId }));
    expect(listed.Parts).toMatchObject([
      { PartNumber: 1, Size: partBytes, ETag: one.ETag },
      { PartNumber: 10_000, Size: 3, ETag: copied.CopyPartResult!.ETag },
    ]);
    const some = await s3.send(new ListPartsCommand({ ...target, UploadId, MaxParts: 1 }));
    expect(some).toMatchObject({ IsTruncated: true, NextPartNumberMarker: "1" });
    const uploads = await s3.send(new ListMultipartUploadsCommand({ Bucket, Prefix: "deep/" }));
    expect(uploads.Uploads).toMatchObject([{ Key: "deep/parts", UploadId }]);
    const Parts = [
      { PartNumber: 1, ETag: one.ETag },
      { PartNumber: 10_000, ETag: copied.CopyPartResult!.ETag },
    ];
    const complete = (parts: typeof Parts, more = {}) =>
      s3.send(
        new CompleteMultipartUploadCommand({
          ...target,
          UploadId,
          MultipartUpload: { Parts: parts },
          ...more,
        }),
      );
    expect(await nameOf(complete(Parts.toReversed()))).toBe("InvalidPartOrder");
    expect(await nameOf(complete([{ PartNumber: 2, ETag: one.ETag }]))).toBe("InvalidPart");
    expect(await nameOf(complete([{ PartNumber: 1, ETag: '"0"' }]))).toBe("InvalidPart");
    const withSum = [{ PartNumber: 1, ETag: one.ETag, ChecksumCRC32: "AAAAAA==" }];
    expect(await nameOf(complete(withSum))).toBe("InvalidPart");
    expect(await nameOf(complete(Parts.slice(0, 1), { ChecksumCRC32: "AAAAAA==" }))).toBe("BadDigest");
    await put(target.Key, "there");
    expect(await nameOf(complete(Parts, { IfNoneMatch: "*" }))).toBe("PreconditionFailed");
    const { ETag } = await complete(Parts, { IfMatch: `"${md5("there")}"` });
    expect((await complete(Parts)).ETag).toBe(ETag);
    const whole = await get(target.Key);
    expect([whole.length, whole.slice(-4)]).toEqual([partBytes + 3, "1234"]);
    expect(await nameOf(part(2, "late"))).toBe("NoSuchUpload");
  });

  test("a part that is too small is refused, and so is an upload that was aborted or belongs to another key", async () => {
    const target = { Bucket, Key: "small" };
    const upload = new Upload({
      client: s3,
      params: { ...target, Body: Readable.from([Buffer.alloc(partBytes + 1)]) },
    });
    upload.on("httpUploadProgress", () => void upload.abort());
    expect(await nameOf(upload.done())).not.toBe("done");
    await expect.poll(async () => (await files.children(".s3-uploads")).entries).toEqual([]);
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand(target));
    const parts: { readonly PartNumber: number; readonly ETag: string | undefined }[] = [];
    for (const PartNumber of [1, 2]) {
      const { ETag } = await s3.send(new UploadPartCommand({ ...target, UploadId, PartNumber, Body: "x" }));
      parts.push({ PartNumber, ETag });
    }
    const complete = (Key: string) =>
      s3.send(
        new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts: parts } }),
      );
    expect(await nameOf(complete("small"))).toBe("EntityTooSmall");
    expect(await nameOf(complete("other"))).toBe("NoSuchUpload");
  });
});

describe("signatures", () => {
  test("signed addresses read and write, until they expire", async () => {
    const url = await getSignedUrl(
      s3,
      new PutObjectCommand({ Bucket, Key: "by address", Metadata: { a: "1" } }),
      { expiresIn: 60 },
    );
    const answer = await fetch(url, { method: "PUT", body: "content" });
    expect(answer.status).toBe(200);
    const address = (signingDate: Date, more = {}) =>
      getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: "by address", ...more }), {
        expiresIn: 60,
        signingDate,
      });
    const got = await fetch(await address(new Date(), { ResponseContentType: "text/x" }));
    expect([await got.text(), got.headers.get("content-type"), got.headers.get("x-amz-meta-a")]).toEqual([
      "content",
      "text/x",
      "1",
    ]);
    const old = await fetch(await address(new Date(Date.now() - 61_000)));
    expect([old.status, await old.text()]).toEqual([403, expect.stringMatching(/AccessDenied.*expired/)]);
    const changed = (await address(new Date())).replace("by%20address", "c");
    expect((await fetch(changed)).status).toBe(403);
    expect((await fetch(`${server.url}/${Bucket}/r`)).status).toBe(403);
  });

  test("wrong keys, secrets and clocks are refused", async () => {
    const list = (client: S3Client) =>
      nameOf(client.send(new ListBucketsCommand()).finally(() => client.destroy()));
    expect(await list(clientOf(server.url, "wrong"))).toBe("SignatureDoesNotMatch");
    const credentials = { accessKeyId: "you", secretAccessKey: "secret-4711" };
    expect(await list(clientOf(server.url, "", { credentials }))).toBe("InvalidAccessKeyId");
    for (const [systemClockOffset, name] of [
      [-14 * 60_000, "done"],
      [-16 * 60_000, "RequestTimeTooSkewed"],
      [16 * 60_000, "RequestTimeTooSkewed"],
    ] as const)
      expect([
        systemClockOffset,
        await list(clientOf(server.url, "secret-4711", { systemClockOffset })),
      ]).toEqual([systemClockOffset, name]);
  });
});
