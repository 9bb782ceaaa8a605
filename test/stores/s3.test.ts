import { mkdtemp, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runStoreConformance } from "../../src/stores/conformance.js";
import type { OpenedStore } from "../../src/stores/contract.js";
import { S3Client } from "../../src/stores/s3/client.js";
import { parseS3Url } from "../../src/stores/s3/address.js";
import { openS3Store } from "../../src/stores/s3/open.js";
import { freePorts } from "../free-ports.js";
import { makeDirectory, removeDirectory } from "./servers/process.js";
import { accessKeyId, S3Server, secretAccessKey } from "./servers/s3.js";
import { failing, failureOf, measure, read, refusalOf, replace, write } from "./support.js";

const environment = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };

async function open(url: URL): Promise<OpenedStore> {
  const store = await openS3Store(url, { writer: "test", environment });
  onTestFinished(() => store.close());
  return store;
}

/** As an administrator of the bucket would. */
function client(url: URL): S3Client {
  return new S3Client(parseS3Url(url, {}, undefined), () =>
    Promise.resolve({ accessKeyId, secretAccessKey }),
  );
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

  test("what an operation takes, and what the probe saw", async () => {
    const store = await open(servers[0]!.url("leases", "latency"));
    const { id } = await write(store, "r", "0");
    const reads = await measure(300, () => read(store, "r"));
    const replaces = await measure(300, (n) => replace(store, "r", id, String(n), String(n + 1)));
    console.info(`radosgw: read ${reads}; replace ${replaces}`);
    for (const { tried, seen } of store.findings) console.info(`radosgw: ${tried}: ${seen}`);
    expect(await read(store, "r")).toEqual({ id, text: "300" });
  });
});

/** As tools do that empty a bucket: object by object, in the order of the keys. */
async function empty(url: URL): Promise<void> {
  const bucket = client(url);
  for (;;) {
    const { body } = await bucket.send({ method: "GET", query: { "list-type": "2" } });
    const keys = [...String(Buffer.from(body)).matchAll(/<Key>([^<]*)/g)].map((match) => match[1]!);
    if (keys.length === 0) return;
    for (const key of keys) await bucket.send({ method: "DELETE", key });
  }
}
