import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { MemoryFiles } from "../../../../test/support/memory-files.js";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { hashOf } from "../users/password.js";
import { openUsers } from "../users/users.js";
import { LeaseholdError } from "leasehold/common";
import { follow } from "./follow.js";
import { serveWebdav } from "./server.js";

const open: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

interface Event {
  readonly id: string;
  readonly data: { readonly what: string; readonly path: string } | undefined;
}

/** A client of server-sent events. */
class Client {
  readonly status: number;
  readonly #response: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = "";

  private constructor(response: Response) {
    this.#response = response;
    this.status = response.status;
    this.#reader = response.body!.getReader();
    open.unshift(() => this.#reader.cancel());
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<Client> {
    return new Client(await fetch(url, { headers: { accept: "text/event-stream", ...headers } }));
  }

  get code(): string | null {
    return this.#response.headers.get("leasehold-error");
  }

  /** The next event, or undefined at the end. */
  async next(): Promise<Event | undefined> {
    while (!this.#text.includes("\n\n")) {
      const { value, done } = await this.#reader.read();
      if (done) return undefined;
      this.#text += Buffer.from(value).toString();
    }
    const at = this.#text.indexOf("\n\n");
    const event = this.#text.slice(0, at);
    this.#text = this.#text.slice(at + 2);
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(event)?.[1];
    const data = field("data");
    return { id: field("id") ?? "", data: data === undefined ? undefined : JSON.parse(data) };
  }

  async paths(count: number): Promise<string[]> {
    const paths: string[] = [];
    while (paths.length < count) {
      const { data } = (await this.next())!;
      if (data !== undefined) paths.push(`${data.what} ${data.path}`);
    }
    return paths;
  }
}

async function served(options: Parameters<typeof serveWebdav>[2] = {}) {
  const files = new MemoryFiles();
  const server = await serveWebdav(files, new MemoryCluster().open("a"), options);
  open.push(() => server.close());
  return { files, url: server.url };
}

test("a folder's changes are sent as they come, and from the last event that a client has seen", async () => {
  const { files, url } = await served();
  const client = await Client.open(`${url}/d`);
  const begin = await client.next();
  expect([client.status, begin?.data]).toEqual([200, undefined]);
  await files.set("d/\u00e4", "1");
  await files.set("other", "1");
  await files.rename("d/\u00e4", "d/b");
  expect((await client.next())?.data).toMatchObject({ what: "created", path: "d", kind: "folder" });
  const created = (await client.next())!;
  expect(created.data).toMatchObject({ what: "created", path: "d/\u00e4", kind: "file", size: 1 });
  expect((await client.next())?.data).toMatchObject({ what: "renamed", path: "d/b", from: "d/\u00e4" });
  const again = await Client.open(`${url}/d/`, { "last-event-id": created.id });
  expect((await again.next())?.data).toMatchObject({ what: "renamed", path: "d/b" });
  for (let at = 0; at < 10; at += 1) await files.set(`more${at}`, "");
  const late = await Client.open(`${url}/d`, { "last-event-id": created.id });
  expect([late.status, late.code]).toEqual([410, "CURSOR_GONE"]);
});

test("a follower is told that its node closes", async () => {
  const { url } = await served();
  const client = await Client.open(url);
  await client.next();
  void open.pop()!();
  expect([await client.next(), await client.next()]).toMatchObject([{ data: { code: "CLOSED" } }, undefined]);
});

test("64 followers leave room for other requests", async () => {
  const { files, url } = await served();
  await files.set("x", "1");
  const all = await Promise.all(Array.from({ length: 70 }, () => Client.open(url)));
  for (const client of all) expect((await client.next())?.id).toMatch(/./);
  expect(await (await fetch(`${url}/x`)).text()).toBe("1");
});

test("a user follows what it may read, and no longer than it may", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-follow-"));
  open.push(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "users");
  const hash = await hashOf("secret", 4);
  writeFileSync(path, `ann ${hash} r:/ann\n`);
  const users = await openUsers(path, { everyMs: 20 });
  open.unshift(() => users.close());
  const { files, url } = await served({ users });
  const authorization = `Basic ${Buffer.from("ann:secret").toString("base64")}`;
  const statusOf = async (at: string, headers = { authorization }) =>
    (await Client.open(url + at, headers)).status;
  expect(await Promise.all([statusOf("/"), statusOf("/bob"), statusOf("/an")])).toEqual([404, 404, 404]);
  expect((await fetch(`${url}/ann`, { headers: { accept: "text/event-stream" } })).status).toBe(401);
  const client = await Client.open(`${url}/ann`, { authorization });
  await client.next();
  await files.set("bob/x", "1");
  await files.set("ann/x", "1");
  await files.rename("bob/x", "ann/y");
  await files.rename("ann/x", "bob/z");
  expect(await client.paths(4)).toEqual(["created ann", "created ann/x", "created ann/y", "removed ann/x"]);
  writeFileSync(path, `ann ${hash} r:/bob\n`);
  while (users.named("ann")?.rights.mayRead("ann") === true)
    await new Promise((resolve) => setTimeout(resolve, 20));
  await files.set("ann/later", "1");
  expect((await client.next())?.data).toEqual({ code: "PERMISSION_DENIED" });
  expect(await client.next()).toBeUndefined();
});

test("a follower waits while its password cannot be checked, and is ended when its user is gone", async () => {
  const files = new MemoryFiles();
  let answer: () => Promise<unknown> = async () => undefined;
  const followed = new AbortController();
  const server = createServer((request, response) => {
    void follow(files, "", request, response, () => answer(), followed.signal);
  });
  open.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => followed.abort(),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = await Client.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await client.next();
  let looks = 0;
  answer = async () => {
    if ((looks += 1) < 3) throw new LeaseholdError("OVERLOADED");
  };
  await files.set("x", "1");
  expect((await client.next())?.data).toMatchObject({ path: "x" });
  expect(looks).toBe(3);
  answer = async () => {
    throw new LeaseholdError("FILE_NOT_FOUND");
  };
  await files.set("y", "1");
  expect((await client.next())?.data).toEqual({ code: "PERMISSION_DENIED" });
  expect(await client.next()).toBeUndefined();
});
