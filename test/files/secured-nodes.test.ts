import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FilesStatus } from "../../packages/files/src/types.js";
import type { TlsFiles } from "../../packages/leasehold/src/runtime/options.js";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";
import { Authority } from "../support/pki.js";

/** `leasehold files serve` as three processes that authenticate each other. */

const authority = new Authority();
afterAll(() => authority.remove());

const main = join(dist, "cli/main.js");
const ids = ["a", "b", "c"] as const;
type Id = (typeof ids)[number];
const user = "me:secret";
const content = randomBytes(3_000_000);

let folder: string;
let ports: readonly number[];
let nodes: Map<Id, ChildProcess>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-secured-"));
  ports = await freePorts(9);
  nodes = new Map();
  writeFileSync(join(folder, "here"), content);
});
afterEach(async () => {
  for (const child of nodes.values()) child.kill("SIGKILL");
  await Promise.all(
    [...nodes.values()].map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit")),
  );
  rmSync(folder, { recursive: true });
});

const at = (group: number, id: Id): string => `127.0.0.1:${ports[group * 3 + ids.indexOf(id)]}`;

const shortLeases = ["--ttl-max", "2500ms", "--max-clock-skew", "50ms"];

/** Starts a node, and waits for its first line. */
async function serve(id: Id, ...more: readonly string[]): Promise<string> {
  const dir = join(folder, id);
  mkdirSync(dir, { recursive: true });
  const lists = ids.flatMap((each) => [
    "--node",
    `${each}=${at(1, each)}`,
    "--member",
    `${each}=${at(2, each)}`,
  ]);
  const own = ["--id", id, "--dir", dir, "--http", at(0, id)];
  const env = { ...process.env, LEASEHOLD_FILES_USER: user };
  const child = spawn(process.execPath, [main, "files", "serve", ...own, ...lists, ...more], {
    env,
  });
  nodes.set(id, child);
  return new Promise((resolve) => {
    child.stdout.on("data", (text) => resolve(String(text)));
    child.stderr.on("data", (text) => String(text).startsWith("leasehold:") && resolve(String(text)));
  });
}

async function client(...args: readonly string[]) {
  const urls = ids.map((id) => `https://${at(0, id)}`).join();
  const env = { ...process.env, LEASEHOLD_FILES_USER: user, LEASEHOLD_NODES: urls };
  const child = spawn(process.execPath, [main, "files", ...args], { cwd: folder, env });
  let [text, err] = ["", ""];
  child.stdout.on("data", (bytes) => (text += String(bytes)));
  child.stderr.on("data", (bytes) => (err += String(bytes)));
  const [code] = (await once(child, "close")) as [number];
  return { code, text, err };
}

/** Puts a file, kills the primary of names, and returns whether the file is available again. */
async function survivesItsPrimary(...trust: readonly string[]): Promise<boolean> {
  expect(await client("put", "here", "there", ...trust)).toMatchObject({ code: 0 });
  const found = JSON.parse((await client("status", "-o", "json", ...trust)).text) as {
    status?: FilesStatus;
  }[];
  const primary = found.find(({ status }) => status?.primaries.some(({ path }) => path === "names"));
  const killed = nodes.get(primary!.status!.node as Id)!;
  killed.kill("SIGKILL");
  await once(killed, "exit");
  expect(await client("get", "there", "back", ...trust)).toMatchObject({ code: 0 });
  return readFileSync(join(folder, "back")).equals(content);
}

const flags = ({ ca, cert, key }: TlsFiles) => ["--tls-ca", ca, "--tls-cert", cert, "--tls-key", key];

describe("three nodes as processes", () => {
  test("with certificates keep a file whose primary is killed, and use the certificates for clients, too", async () => {
    const certificate = (id: Id) => authority.for(`member/${id}`, "prod");
    const started = ids.map((id) => serve(id, "--cluster", "prod", ...flags(certificate(id))));
    expect(await Promise.all(started)).toEqual(ids.map((id) => `${id} serves https://${at(0, id)}\n`));
    const ours = ["--tls-ca", authority.caFile, "--cluster", "prod"];
    expect(await survivesItsPrimary(...ours)).toBe(true);
    const trust = ["--tls-ca", authority.caFile];
    expect(await client("ls", ...trust)).toMatchObject({
      code: 77,
      err: expect.stringMatching(/not in the cert/),
    });
    expect(await client("ls")).toMatchObject({
      code: 77,
      err: expect.stringMatching(/certificate.*--tls-ca/),
    });
    expect(await client("ls", ...ours, "--user", "me:wrong")).toMatchObject({ code: 77 });
  });

  test("with the key of members keep it, too, with a certificate for clients only", async () => {
    const keys = ["member", "client"].map((role) => `${role}: ${randomBytes(32).toString("hex")}\n`).join("");
    const keyFile = join(folder, "cluster.key");
    writeFileSync(keyFile, keys);
    const { cert, key } = authority.issue(["subjectAltName = IP:127.0.0.1"]);
    const shown = ["--http-cert", cert, "--http-key", key];
    await Promise.all(ids.map((id) => serve(id, "--key-file", keyFile, ...shortLeases, ...shown)));
    expect(await survivesItsPrimary("--tls-ca", authority.caFile)).toBe(true);
  });

  test("report what is wrong with a certificate that the others would refuse", async () => {
    expect(await serve("a", ...flags(authority.for("client")))).toMatch(/not allow to be a member/);
    expect(await serve("b", ...flags(authority.for("member/a")))).toMatch(/member "a" and not for "b"/);
    const wrong = join(folder, "none.pem");
    const shown = ["--http-cert", wrong, "--http-key", wrong];
    expect(await serve("c", ...flags(authority.for("member/c")), ...shown)).toMatch(
      /cannot read .*none\.pem/,
    );
    await expect.poll(() => [...nodes.values()].map(({ exitCode }) => exitCode)).toEqual([2, 2, 2]);
  });
});
