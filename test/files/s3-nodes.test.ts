import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";

/** The S3 API of `leasehold files up`: three nodes as processes, one of which is killed. */

let folder: string;
let up: ChildProcess;
let said = "";
let ports: readonly number[];
let clients: readonly S3Client[];
const Bucket = "bucket";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-s3-nodes-"));
  const [port] = (await freePorts(12)) as [number];
  const main = join(dist, "cli/main.js");
  up = spawn(process.execPath, [main, "files", "up", "--port", String(port), "--dir", join(folder, "nodes")]);
  up.stdout!.on("data", (text) => (said += String(text)));
  while (!said.includes("each node's files")) await once(up.stdout!, "data");
  const first = Number(
    /S3: http:\/\/127\.0\.0\.1:(\d+), path style, any access key and secret/.exec(said)![1],
  );
  ports = [first, first + 1, first + 2];
  clients = ports.map((each) => clientOf(each, 10));
  await clients[0]!.send(new CreateBucketCommand({ Bucket }));
});
afterAll(async () => {
  for (const client of clients) client.destroy();
  up.kill("SIGTERM");
  if (up.exitCode === null) await once(up, "exit");
  rmSync(folder, { recursive: true });
});

function clientOf(port: number, maxAttempts: number): S3Client {
  return new S3Client({
    endpoint: `http://127.0.0.1:${port}`,
    region: "r",
    forcePathStyle: true,
    credentials: { accessKeyId: "any", secretAccessKey: "any" },
    maxAttempts,
  });
}

/** The process id of a node. */
function pidOf(node: string): number {
  const pid = readdirSync("/proc").find((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8");
      return words.includes(`--id\0${node}\0`) && words.includes(folder);
    } catch {
      return false;
    }
  });
  return Number(pid);
}

async function get(client: S3Client, Key: string): Promise<Buffer> {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
  return Buffer.from(await Body!.transformToByteArray());
}

test("an upload continues at another node while its node is killed, and at that node afterwards", async () => {
  const [one, other] = clients as [S3Client, S3Client];
  const bytes = randomBytes(22 * 2 ** 20);
  const partBytes = 5 * 2 ** 20;
  const target = { Bucket, Key: "dir/big" };
  const { UploadId } = await one.send(new CreateMultipartUploadCommand({ ...target, ContentType: "a/b" }));
  const part = async (client: S3Client, PartNumber: number) => {
    const Body = bytes.subarray((PartNumber - 1) * partBytes, PartNumber * partBytes);
    const { ETag } = await client.send(new UploadPartCommand({ ...target, UploadId, PartNumber, Body }));
    return { PartNumber, ETag };
  };
  const parts = [await part(one, 1)];
  const broken = part(clientOf(ports[0]!, 1), 2).catch(() => undefined);
  process.kill(pidOf("a"), "SIGKILL");
  await broken;
  parts.push(await part(other, 2), await part(other, 3));
  await expect
    .poll(
      () =>
        one.send(new ListPartsCommand({ ...target, UploadId })).then(
          ({ Parts }) => Parts?.length,
          () => 0,
        ),
      { timeout: 30_000 },
    )
    .toBe(3);
  parts.push(await part(one, 4), await part(one, 5));
  await one.send(
    new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts: parts } }),
  );
  for (const client of clients) expect((await get(client, target.Key)).equals(bytes)).toBe(true);
  expect(await other.send(new HeadObjectCommand(target))).toMatchObject({
    ContentType: "a/b",
    ContentLength: bytes.length,
  });
});

test("of two concurrent uploads of one key at two nodes, one is stored completely or one is refused", async () => {
  const contents = [0, 1, 2].map(() => randomBytes(3_000_001));
  const md5s = contents.map((bytes) => `"${createHash("md5").update(bytes).digest("hex")}"`);
  const put = (at: number, more = {}) =>
    clients[at]!.send(new PutObjectCommand({ Bucket, Key: "same", Body: contents[at]!, ...more }));
  await Promise.all([put(0), put(1), put(2)]);
  const { ETag } = await clients[0]!.send(new HeadObjectCommand({ Bucket, Key: "same" }));
  expect(md5s).toContain(ETag);
  expect((await get(clients[1]!, "same")).equals(contents[md5s.indexOf(ETag!)]!)).toBe(true);
  for (const more of [{ IfMatch: ETag }, { IfNoneMatch: "*", Key: "new" }]) {
    const results = await Promise.allSettled([put(0, more), put(1, more), put(2, more)]);
    const refused = results.flatMap((each) =>
      each.status === "rejected" ? [(each.reason as Error).name] : [],
    );
    expect(refused).toEqual(["PreconditionFailed", "PreconditionFailed"]);
  }
});
