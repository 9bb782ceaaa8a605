import { createHash, randomBytes } from "node:crypto";
import { type ClientRequest, request } from "node:http";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { freePorts } from "../../../../test/free-ports.js";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { MemoryBlockStore } from "../memory-store.js";
import { startFiles } from "../node/start.js";
import type { Files } from "../types.js";
import { type WebdavServer, serveWebdav } from "./server.js";

/** Three nodes on real sockets. Two or more clients change their files concurrently over WebDAV. */

const names = ["a", "b", "c"];
let leases: MemoryCluster;
/** The leases' clock runs with the machine's. */
let ticking: NodeJS.Timeout;
let nodes: Map<
  string,
  { readonly files: Files; readonly front: WebdavServer; readonly store: MemoryBlockStore }
>;

beforeEach(async () => {
  leases = new MemoryCluster();
  ticking = setInterval(() => void leases.advance("20ms"), 20);
  nodes = new Map();
  const ports = await freePorts(names.length);
  const addresses = Object.fromEntries(names.map((name, index) => [name, `127.0.0.1:${ports[index]}`]));
  for (const node of names) {
    const store = new MemoryBlockStore();
    const ground = leases.open(node);
    const files = await startFiles({ node, nodes: addresses, leases: ground, store, timeout: "5s" });
    nodes.set(node, { files, front: await serveWebdav(files, ground), store });
  }
  const isServing = (): boolean =>
    [...nodes.values()].every(({ files }) => files.status().state === "serving");
  while (!isServing()) await new Promise((resolve) => setTimeout(resolve, 20));
});
afterEach(async () => {
  clearInterval(ticking);
  for (const { files, front } of nodes.values()) {
    await front.close();
    await files.close();
  }
});

const urlAt = (node: string, path: string) => `${nodes.get(node)!.front.url}/${path}`;
const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex").slice(0, 12);

async function put(node: string, path: string, content: Uint8Array | string, headers = {}): Promise<number> {
  const answer = await fetch(urlAt(node, path), { method: "PUT", body: content as string, headers });
  await answer.text();
  return answer.status;
}

async function get(node: string, path: string): Promise<Uint8Array | undefined> {
  const answer = await fetch(urlAt(node, path));
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return answer.status === 200 ? bytes : undefined;
}

/** An upload that has sent its first bytes, and continues when the test says so. */
async function begun(node: string, path: string, bytes: Uint8Array, length: number): Promise<Upload> {
  const sent = request(urlAt(node, path), { method: "PUT", headers: { "content-length": length } });
  const status = new Promise<number | undefined>((resolve) => {
    sent.on("response", (answer) => resolve(answer.resume().statusCode));
    sent.on("error", () => resolve(undefined));
  });
  await new Promise<void>((resolve) => sent.write(bytes, () => resolve()));
  await new Promise((resolve) => setTimeout(resolve, 300));
  return { sent, status };
}

interface Upload {
  readonly sent: ClientRequest;
  readonly status: Promise<number | undefined>;
}

const mebibytes = (count: number) => randomBytes(count * 2 ** 20);

describe("an upload that has begun", () => {
  test("and breaks off leaves what another client has put there meanwhile", async () => {
    const upload = await begun("a", "x", mebibytes(4), 10 * 2 ** 20);
    const theirs = mebibytes(4);
    expect([201, 204]).toContain(await put("b", "x", theirs));
    upload.sent.destroy();
    await upload.status;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(hash((await get("c", "x")) ?? new Uint8Array())).toBe(hash(theirs));
  });

  test("and goes on replaces what another client has put there meanwhile, whole", async () => {
    const ours = mebibytes(6);
    const upload = await begun("a", "x", ours.subarray(0, 4 * 2 ** 20), ours.length);
    expect([201, 204]).toContain(await put("b", "x", mebibytes(4)));
    upload.sent.end(ours.subarray(4 * 2 ** 20));
    expect([201, 204]).toContain(await upload.status);
    expect(hash((await get("c", "x"))!)).toBe(hash(ours));
  });

  test("is not seen before it is whole, and a name that does not exist costs no lease", async () => {
    const upload = await begun("a", "x", mebibytes(4), 10 * 2 ** 20);
    expect(await get("b", "x")).toBeUndefined();
    expect(
      await (await fetch(urlAt("c", ""), { method: "PROPFIND", headers: { depth: "1" } })).text(),
    ).not.toContain("/x<");
    upload.sent.destroy();
    const before = [...nodes.values()].map(({ files }) => files.status().counters.resets);
    for (let count = 0; count < 20; count += 1) expect(await get("b", `missing/${count}`)).toBeUndefined();
    expect([...nodes.values()].map(({ files }) => files.status().counters.resets)).toEqual(before);
  });
});

test("of two clients that put one path at once one wins, and readers see a whole content", async () => {
  expect(await put("a", "x", mebibytes(2))).toBe(201);
  for (let round = 0; round < 4; round += 1) {
    const known = new Set([hash((await get("a", "x"))!)]);
    const contents = [mebibytes(3), mebibytes(2)];
    for (const content of contents) known.add(hash(content));
    const puts = Promise.all(contents.map((content, index) => put(names[index]!, "x", content)));
    const over = new AbortController();
    void puts.then(() => over.abort());
    while (!over.signal.aborted) {
      const read = await get("c", "x");
      expect(read === undefined ? "none" : known.has(hash(read))).toBe(true);
    }
    expect((await puts).every((status) => status === 201 || status === 204)).toBe(true);
    const last = hash((await get("c", "x"))!);
    expect(contents.map(hash)).toContain(last);
    expect(hash((await get("b", "x"))!)).toBe(last);
  }
});

test("of two clients that create one path with If-None-Match one is refused", async () => {
  const only = { "if-none-match": "*" };
  for (let round = 0; round < 5; round += 1) {
    const both = [put("a", `n${round}`, "one", only), put("b", `n${round}`, "two", only)];
    expect((await Promise.all(both)).sort()).toEqual([201, 412]);
  }
});

test("of two replacements with one If-Match one is refused", async () => {
  await put("a", "x", "old");
  for (let round = 0; round < 5; round += 1) {
    const etag = (await fetch(urlAt("c", "x"), { method: "HEAD" })).headers.get("etag")!;
    const both = ["a", "b"].map((node) => put(node, "x", mebibytes(1), { "if-match": etag }));
    expect((await Promise.all(both)).sort()).toEqual([204, 412]);
  }
});

test("a node that dies in a replacing PUT leaves the old content", async () => {
  const old = mebibytes(5);
  expect(await put("b", "x", old)).toBe(201);
  const upload = await begun("a", "x", mebibytes(4), 10 * 2 ** 20);
  const { files, front } = nodes.get("a")!;
  nodes.delete("a");
  upload.sent.destroy();
  await Promise.all([files.close(), front.close()]);
  expect(hash((await get("b", "x"))!)).toBe(hash(old));
});

test("a folder is renamed over another, and its old name is gone at once", async () => {
  for (const path of ["from", "to"]) await fetch(urlAt("a", path), { method: "MKCOL" });
  for (const name of ["1", "2", "3"]) await put("a", `from/${name}`, name);
  await put("a", "to/other", "other");
  const destination = urlAt("b", "to");
  expect((await fetch(urlAt("b", "from"), { method: "MOVE", headers: { destination } })).status).toBe(204);
  for (const name of ["1", "2", "3"])
    expect(new TextDecoder().decode(await get("c", `to/${name}`))).toBe(name);
  expect(await get("c", "to/other")).toBeUndefined();
  expect(await get("c", "from/1")).toBeUndefined();
});

test("the time of modification that a client gives at one node is told by the others", async () => {
  const time = { "x-oc-mtime": "1000000000" };
  expect(await put("a", "x", "1", time)).toBe(201);
  expect(await put("a", "empty", "", time)).toBe(201);
  for (const path of ["x", "empty"]) {
    const answer = await fetch(urlAt("c", path), { method: "HEAD" });
    expect(answer.headers.get("last-modified")).toBe("Sun, 09 Sep 2001 01:46:40 GMT");
  }
  const { files } = nodes.get("c")!;
  const { version } = await files.stat("x");
  await files.touch("x", { modifiedMs: 1_000, ifVersion: version });
  expect(await nodes.get("a")!.files.stat("x")).toMatchObject({ version, modifiedMs: 1_000 });
  await expect(files.touch("x", { modifiedMs: 2_000, ifVersion: "0.1" })).rejects.toMatchObject({
    code: "FILE_CHANGED",
  });
  await expect(files.touch("y", { modifiedMs: 2_000 })).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  await expect(files.touch("x", { modifiedMs: 8.64e15 + 1 })).rejects.toMatchObject({
    code: "INVALID_RANGE",
  });
  await (await files.open("live", { create: "always" })).append(Buffer.from("1"));
  await expect(files.touch("live", { modifiedMs: 2_000 })).rejects.toMatchObject({ code: "UNSUPPORTED" });
  for (const modifiedMs of [8.64e15 + 1, 0.5, NaN])
    await expect(nodes.get("a")!.files.put("x", Readable.from([]), { modifiedMs })).rejects.toMatchObject({
      code: "INVALID_RANGE",
    });
  await nodes.get("a")!.files.put("x", Readable.from([]), { modifiedMs: 8.64e15 });
  expect(await nodes.get("b")!.files.stat("x")).toMatchObject({ size: 0, modifiedMs: 8.64e15 });
});

test("what is removed leaves nothing on any disk in the end", async () => {
  await put("a", "x", mebibytes(1));
  expect((await fetch(urlAt("b", "x"), { method: "DELETE" })).status).toBe(204);
  expect(await get("c", "x")).toBeUndefined();
});
