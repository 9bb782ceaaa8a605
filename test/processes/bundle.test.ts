import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { lstatSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { leasehold } from "../support/built.js";

/** `leasehold doctor --bundle`: its contents, and that it contains no secret. */

let folder = "";
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "leasehold-bundle-"))));
afterAll(() => rmSync(folder, { recursive: true }));

interface Bundle {
  readonly examination: Readonly<Record<string, unknown>>;
  readonly options: { readonly endpoints: readonly string[] };
  readonly environment: Readonly<Record<string, string>>;
  readonly servers: readonly { readonly metrics: string; readonly readyz: string }[];
  readonly files: readonly { readonly path: string; readonly end?: string; readonly error?: string }[];
}

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

async function bundle(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const path = join(folder, "report.json.gz");
  const running = leasehold(["doctor", "--bundle", path, ...words], { env: { ...process.env, ...env } });
  const { code } = await running.finished;
  const text = gunzipSync(readFileSync(path)).toString();
  return { code, path, text, document: JSON.parse(text) as Bundle };
}

test("a bundle has states, options, metrics and the end of a log", async () => {
  const server = createServer((request, response) => response.end(`what ${request.url} says`)).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
  const metrics = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stores = ["x", "y", "z"].map((name) => join(folder, name)).join();
  // The last megabyte begins within the word.
  const [cut, last] = ["word=hunter2-cut\n", "\nthe last line"];
  const log = file("member.log", `pass${cut}${"-".repeat(1024 * 1024 - cut.length - last.length)}${last}`);
  // Another user's file, readable for everybody.
  const elsewhere = file("elsewhere", "former");
  symlinkSync(elsewhere, join(folder, "report.json.gz"));
  const words = ["--endpoints", `delta+file://${stores}`, "--duration", "100ms", "--metrics", metrics];
  const { document, path } = await bundle([...words, "--include", log, "--include", "missing.log"]);
  server.close();
  expect(document).toMatchObject({
    bundle: 1,
    leasehold: expect.stringMatching(/^\d/),
    machine: { node: process.versions.node, platform: process.platform },
    clocks: { systemMs: expect.any(Number), steadyMs: expect.any(Number) },
    options: { endpoints: [`delta+file://${stores}`] },
  });
  expect(document.examination["stores"]).toHaveLength(3);
  expect(document.servers[0]).toMatchObject({
    metrics: expect.stringContaining("what /metrics says"),
    readyz: expect.stringContaining("what /readyz?verbose says"),
  });
  expect(document.files[0]!.end!.length).toBeLessThanOrEqual(1024 * 1024);
  expect(document.files[0]!.end).toMatch(/the last line$/);
  expect(document.files[1]!.error).toContain("ENOENT");
  // Other users of this machine can't read it.
  expect(statSync(path).mode & 0o77).toBe(0);
  expect([lstatSync(path).isFile(), readFileSync(elsewhere, "utf8")]).toEqual([true, "former"]);
  expect(gunzipSync(readFileSync(path)).toString()).not.toContain("hunter2-cut");
});

test("a bundle contains no secret, even if its examination failed", async () => {
  const clusterKey = randomBytes(32).toString("hex");
  const pemBody = randomBytes(96).toString("base64");
  const pem = `-----BEGIN PRIVATE KEY-----\n${pemBody}\n-----END PRIVATE KEY-----\n`;
  const passwords = ["hunter2hunter2", "correct-horse", "s3cr3t-of-env", "battery-staple"] as const;
  const [inAddress, inLog, inEnvironment, inConfig] = passwords;
  const keyFile = file("cluster.key", `member: ${clusterKey}\n`);
  const log = file(
    "log",
    `started with ${clusterKey}\n${pem}\nredis://me:${inLog}@h/0 failed\n${JSON.stringify({ pem })}\n`,
  );
  const config = file("config.json", JSON.stringify({ id: "a", redisPassword: inConfig, key: clusterKey }));
  const endpoint = `delta+redis://me:${inAddress}@127.0.0.1:1`;
  const words = ["--endpoints", endpoint, "--timeout", "200ms", "--duration", "100ms", "--key-file", keyFile];
  const env = { LEASEHOLD_FILES_USER: `me:${inEnvironment}` };
  const { document, text } = await bundle(
    [...words, "--include", log, "--include", config, "--include", keyFile],
    env,
  );
  for (const secret of [clusterKey, pemBody, pemBody.slice(0, 40), ...passwords])
    expect(text).not.toContain(secret);
  // Text that is not secret is kept.
  expect(document.options.endpoints).toEqual(["delta+redis://me:[removed]@127.0.0.1:1"]);
  expect(document.environment["LEASEHOLD_FILES_USER"]).toBe("[removed]");
  expect(document.files[0]!.end).toContain("started with [removed]");
  expect(text).toContain(JSON.stringify(keyFile));
  expect(JSON.stringify(document.examination)).toContain("STORE_UNAVAILABLE");
});

test("--include and --metrics without --bundle are refused", async () => {
  const { code, stderr } = await leasehold(["doctor", "--include", "log"]).finished;
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("--bundle") });
});
