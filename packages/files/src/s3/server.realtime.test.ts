import { createHash } from "node:crypto";
import { connect } from "node:net";
import { once } from "node:events";
import { AwsClient } from "aws4fetch";
import { expect, onTestFinished, test, vi } from "vitest";
import { MemoryFiles } from "../../../../test/support/memory-files.js";
import { type S3Options, serveS3 } from "./server.js";
import { collectUploads, uploadMsMax } from "./uploads.js";

async function serve(options: S3Options = {}) {
  const files = new MemoryFiles();
  const server = await serveS3(files, options);
  onTestFinished(() => server.close());
  await files.makeFolder("bucket");
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${server.url}/${path}`, init);
    const text = await answer.text();
    const code = /<Code>(\w+)/.exec(text)?.[1];
    return { status: answer.status, code, text, headers: answer.headers };
  };
  return { files, server, ask };
}

test("a server without a user takes any keys on loopback, and names and pages of others are refused", async () => {
  const { ask, files, server } = await serve();
  expect((await ask("bucket/a", { method: "PUT", body: "content" })).status).toBe(200);
  const signed = {
    authorization: "AWS4-HMAC-SHA256 Credential=any",
    "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
  };
  expect((await ask("bucket/a", { headers: signed })).text).toBe("content");
  expect((await ask("bucket/a", { headers: { origin: "http://evil.example" } })).code).toBe("AccessDenied");
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write("GET /bucket/a HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 /);
  socket.destroy();
  expect(files.paths).toEqual(["bucket/a"]);
});

test("beyond loopback it needs a user, whose password has 8 characters or more, and TLS", async () => {
  const wrong: readonly S3Options[] = [
    { host: "0.0.0.0" },
    { host: "0.0.0.0", credentials: "me:12345678" },
    { credentials: "me:1234567" },
    { credentials: "12345678" },
    { credentials: ":12345678" },
  ];
  for (const options of wrong)
    await expect(serveS3(new MemoryFiles(), options)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  await serve({ credentials: "me:12345678" });
});

test("what is missing, unknown, or not signed is refused by S3's names, and HEAD without a body", async () => {
  const { ask } = await serve({ credentials: "me:12345678" });
  expect((await ask("bucket")).code).toBe("AccessDenied");
  expect((await ask("bucket", { headers: { authorization: "Basic bWU6MTIzNDU2Nzg=" } })).code).toBe(
    "AuthorizationHeaderMalformed",
  );
  const open = await serve();
  const codes = async (method: string, paths: readonly string[]) =>
    Promise.all(paths.map(async (path) => (await open.ask(path, { method })).code));
  expect(
    await codes("GET", ["bucket/none", "none", "none/a", "bucket?acl", "bucket/a?tagging", "b%ff"]),
  ).toEqual([
    "NoSuchKey",
    "NoSuchBucket",
    "NoSuchBucket",
    "NotImplemented",
    "NotImplemented",
    "InvalidArgument",
  ]);
  expect(await codes("POST", ["", "bucket", "bucket/a"])).toEqual(Array(3).fill("MethodNotAllowed"));
  expect(
    await codes("GET", [
      ".s3-uploads",
      "bucket?list-type=2&max-keys=x",
      "bucket?continuation-token=%25&list-type=2",
    ]),
  ).toEqual(["InvalidBucketName", "InvalidArgument", "InvalidArgument"]);
  const head = await open.ask("bucket/none", { method: "HEAD" });
  expect([head.status, head.text]).toEqual([404, ""]);
  expect(head.headers.get("x-amz-request-id")).toMatch(/^[0-9a-f-]{36}$/);
});

test("bodies are refused that are longer or shorter than they are said to be, or wrongly made", async () => {
  const { ask, files } = await serve();
  const put = (body: string, headers: Record<string, string>) =>
    ask("bucket/a", { method: "PUT", body, headers }).then(({ code }) => code);
  const chunked = {
    "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "x-amz-trailer": "x-amz-checksum-crc32",
  };
  const body = "7\r\ncontent\r\n0\r\nx-amz-checksum-crc32:oGtTYg==\r\n\r\n";
  const length = (bytes: number) => ({ "x-amz-decoded-content-length": String(bytes) });
  expect(await put(body, { ...chunked, ...length(7) })).toBe("BadDigest");
  expect(await put(body, chunked)).toBe("MissingContentLength");
  expect(await put(body, { ...chunked, ...length(6) })).toBe("IncompleteBody");
  expect(await put(body, { ...chunked, ...length(8) })).toBe("IncompleteBody");
  expect(await put(body, { ...chunked, ...length(5 * 2 ** 30 + 1) })).toBe("EntityTooLarge");
  expect(await put(body.replace("x-amz-checksum-crc32:oGtTYg==\r\n", ""), { ...chunked, ...length(7) })).toBe(
    "BadDigest",
  );
  expect(await put(body, { "x-amz-content-sha256": "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD" })).toBe(
    "NotImplemented",
  );
  expect(await put("x", { "content-md5": "short" })).toBe("InvalidDigest");
  expect(await put("x", { "content-md5": "AAAAAAAAAAAAAAAAAAAAAA==" })).toBe("BadDigest");
  expect(files.paths).toEqual([]);
});

test("64 requests are served at a time, and one more is told to slow down", async () => {
  const { files, ask } = await serve();
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => void (release = resolve));
  const entry = files.entry.bind(files);
  vi.spyOn(files, "entry").mockImplementation(async (path) => {
    await gate;
    return entry(path);
  });
  const all = Array.from({ length: 64 }, () => ask("bucket/none"));
  await expect.poll(() => vi.mocked(files.entry).mock.calls.length).toBe(64);
  const more = await ask("bucket/none");
  expect([more.status, more.code, more.headers.get("retry-after")]).toEqual([503, "SlowDown", "1"]);
  release();
  expect((await Promise.all(all)).map(({ code }) => code)).toEqual(Array(64).fill("NoSuchKey"));
});

test("1,000 uploads may be open, one more is refused, and those of seven days are removed", async () => {
  const { files, ask } = await serve();
  const create = () => ask("bucket/a?uploads", { method: "POST" });
  for (let at = 0; at < 999; at += 1) await files.makeFolder(`.s3-uploads/${at}`);
  const children = files.children.bind(files);
  vi.spyOn(files, "children").mockImplementation((folder, options) =>
    children(folder, { limit: 1_000, ...options }),
  );
  const [, upload = ""] = /<UploadId>([0-9a-f]{32})</.exec((await create()).text)!;
  expect((await create()).code).toBe("SlowDown");
  const nowMs = (await files.children(".s3-uploads")).entries[0]!.modifiedMs;
  await collectUploads(files, nowMs + uploadMsMax);
  expect((await files.children(".s3-uploads")).entries).toHaveLength(1_000);
  const part = () => ask(`bucket/a?uploadId=${upload}&partNumber=1`, { method: "PUT", body: "x" });
  expect((await part()).status).toBe(200);
  await collectUploads(files, nowMs + uploadMsMax + 1);
  expect((await files.children(".s3-uploads")).entries).toEqual([]);
  expect((await part()).code).toBe("NoSuchUpload");
});

test("an upload is completed with 1 to 10,000 parts", async () => {
  const { ask, files } = await serve();
  const [, upload] = /<UploadId>([0-9a-f]{32})</.exec(
    (await ask("bucket/a?uploads", { method: "POST" })).text,
  )!;
  const part = await ask(`bucket/a?uploadId=${upload}&partNumber=1`, { method: "PUT", body: "x" });
  const etag = part.headers.get("etag")!;
  const complete = (count: number) => {
    const parts = Array.from(
      { length: count },
      (_, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
    );
    const body = `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`;
    return ask(`bucket/a?uploadId=${upload}`, { method: "POST", body }).then(({ code }) => code ?? "done");
  };
  expect([await complete(0), await complete(10_001), await complete(10_000)]).toEqual([
    "MalformedXML",
    "MalformedXML",
    "EntityTooSmall",
  ]);
  expect(await complete(1)).toBe("done");
  expect(files.bytesOf("bucket/a")?.toString()).toBe("x");
});

test("a signed request whose body was changed on its way leaves nothing", async () => {
  const { server, files } = await serve({ credentials: "me:12345678" });
  const client = new AwsClient({
    accessKeyId: "me",
    secretAccessKey: "12345678",
    service: "s3",
    region: "r",
    retries: 0,
  });
  const headers = {
    "x-amz-content-sha256": "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73",
  };
  const put = (body: string) => client.fetch(`${server.url}/bucket/a`, { method: "PUT", body, headers });
  expect((await put("Content")).status).toBe(400);
  expect(files.paths).toEqual([]);
  expect((await put("content")).status).toBe(200);
  expect(files.paths).toEqual(["bucket/a"]);
});

test("of writes whose conditions held before any was made, the second is refused when it is made", async () => {
  const { files, ask } = await serve();
  await files.set("bucket/there", "old");
  const etag = (await ask("bucket/there", { method: "HEAD" })).headers.get("etag")!;
  const put = files.put.bind(files);
  for (const [key, condition] of [
    ["new", { "if-none-match": "*" }],
    ["there", { "if-match": etag }],
  ] as const) {
    let arrived = 0;
    let release = (): void => undefined;
    const both = new Promise<void>((resolve) => void (release = resolve));
    vi.spyOn(files, "put").mockImplementation(async (...how) => {
      if ((arrived += 1) === 2) release();
      await both;
      return put(...how);
    });
    const write = (body: string) => ask(`bucket/${key}`, { method: "PUT", body, headers: condition });
    const answers = await Promise.all([write("1"), write("2")]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
    expect(answers.find(({ status }) => status === 412)!.code).toBe("PreconditionFailed");
  }
});

test("an object of parts is compared with the checksum over those of its parts, if the client sends one", async () => {
  const { ask, files } = await serve();
  const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest();
  const created = await ask("bucket/a?uploads", { method: "POST" });
  const [, upload] = /<UploadId>([0-9a-f]{32})</.exec(created.text)!;
  const headers = { "x-amz-checksum-sha256": sha256("x").toString("base64") };
  const part = await ask(`bucket/a?uploadId=${upload}&partNumber=1`, { method: "PUT", body: "x", headers });
  const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.get("etag")}</ETag></Part></CompleteMultipartUpload>`;
  const complete = (sum: string) =>
    ask(`bucket/a?uploadId=${upload}`, { method: "POST", body, headers: { "x-amz-checksum-sha256": sum } });
  const right = sha256(sha256("x")).toString("base64");
  for (const wrong of [right, `${right}-2`, headers["x-amz-checksum-sha256"]])
    expect((await complete(wrong)).code).toBe("BadDigest");
  expect((await complete(`${right}-1`)).status).toBe(200);
  expect(files.paths).toEqual(["bucket/a"]);
});
