import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AwsClient } from "aws4fetch";
import { open, type Leases } from "leasehold";
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openS3Store } from "../../packages/leasehold/src/stores/s3/open.js";
import { storeConformanceCases } from "../../packages/leasehold/src/stores/conformance.js";
import { serveS3 } from "../../packages/files/src/s3/server.js";
import type { FrontServer } from "../../packages/files/src/webdav/listen.js";
import { MemoryFiles } from "../support/memory-files.js";

/** Third-party S3 clients from Debian, and our own stores, against files in memory. */

const [user, secret] = ["me", "secret-4711"];
let files: MemoryFiles;
let server: FrontServer;
let folder: string;
const faults: string[] = [];

beforeAll(() => {
  const isMissing = (command: string) => spawnSync("which", [command]).status !== 0;
  const missing = ["rclone", "s3cmd", "restic"].filter(isMissing);
  if (missing.length > 0) execFileSync("apt-get", ["install", "-y", "-qq", ...missing], { stdio: "ignore" });
}, 180_000);
beforeEach(async () => {
  files = new MemoryFiles();
  server = await serveS3(files, { credentials: `${user}:${secret}`, fault: (text) => faults.push(text) });
  folder = mkdtempSync(join(tmpdir(), "leasehold-s3-"));
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
  if (faults.length > 0) throw new Error(faults.join("\n"));
});

/** Asynchronous, since the server is in this process. */
async function run(command: string, args: readonly string[], environment = {}): Promise<string> {
  // AWS_CA_BUNDLE is set on this machine for other servers, and old versions of rclone fail with it.
  const env = { ...process.env, HOME: folder, AWS_CA_BUNDLE: "", ...environment };
  const child = spawn(command, [...args], { cwd: folder, env });
  let output = "";
  child.stdout.on("data", (text) => (output += String(text)));
  child.stderr.on("data", (text) => (output += String(text)));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${code}\n${output}`);
  return output;
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

function makeTree(): Buffer {
  mkdirSync(join(folder, "tree/in/deep"), { recursive: true });
  const big = randomBytes(23_000_001);
  writeFileSync(join(folder, "tree/big.bin"), big);
  writeFileSync(join(folder, "tree/in/deep/ä & b+c.txt"), "small");
  writeFileSync(join(folder, "tree/empty"), "");
  return big;
}

describe("rclone", () => {
  const rclone = (...args: string[]) => {
    const config = {
      RCLONE_CONFIG_L_TYPE: "s3",
      RCLONE_CONFIG_L_PROVIDER: "Other",
      RCLONE_CONFIG_L_ENDPOINT: server.url,
      RCLONE_CONFIG_L_ACCESS_KEY_ID: user,
      RCLONE_CONFIG_L_SECRET_ACCESS_KEY: secret,
    };
    const parts = ["--s3-upload-cutoff", "10M", "--s3-chunk-size", "5M"];
    return run("rclone", ["--config", "/dev/null", ...parts, ...args], config);
  };

  test("copies a tree there and back, in parts too, checks it, syncs by times, moves, and purges it", async () => {
    const big = makeTree();
    utimesSync(join(folder, "tree/big.bin"), 1_000_000_000.75, 1_000_000_000.75);
    await rclone("mkdir", "l:bucket");
    await rclone("copy", "tree", "l:bucket/there");
    expect(await rclone("check", "--download", "tree", "l:bucket/there")).toMatch(/0 differences found/);
    expect(await rclone("lsf", "-R", "l:bucket/there")).toContain("in/deep/ä & b+c.txt");
    await rclone("copy", "l:bucket/there", "back");
    expect(sha256(readFileSync(join(folder, "back/big.bin")))).toBe(sha256(big));
    expect(Math.floor(statSync(join(folder, "back/big.bin")).mtimeMs / 1_000)).toBe(1_000_000_000);
    const copies = /Copied|Updated modification time/;
    expect(await rclone("sync", "-v", "tree", "l:bucket/there")).not.toMatch(copies);
    utimesSync(join(folder, "tree/empty"), 1_100_000_000, 1_100_000_000);
    writeFileSync(join(folder, "tree/in/deep/ä & b+c.txt"), "changed");
    expect(await rclone("sync", "-v", "tree", "l:bucket/there")).toMatch(copies);
    expect(await rclone("sync", "-v", "tree", "l:bucket/there")).not.toMatch(copies);
    expect(files.bytesOf("bucket/there/in/deep/ä & b+c.txt")?.toString()).toBe("changed");
    await rclone("moveto", "l:bucket/there/in", "l:bucket/out");
    expect(await rclone("cat", "--offset", "2", "--count", "3", "l:bucket/out/deep/ä & b+c.txt")).toBe("ang");
    expect(files.paths).toEqual([
      "bucket/out/deep/ä & b+c.txt",
      "bucket/there/big.bin",
      "bucket/there/empty",
    ]);
    await rclone("purge", "l:bucket");
    expect(await files.entry("bucket")).toBeUndefined();
  });
});

describe("s3cmd", () => {
  const s3cmd = (...args: string[]) => {
    const host = new URL(server.url).host;
    const how = ["--no-ssl", `--host=${host}`, `--host-bucket=${host}`];
    return run("s3cmd", [
      "-c",
      "/dev/null",
      `--access_key=${user}`,
      `--secret_key=${secret}`,
      ...how,
      ...args,
    ]);
  };

  test("makes a bucket, puts in parts, lists, gets, copies, moves, removes", async () => {
    const big = makeTree();
    await s3cmd("mb", "s3://bucket");
    await s3cmd(
      "put",
      "--multipart-chunk-size-mb=5",
      "--add-header=x-amz-meta-a:1",
      "tree/big.bin",
      "s3://bucket/big.bin",
    );
    await s3cmd("sync", "tree/", "s3://bucket/tree/");
    expect(await s3cmd("sync", "tree/", "s3://bucket/tree/")).not.toMatch(/upload: /);
    expect(await s3cmd("ls", "s3://bucket")).toMatch(
      /DIR\s+s3:\/\/bucket\/tree\/[\s\S]*23000001\s+s3:\/\/bucket\/big\.bin/,
    );
    expect(await s3cmd("ls", "-r", "s3://bucket")).toContain("s3://bucket/tree/in/deep/ä & b+c.txt");
    await s3cmd("get", "s3://bucket/big.bin", "back.bin");
    expect(sha256(readFileSync(join(folder, "back.bin")))).toBe(sha256(big));
    await s3cmd("cp", "s3://bucket/tree/empty", "s3://bucket/copy");
    await s3cmd("mv", "s3://bucket/copy", "s3://bucket/moved");
    expect(await s3cmd("info", "s3://bucket/big.bin")).toMatch(/x-amz-meta-a:\s+1/);
    expect(await s3cmd("ls")).toContain("s3://bucket");
    await s3cmd("del", "-r", "-f", "s3://bucket");
    await s3cmd("rb", "s3://bucket");
    expect(files.paths).toEqual([]);
  });
});

describe("restic", () => {
  test("makes a repository, backs up twice, checks all data, restores, forgets and prunes", async () => {
    const big = makeTree();
    const keys = {
      AWS_ACCESS_KEY_ID: user,
      AWS_SECRET_ACCESS_KEY: secret,
      RESTIC_PASSWORD: "p",
      RESTIC_REPOSITORY: `s3:${server.url}/backups/repository`,
    };
    const restic = (...args: string[]) => run("restic", ["--no-cache", ...args], keys);
    await restic("init");
    await restic("backup", "tree");
    writeFileSync(join(folder, "tree/empty"), "no more");
    await restic("backup", "tree");
    expect(await restic("check", "--read-data")).toMatch(/no errors were found/);
    await restic("restore", "latest", "--target", "back");
    expect(sha256(readFileSync(join(folder, "back/tree/big.bin")))).toBe(sha256(big));
    await restic("forget", "--keep-last", "1", "--prune");
    expect(await restic("snapshots")).toMatch(/1 snapshots/);
    expect(await restic("check")).toMatch(/no errors were found/);
  });
});

/** Empties the bucket like common tools: object by object, in the order of the keys. */
async function empty(bucket: string): Promise<void> {
  for (const path of files.paths) if (path.startsWith(`${bucket}/`)) await files.remove(path);
}

describe("our own stores on S3", () => {
  const environment = { AWS_ACCESS_KEY_ID: user, AWS_SECRET_ACCESS_KEY: secret };
  const address = (bucket: string) => new URL(`s3://${bucket}/some/where?endpoint=${server.url}`);
  let grounds = 0;
  /** Names of 512 bytes would make keys that are longer than paths can be. */
  const cases = storeConformanceCases("atomic").filter(({ name }) => !/similar names/.test(name));
  test.each(cases)("conform: $name", async ({ run: runCase }) => {
    const bucket = `ground-${grounds++}`;
    await files.makeFolder(bucket);
    const conforms = runCase({
      kind: "atomic",
      open: (writer) => openS3Store(address(bucket), { writer, environment }),
      forget: () => empty(bucket),
      close: async () => undefined,
    });
    await expect(conforms).resolves.toBeUndefined();
  });

  test("take names of 420 bytes, and fail for those whose keys would be longer than a path", async () => {
    await files.makeFolder("long");
    const store = await openS3Store(address("long"), { writer: "test", environment });
    onTestFinished(() => store.close());
    const kindOf = async (length: number) =>
      (await store.perform({ op: "read", register: "r".repeat(length) })).kind;
    expect([await kindOf(420), await kindOf(512)]).toEqual(["cells", "failed"]);
  });

  test("are fit for leases: two programs take turns on delta+s3", async () => {
    for (const name of Object.keys(environment) as (keyof typeof environment)[]) {
      const before = process.env[name];
      process.env[name] = environment[name];
      onTestFinished(() => {
        if (before === undefined) delete process.env[name];
        else process.env[name] = before;
      });
    }
    await files.makeFolder("leases");
    const leases = (): Promise<Leases> => open(`delta+s3://leases/x?endpoint=${server.url}`);
    await using one = await leases();
    await using other = await leases();
    const tokens: bigint[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const lease = await (turn % 2 === 0 ? one : other).acquire("job", { ttl: "6s" });
      tokens.push(lease.token);
      expect(await (turn % 2 === 0 ? other : one).tryAcquire("job", { ttl: "6s" })).toBeUndefined();
      await lease.release();
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
  });
});

describe("aws4fetch", () => {
  test("signs requests that the server takes, and their bodies", async () => {
    const aws = new AwsClient({
      accessKeyId: user,
      secretAccessKey: secret,
      service: "s3",
      region: "any",
      retries: 0,
    });
    const ask = (path: string, init: RequestInit = {}) => aws.fetch(`${server.url}/${path}`, init);
    expect((await ask("bucket", { method: "PUT" })).status).toBe(200);
    expect((await ask("bucket/a/b", { method: "PUT", body: "content" })).status).toBe(200);
    expect(await (await ask("bucket/a/b")).text()).toBe("content");
    const wrong = { "x-amz-content-sha256": "0".repeat(64) };
    const answer = await ask("bucket/a/c", { method: "PUT", body: "content", headers: wrong });
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringContaining("XAmzContentSHA256Mismatch"),
    ]);
    const md5 = { "content-md5": "AAAAAAAAAAAAAAAAAAAAAA==" };
    expect((await ask("bucket/a/c", { method: "PUT", body: "content", headers: md5 })).status).toBe(400);
    expect(files.paths).toEqual(["bucket/a/b"]);
    for (const query of ["acl", "tagging", "versions", "policy"])
      expect((await ask(`bucket?${query}`)).status).toBe(501);
  });
});
