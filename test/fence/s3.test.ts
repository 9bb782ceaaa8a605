import { S3 } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type S3Client, type S3Content, S3Fence } from "@leasehold/fence/s3";
import { S3Server, accessKeyId, secretAccessKey } from "../stores/servers/s3.js";
import { type Guarded, overtake, runFenceConformance } from "./conformance.js";

let server: S3Server;
let s3: S3;
let keys = 0;
const bucket = "fences";
beforeAll(async () => {
  server = await S3Server.start();
  s3 = new S3(options());
  await s3.createBucket({ Bucket: bucket });
}, 120_000);
afterAll(async () => {
  s3.destroy();
  await server.close();
});

const options = () => ({
  endpoint: server.endpoint,
  region: "default",
  forcePathStyle: true,
  credentials: { accessKeyId, secretAccessKey },
});

interface GuardedInS3 extends Guarded<S3Content> {
  readonly key: string;
  fence(): S3Fence;
}

async function make(client: S3Client = s3): Promise<GuardedInS3> {
  const key = `folder/report${(keys += 1)}`;
  const one = new S3Fence(client, { bucket, key });
  if (client === s3) await one.setUp();
  const fence = () => one;
  return {
    kind: "s3",
    place: JSON.stringify({ ...options(), key }),
    key,
    fence,
    change: (text) => ({ body: text }),
    read: async () => new TextDecoder().decode((await fence().read())?.body),
  };
}

const objectsOf = async (key: string): Promise<string[]> => {
  const { Contents = [] } = await s3.listObjectsV2({ Bucket: bucket, Prefix: key });
  return Contents.map(({ Key = "" }) => Key);
};

describe("in S3", () => {
  runFenceConformance(() => make());
});

test("a holder that is stopped between its content and the pointer is refused when it resumes", async () => {
  const guarded = await make();
  expect(await overtake(guarded, "between")).toMatchObject({ outcome: "TOKEN_STALE" });
  expect(await guarded.read()).toBe("by the next holder");
  // The late holder's content is removed, too.
  expect((await objectsOf(guarded.key)).length).toBe(2);
});

test("equal content by a greater token is noticed, although its ETag is the same", async () => {
  const { fence, read, key } = await make();
  await fence().write(5n, { body: "same" });
  await fence().write(6n, { body: "same" });
  await expect(fence().write(5n, { body: "same" })).rejects.toMatchObject({ code: "TOKEN_STALE" });
  expect([await read(), await fence().greatest(), (await objectsOf(key)).length]).toEqual(["same", 6n, 2]);
});

test("bytes and their type are returned, and readers see whole contents during writes", async () => {
  const { fence } = await make();
  const bytes = (at: number) => new Uint8Array(10_000).fill(at);
  await fence().write(1n, { body: bytes(1), contentType: "image/png" });
  const [, ...seen] = await Promise.all([
    (async () => {
      for (let token = 2; token <= 12; token += 1)
        await fence().write(BigInt(token), { body: bytes(token), contentType: "image/png" });
    })(),
    ...Array.from({ length: 30 }, () => fence().read()),
  ]);
  for (const content of seen) {
    const { body, contentType } = content!;
    expect([body.length, new Set(body).size, contentType]).toEqual([10_000, 1, "image/png"]);
  }
});

test("a move whose answer was lost is recognized, and not refused", async () => {
  let isLost = true;
  const { fence, read } = await make({
    getObject: (input) => s3.getObject(input),
    deleteObject: (input) => s3.deleteObject(input),
    putObject: async (input) => {
      const answer = await s3.putObject(input);
      if (input.IfNoneMatch === undefined || !isLost) return answer;
      isLost = false;
      // Retry, as the SDK does when no answer arrives.
      return s3.putObject(input);
    },
  });
  await fence().write(5n, { body: "five" });
  expect([isLost, await read()]).toEqual([false, "five"]);
});

test("a server that honours conditions is accepted, and one that ignores conditions is refused", async () => {
  const { fence, key } = await make();
  await fence().setUp();
  const deaf = await make({
    getObject: (input) => s3.getObject(input),
    deleteObject: (input) => s3.deleteObject(input),
    putObject: ({ Bucket, Key, Body }) => s3.putObject({ Bucket, Key, Body }),
  });
  await expect(deaf.fence().setUp()).rejects.toMatchObject({ code: "RESOURCE_UNFIT" });
  expect([await objectsOf(key), await objectsOf(deaf.key)]).toEqual([[], []]);
});

test("an object that does not belong to a fence is left unchanged", async () => {
  const { fence, key } = await make();
  await s3.putObject({ Bucket: bucket, Key: key, Body: "hello" });
  await expect(fence().write(5n, { body: "x" })).rejects.toMatchObject({ code: "RESOURCE_UNFIT" });
  expect(await objectsOf(key)).toEqual([key]);
});
