import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runStoreConformance } from "../../packages/leasehold/src/stores/conformance.js";
import type { OpenedStore } from "../../packages/leasehold/src/stores/common/contract.js";
import { S3Client } from "../../packages/leasehold/src/stores/s3/client.js";
import { parseS3Url } from "../../packages/leasehold/src/stores/s3/address.js";
import { openS3Store } from "../../packages/leasehold/src/stores/s3/open.js";
import { loadSign } from "../../packages/leasehold/src/stores/s3/signature.js";
import { makeDirectory, removeDirectory } from "./servers/process.js";
import { type OnTheWay, startCareless, startProxy } from "./servers/s3-bystander.js";
import { accessKeyId, S3Server, secretAccessKey } from "./servers/s3.js";
import { failing, failureOf, known, measure, read, refusalOf, replace, report, write } from "./support.js";

const sign = await loadSign();
const environment = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };

async function open(url: URL): Promise<OpenedStore> {
  const store = await openS3Store(url, { writer: "test", environment });
  onTestFinished(() => store.close());
  return store;
}

/** A client with the rights of an administrator. */
function client(url: URL): S3Client {
  const credentials = () => Promise.resolve({ accessKeyId, secretAccessKey });
  return new S3Client(parseS3Url(url, {}, undefined), credentials, sign);
}

async function makeBucket(url: URL): Promise<void> {
  expect(await client(url).send({ method: "PUT" })).toMatchObject({ status: 200 });
}

const servers: S3Server[] = [];
beforeAll(async () => {
  servers.push(...(await Promise.all([S3Server.start(), S3Server.start(), S3Server.start()])));
  for (const server of servers) await makeBucket(server.url("leases"));
});
afterAll(() => Promise.all(servers.map((server) => server.close())));

describe("three servers", () => {
  let grounds = 0;
  for (const index of [0, 1, 2]) {
    describe(`server ${index}`, () => {
      runStoreConformance({ describe, test }, "atomic", async () => {
        const server = servers[index]!;
        const bucket = `ground-${grounds++}`;
        await makeBucket(server.url(bucket));
        return {
          kind: "atomic",
          open: (writer) => openS3Store(server.url(bucket, "some/where"), { writer, environment }),
          forget: () => empty(server.url(bucket)),
          close: async () => undefined,
        };
      });
    });
  }

  test("the last of 300 writes is read, and the time of an operation is reported", async () => {
    const store = await open(servers[0]!.url("leases", "latency"));
    const { id } = await write(store, "r", "0");
    const reads = await measure(300, () => read(store, "r"));
    const replaces = await measure(300, (n) => replace(store, "r", id, String(n), String(n + 1)));
    report(`radosgw: read ${reads}; replace ${replaces}`);
    for (const { tried, seen } of store.findings) report(`radosgw: ${tried}: ${seen}`);
    expect(await read(store, "r")).toEqual({ id, text: "300" });
  });
});

/** Empties the bucket like common tools: object by object, in the order of the keys. */
async function empty(url: URL): Promise<void> {
  const bucket = client(url);
  for (;;) {
    const { body } = await bucket.send({ method: "GET", query: { "list-type": "2" } });
    const keys = [...String(Buffer.from(body)).matchAll(/<Key>([^<]*)/g)].map((match) => match[1]!);
    if (keys.length === 0) return;
    for (const key of keys) await bucket.send({ method: "DELETE", key });
  }
}

describe("a server that must be refused", () => {
  test("a server that ignores conditions is refused with STORE_UNFIT", async () => {
    const careless = await startCareless("leases");
    onTestFinished(() => careless.close());
    const url = new URL(`s3://leases/x?endpoint=${careless.endpoint}`);
    const keys = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };
    const refusal = await refusalOf(openS3Store, url, keys);
    expect(refusal).toMatchObject(
      failing("STORE_UNFIT", /created an object that exists.*it was overwritten \(200\)/),
    );
  });

  /** A proxy before the real server that removes a condition and signs the request anew. */
  const without = (condition: string): OnTheWay => {
    const real = client(servers[0]!.url("leases"));
    return async (asked, forward) => {
      if (asked.method !== "PUT" || asked.headers[condition] === undefined) return forward();
      const body = Buffer.from(`stripped ${Math.random()}`);
      const key = decodeURIComponent(asked.url!.split("/").slice(2).join("/"));
      const { status, etag } = await real.send({ method: "PUT", key, body });
      return { status, headers: { etag } };
    };
  };

  test.each([
    ["if-none-match", /created an object that exists|wrote an object and read it/],
    ["if-match", /refused with and without quotes|replaced an object under/],
  ])("a server behind a proxy that removes %s is refused with STORE_UNFIT", async (condition, message) => {
    const proxy = await startProxy(servers[0]!.endpoint, without(condition));
    onTestFinished(() => proxy.close());
    const url = new URL(`s3://leases/stripped?endpoint=${proxy.endpoint}`);
    expect(await refusalOf(openS3Store, url, environment)).toMatchObject(failing("STORE_UNFIT", message));
  });
});

describe("ambiguous answers", () => {
  async function behind(onTheWay: OnTheWay): Promise<OpenedStore> {
    const proxy = await startProxy(servers[0]!.endpoint, onTheWay);
    onTestFinished(() => proxy.close());
    return open(new URL(`s3://leases/${Math.random()}?endpoint=${proxy.endpoint}`));
  }

  test("a write that reaches the server twice counts as written", async () => {
    let isRepeating = false;
    const statuses: number[] = [];
    const store = await behind(async (asked, forward) => {
      if (isRepeating && asked.method === "PUT") statuses.push((await forward()).status);
      return forward();
    });
    const { id } = await read(store, "r");
    isRepeating = true;
    expect(await replace(store, "r", id, undefined, "first")).toEqual({ kind: "written", id });
    expect(await replace(store, "r", id, "first", "second")).toEqual({ kind: "written", id });
    expect(await read(store, "r")).toEqual({ id, text: "second" });
    expect(statuses).toEqual([200, 200]);
  });

  test("a write that is answered with 500 counts as written if it is stored, and fails if not", async () => {
    let fails: "before" | "after" | undefined;
    const store = await behind(async (asked, forward) => {
      if (fails === undefined || asked.method !== "PUT") return forward();
      if (fails === "after") await forward();
      return { status: 500 };
    });
    const { id } = await write(store, "r", "first");
    fails = "after";
    expect(await replace(store, "r", id, "first", "second")).toEqual({ kind: "written", id });
    fails = "before";
    const failure = await failureOf(replace(store, "r", id, "second", "third"));
    expect(failure).toMatchObject(failing("STORE_UNAVAILABLE", /500/));
    fails = undefined;
    expect(await read(store, "r")).toEqual({ id, text: "second" });
  });
});

describe("a bucket that is emptied", () => {
  test("a bucket that has lost its first object has another id, as that object is the marker", async () => {
    const url = servers[0]!.url("half");
    await makeBucket(url);
    const store = await open(url);
    const { id } = await write(store, "r", "before");
    const { body } = await client(url).send({ method: "GET", query: { "list-type": "2", "max-keys": "1" } });
    const first = /<Key>([^<]*)/.exec(String(Buffer.from(body)))![1]!;
    await client(url).send({ method: "DELETE", key: first });
    const after = await read(store, "other");
    expect(after.text).toBeUndefined();
    expect(after.id).not.toBe(id);
  });

  test("a write by a client that has not noticed that the bucket was emptied shows the new marker", async () => {
    const url = servers[0]!.url("unnoticed");
    await makeBucket(url);
    const store = await open(url);
    const { id } = await write(store, "r", "before");
    await empty(url);
    const created = known(await replace(store, "new", id, undefined, "next"));
    expect(created.id).not.toBe(id);
    expect(await replace(store, "r", id, "before", "next")).toMatchObject({
      kind: "conflict",
      id: created.id,
    });
  });
});

describe("failures", () => {
  test("a bucket that is missing, or is removed later, fails with STORE_UNAVAILABLE", async () => {
    const [server] = servers as [S3Server];
    const refusal = await refusalOf(openS3Store, server.url("nowhere"), environment);
    expect(refusal).toMatchObject(
      failing("STORE_UNAVAILABLE", /s3:\/\/nowhere.*the bucket does not exist.*NoSuchBucket/),
    );
    await makeBucket(server.url("removed"));
    const store = await open(server.url("removed"));
    const { id } = await write(store, "r", "first");
    await empty(server.url("removed"));
    expect((await client(server.url("removed")).send({ method: "DELETE" })).status).toBe(204);
    const answers = [
      store.perform({ op: "read", register: "r" }),
      replace(store, "r", id, "first", "second"),
    ];
    for (const answer of answers)
      expect(await failureOf(answer)).toMatchObject(
        failing("STORE_UNAVAILABLE", /the bucket does not exist/),
      );
  });

  test("credentials that are wrong, missing or insufficient are refused with STORE_PERMISSION", async () => {
    const [server] = servers as [S3Server];
    const url = server.url("leases");
    const wrong = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: "wrong-secret-0815" };
    expect(await refusalOf(openS3Store, url, wrong, ["wrong-secret-0815"])).toMatchObject(
      failing("STORE_PERMISSION", /SignatureDoesNotMatch/),
    );
    expect(await refusalOf(openS3Store, url, { HOME: "/nowhere" })).toMatchObject(
      failing("STORE_PERMISSION", /AWS_ACCESS_KEY_ID.*npm install @aws-sdk\/credential-providers/),
    );
    await server.user("stranger", "STRANGERSTRANGER0001", "stranger-secret-0815");
    const stranger = {
      AWS_ACCESS_KEY_ID: "STRANGERSTRANGER0001",
      AWS_SECRET_ACCESS_KEY: "stranger-secret-0815",
    };
    expect(await refusalOf(openS3Store, url, stranger, ["stranger-secret-0815"])).toMatchObject(
      failing("STORE_PERMISSION", /AccessDenied/),
    );
    const store = await open(url);
    expect(JSON.stringify([store.traits, store.findings])).not.toContain(secretAccessKey);
  });

  test("a user who may read but not write is refused with STORE_PERMISSION", async () => {
    const [server] = servers as [S3Server];
    const keys = ["READERREADERREADER01", "reader-secret-0815"] as const;
    await server.user("reader", ...keys);
    const url = server.url("readable");
    await makeBucket(url);
    const allow = {
      Effect: "Allow",
      Principal: { AWS: ["arn:aws:iam:::user/reader"] },
      Action: ["s3:GetObject", "s3:ListBucket"],
      Resource: ["arn:aws:s3:::readable", "arn:aws:s3:::readable/*"],
    };
    const body = Buffer.from(JSON.stringify({ Version: "2012-10-17", Statement: [allow] }));
    expect((await client(url).send({ method: "PUT", query: { policy: "" }, body })).ok).toBe(true);
    const reader = { AWS_ACCESS_KEY_ID: keys[0], AWS_SECRET_ACCESS_KEY: keys[1] };
    const refusal = await refusalOf(openS3Store, url, reader, [keys[1]]);
    expect(refusal).toMatchObject(failing("STORE_PERMISSION", /PutObject.*AccessDenied/));
  });

  test("a write to a full bucket fails with STORE_FULL", async () => {
    const [server] = servers as [S3Server];
    const url = server.url("small");
    await makeBucket(url);
    const store = await open(url);
    await write(store, "r", "first");
    await server.admin(
      "quota",
      "set",
      "--quota-scope=bucket",
      "--uid=leasehold",
      "--bucket=small",
      "--max-objects=1",
    );
    await server.admin("quota", "enable", "--quota-scope=bucket", "--uid=leasehold", "--bucket=small");
    const failure = await failureOf(replace(store, "other", (await read(store, "r")).id, undefined, "x"));
    expect(failure).toMatchObject(failing("STORE_FULL", /QuotaExceeded/));
  });

  test("a bucket is opened with the keys of the profile that AWS_PROFILE names", async () => {
    const home = await makeDirectory("home");
    onTestFinished(() => removeDirectory(home));
    await mkdir(join(home, ".aws"));
    const lines = ["[other]", "aws_access_key_id = x", "[leases]"];
    lines.push(`aws_access_key_id = ${accessKeyId}`, `aws_secret_access_key=${secretAccessKey}`);
    await writeFile(join(home, ".aws", "credentials"), lines.join("\n"));
    const url = servers[0]!.url("leases");
    const store = await openS3Store(url, {
      writer: "test",
      environment: { HOME: home, AWS_PROFILE: "leases" },
    });
    await store.close();
    expect(await refusalOf(openS3Store, url, { HOME: home })).toMatchObject({ code: "STORE_PERMISSION" });
  });

  test("a server that is stopped does not answer, and resumes where it was", async () => {
    const server = servers[1]!;
    const store = await open(server.url("leases", "stops"));
    const { id } = await write(store, "r", "before");
    server.freeze();
    const next = {
      op: "replace",
      register: "r",
      id,
      expected: Buffer.from("before"),
      next: Buffer.from("next"),
    } as const;
    const given = await failureOf(store.perform(next, { signal: AbortSignal.timeout(300) }));
    expect(given).toMatchObject(failing("STORE_UNAVAILABLE", /given up/));
    expect(await failureOf(store.perform({ op: "read", register: "r" }))).toMatchObject(
      failing("STORE_UNAVAILABLE", /timeout/),
    );
    server.thaw();
    // A late write: its caller had given up long before.
    await expect.poll(() => read(store, "r").then(({ text }) => text)).toBe("next");
  });

  test("operations fail at once when the server is killed, and it is found again", async () => {
    const server = servers[2]!;
    const store = await open(server.url("leases", "killed"));
    const { id } = await write(store, "r", "before");
    await server.kill();
    expect(await failureOf(store.perform({ op: "read", register: "r" }))).toMatchObject(
      failing("STORE_UNAVAILABLE", /ECONNREFUSED|closed/),
    );
    await server.restart();
    expect(await read(store, "r")).toEqual({ id, text: "before" });
  });
});
