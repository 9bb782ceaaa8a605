import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseS3Url } from "../../packages/leasehold/src/stores/s3/address.js";
import { loadSign } from "../../packages/leasehold/src/stores/s3/signature.js";
import { S3Client } from "../../packages/leasehold/src/stores/s3/client.js";
import { alive, runProgram } from "../support/alive.js";
import { PostgresServer } from "./servers/postgres.js";
import { RedisServer } from "./servers/redis.js";
import { accessKeyId, S3Server, secretAccessKey } from "./servers/s3.js";

/** Like `test/e2e/alive.test.ts`, on stores that have connections and devices. */

let folder: string;
let redis: RedisServer;
let postgres: PostgresServer;
let s3: S3Server;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "leasehold-alive-"));
  await writeFile(join(folder, "disk"), "");
  await truncate(join(folder, "disk"), 64 << 20);
  [redis, postgres, s3] = await Promise.all([
    RedisServer.start({ durable: true }),
    PostgresServer.start(),
    S3Server.start(),
  ]);
  const credentials = () => Promise.resolve({ accessKeyId, secretAccessKey });
  const bucket = new S3Client(parseS3Url(s3.url("leases"), {}, undefined), credentials, await loadSign());
  await bucket.send({ method: "PUT" });
});

afterAll(async () => {
  await Promise.all([redis.close(), postgres.close(), s3.close()]);
  await rm(folder, { recursive: true });
});

const keys = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };

describe("a process stays alive while it waits or holds, but not because leases are open", () => {
  test.each<[string, () => URL | string, string]>([
    ["Redis", () => redis.url(), "6s"],
    ["PostgreSQL", () => postgres.url(), "6s"],
    ["S3", () => s3.url("leases", "alive"), "6s"],
    [
      "a disk",
      () =>
        `block:${join(folder, "disk")}?format&slots=16&regions=32&delay=150ms&slot-ttl=3s&ttlMax=3s&maxStoreLatency=150ms`,
      "2s",
    ],
  ])("on %s, with Δ-leases", async (_store, url, ttl) => {
    expect(await runProgram({ urls: [`delta+${url()}`], ttl }, keys)).toEqual(alive);
  });

  test.each<[string, () => URL | string, string]>([
    ["Redis", () => redis.url("grid"), "6s"],
    ["PostgreSQL", () => postgres.url("grid"), "6s"],
    ["S3", () => s3.url("leases", "grid"), "10s"],
  ])("on %s, with Flease", async (_store, url, ttl) => {
    expect(await runProgram({ urls: [`flease+${url()}`], ttl }, keys)).toEqual(alive);
  });
});
