import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryFiles } from "../../../../test/support/memory-files.js";
import { LeaseholdError, type Leases } from "leasehold/common";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { leaseLocks } from "./lease-locks.js";
import { Locks } from "./locks.js";
import type { Refusal } from "./refusal.js";
import { type WebdavServer, serveWebdav } from "./server.js";

let files: MemoryFiles;
let cluster: MemoryCluster;
let faults: string[];
const servers: WebdavServer[] = [];
const opened: Leases[] = [];

beforeEach(() => {
  files = new MemoryFiles();
  cluster = new MemoryCluster();
  faults = [];
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  for (const leases of opened.splice(0)) await leases.close();
  if (faults.length > 0) throw new Error(faults.join());
});

/** A node's server. All servers of a test belong to one cluster. */
async function front(more: { credentials?: string } = {}): Promise<string> {
  const leases = cluster.open(`node-${opened.length}`);
  opened.push(leases);
  const server = await serveWebdav(files, leases, { fault: (text) => faults.push(text), ...more });
  servers.push(server);
  return server.url;
}

type Headers = Record<string, string>;

async function ask(method: string, url: string, headers: Headers = {}, body?: string | Uint8Array) {
  const answer = await fetch(url, { method, headers, ...(body !== undefined && { body: body as string }) });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

const statusOf = async (...args: Parameters<typeof ask>) => (await ask(...args)).status;

const lockBody =
  '<d:lockinfo xmlns:d="DAV:"><d:lockscope><d:exclusive/></d:lockscope><d:locktype><d:write/></d:locktype><d:owner>me &amp; you</d:owner></d:lockinfo>';

describe("files and folders", () => {
  test("are put, read, listed, moved, copied and removed", async () => {
    const url = await front();
    expect(await statusOf("PUT", `${url}/no/a`, {}, "x")).toBe(409);
    expect(await statusOf("MKCOL", `${url}/r`)).toBe(201);
    expect(await statusOf("MKCOL", `${url}/r`)).toBe(405);
    expect(await statusOf("PUT", `${url}/r/${encodeURIComponent("ä & b")}`, {}, "hello")).toBe(201);
    expect(await statusOf("PUT", `${url}/r/${encodeURIComponent("ä & b")}`, {}, "hello again")).toBe(204);
    expect((await ask("GET", `${url}/r/${encodeURIComponent("ä & b")}`)).text).toBe("hello again");
    const list = await ask("PROPFIND", `${url}/r/`, { depth: "1" });
    expect(list.status).toBe(207);
    expect(list.text).toContain("<D:href>/r/</D:href>");
    expect(list.text).toContain("<D:href>/r/%C3%A4%20%26%20b</D:href>");
    expect(list.text).toContain("<D:displayname>ä &amp; b</D:displayname>");
    expect(list.text).toContain("<D:getcontentlength>11</D:getcontentlength>");
    expect(await statusOf("MOVE", `${url}/r`, { destination: `${url}/s` })).toBe(201);
    expect(await statusOf("COPY", `${url}/s/`, { destination: "/t" })).toBe(201);
    expect(await statusOf("COPY", `${url}/s/`, { destination: "/t", overwrite: "F" })).toBe(412);
    expect(await statusOf("DELETE", `${url}/s`)).toBe(204);
    expect(files.paths).toEqual(["t/ä & b"]);
  });

  test("a folder with several pages of files and folders lists each once", async () => {
    const url = await front();
    for (const name of ["a-b", "a/1", "a/2", "a/3", "a/4", "a/5", "a0", "b/c/d", "b/e", "z"])
      await files.set(name, "");
    const { text } = await ask("PROPFIND", `${url}/`, { depth: "1" });
    const names = [...text.matchAll(/<D:href>([^<]*)<\/D:href>/g)].map((match) => match[1]);
    expect(names).toEqual(["/", "/a-b", "/a/", "/a0", "/b/", "/z"]);
  });

  test("requested ranges are served, and invalid ones refused", async () => {
    const url = await front();
    const content = Buffer.alloc(3_000_000, "0123456789");
    await ask("PUT", `${url}/big`, {}, content);
    const some = await ask("GET", `${url}/big`, { range: "bytes=1000005-2100004" });
    expect([some.status, some.headers.get("content-range")]).toEqual([206, "bytes 1000005-2100004/3000000"]);
    expect(some.text === content.toString("latin1", 1_000_005, 2_100_005)).toBe(true);
    expect((await ask("GET", `${url}/big`, { range: "bytes=-3" })).text).toBe("789");
    expect(await statusOf("GET", `${url}/big`, { range: "bytes=3000000-" })).toBe(416);
    expect(await statusOf("GET", `${url}/big`, { range: "bytes=5-2" })).toBe(200);
    expect((await ask("HEAD", `${url}/big`)).headers.get("content-length")).toBe("3000000");
  });

  test("an interrupted upload leaves the present file, or none", async () => {
    const url = await front();
    await ask("PUT", `${url}/old`, {}, "old content");
    for (const name of ["old", "new"]) {
      await new Promise<void>((resolve) => {
        const upload = request(`${url}/${name}`, { method: "PUT", headers: { "content-length": "3000000" } });
        upload.on("error", () => undefined).on("close", resolve);
        upload.write(Buffer.alloc(2_000_000), () => setTimeout(() => upload.destroy(), 50));
      });
    }
    await expect.poll(() => files.paths).toEqual(["old"]);
    expect((await ask("GET", `${url}/old`)).text).toBe("old content");
  });

  test("a file that is replaced while it is read is served as it was", async () => {
    const url = await front();
    // More than the sockets can buffer while nobody reads.
    const content = Buffer.alloc(100_000_000, "old");
    await files.set("big", content);
    const answer = await fetch(`${url}/big`);
    await files.set("big", "new");
    expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true);
    expect((await ask("GET", `${url}/big`)).text).toBe("new");
  });

  test("a full disk is 507, and a lost majority 503", async () => {
    const url = await front();
    for (const [code, status] of [
      ["STORE_FULL", 507],
      ["NO_QUORUM", 503],
    ] as const) {
      files.onWrite = () => {
        throw new LeaseholdError(code);
      };
      expect(await statusOf("PUT", `${url}/a`, {}, "x")).toBe(status);
    }
    expect(files.paths).toEqual([]);
  });
});

describe("a file", () => {
  test("of which this version is gone is cut off", async () => {
    const url = await front();
    await files.set("a", "old content");
    const { entry } = files;
    files.entry = async (path) => {
      const found = await entry.call(files, path);
      const read = () => Promise.reject(new LeaseholdError("FILE_CHANGED"));
      return found?.kind === "file" ? { ...found, read } : found;
    };
    await expect(ask("GET", `${url}/a`)).rejects.toThrow(/terminated|fetch failed/);
    faults.length = 0;
  });

  test("keeps the time of modification that its client gives, also moved and copied", async () => {
    const url = await front();
    const put = (seconds: string) => ask("PUT", `${url}/a`, { "x-oc-mtime": seconds }, "1");
    const timeOf = async (name: string) => (await ask("HEAD", `${url}/${name}`)).headers.get("last-modified");
    const { status, headers } = await put("1000000000.75");
    expect([status, headers.get("x-oc-mtime")]).toEqual([201, "accepted"]);
    expect(await timeOf("a")).toBe("Sun, 09 Sep 2001 01:46:40 GMT");
    await ask("COPY", `${url}/a`, { destination: `${url}/b` });
    await ask("MOVE", `${url}/b`, { destination: `${url}/c` });
    const { text } = await ask("PROPFIND", `${url}/c`, { depth: "0" });
    expect(text).toContain("<D:getlastmodified>Sun, 09 Sep 2001 01:46:40 GMT</D:getlastmodified>");
    expect((await put("253402300799.999")).status).toBe(204);
    expect(await timeOf("a")).toBe("Fri, 31 Dec 9999 23:59:59 GMT");
    for (const wrong of ["253402300800", "-1", "1e9", "Sun, 09 Sep 2001 01:46:40 GMT"])
      expect([wrong, (await put(wrong)).status]).toEqual([wrong, 400]);
    expect(await timeOf("a")).toBe("Fri, 31 Dec 9999 23:59:59 GMT");
    await ask("PUT", `${url}/a`, {}, "2");
    expect(await timeOf("a")).toBe("Tue, 14 Nov 2023 22:13:20 GMT");
  });

  test("has the time of modification that a PROPPATCH sets, and its content and tag stay", async () => {
    const url = await front();
    const { headers } = await ask("PUT", `${url}/a`, {}, "1");
    await ask("MKCOL", `${url}/f`);
    const etag = headers.get("etag")!;
    const patch = (path: string, properties: string, more: Headers = {}) => {
      const body = `<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop>${properties}</D:prop></D:set></D:propertyupdate>`;
      return ask("PROPPATCH", `${url}/${path}`, more, body);
    };
    const date = (text: string) => `<D:getlastmodified>${text}</D:getlastmodified>`;
    const seconds = (text: string) => `<D:lastmodified>${text}</D:lastmodified>`;
    const now = async () => {
      const head = await ask("HEAD", `${url}/a`);
      return [head.headers.get("last-modified"), head.headers.get("etag")];
    };
    const first = "Sun, 09 Sep 2001 01:46:40 GMT";
    expect((await patch("a", seconds("1000000000"))).text).toContain("HTTP/1.1 200 OK");
    expect(await now()).toEqual([first, etag]);
    expect((await patch("a", date("Mon, 01 Jan 2024 00:00:00 GMT"), { "if-match": etag })).status).toBe(207);
    expect(await now()).toEqual(["Mon, 01 Jan 2024 00:00:00 GMT", etag]);
    await patch("a", date(first));
    for (const wrong of [date("yesterday"), date("2024"), seconds("-1"), date(first) + "<D:x/>", "<D:x/>"])
      expect([wrong, (await patch("a", wrong)).text]).toEqual([
        wrong,
        expect.stringContaining("403 Forbidden"),
      ]);
    expect((await patch("f", seconds("1"))).text).toContain("403 Forbidden");
    expect((await patch("a", seconds("1"), { "if-match": '"other"' })).status).toBe(412);
    expect((await patch("b", seconds("1"))).status).toBe(404);
    expect(await now()).toEqual([first, etag]);
    expect((await ask("GET", `${url}/a`)).text).toBe("1");
  });

  test("is put in folders that are missing if the client asks for it", async () => {
    const url = await front();
    expect(await statusOf("PUT", `${url}/x/y/a`, {}, "1")).toBe(409);
    expect(await statusOf("PUT", `${url}/x/y/a`, { "leasehold-make-folders": "1" }, "1")).toBe(201);
    expect(await statusOf("MKCOL", `${url}/x/y/a/f`)).toBe(412);
    expect(await statusOf("PUT", `${url}/x/y`, {}, "1")).toBe(405);
    expect(files.paths).toEqual(["x/y/a"]);
  });
});

describe("properties that clients make up", () => {
  const update = (...changes: string[]) =>
    `<d:propertyupdate xmlns:d="DAV:">${changes.join("")}</d:propertyupdate>`;
  const set = (...properties: string[]) => `<d:set><d:prop>${properties.join("")}</d:prop></d:set>`;
  const removed = (...properties: string[]) => `<d:remove><d:prop>${properties.join("")}</d:prop></d:remove>`;
  const patch = async (url: string, ...changes: string[]) =>
    (await ask("PROPPATCH", url, {}, update(...changes))).text;
  const shown = async (url: string): Promise<string> => (await ask("PROPFIND", url, { depth: "0" })).text;

  test("are of any namespace, have XML and a language, and go with a move and a copy", async () => {
    const url = await front();
    await ask("MKCOL", `${url}/f`);
    await ask("PUT", `${url}/f/a`, {}, "1");
    const answer = await patch(
      `${url}/f/a`,
      set(
        '<x:color xmlns:x="urn:x" xml:lang="de">rot &amp; <x:deep other="1" x:own="2">er</x:deep></x:color>',
      ),
      set('<plain xmlns="">no namespace</plain>', '<x:gone xmlns:x="urn:x"/>'),
      removed('<x:gone xmlns:x="urn:x"/>', '<x:never xmlns:x="urn:x"/>'),
    );
    expect(answer.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
    expect(await patch(`${url}/f`, set('<x:color xmlns:x="urn:x">of the folder</x:color>'))).toContain(
      "200 OK",
    );
    await ask("MOVE", `${url}/f`, { destination: "/g" });
    await ask("COPY", `${url}/g`, { destination: "/h" });
    await ask("PUT", `${url}/h/a`, {}, "2");
    for (const at of ["g", "h"]) {
      expect(await shown(`${url}/${at}`)).toContain('<X:color xmlns:X="urn:x">of the folder</X:color>');
      const text = await shown(`${url}/${at}/a`);
      expect(text).toContain(
        '<X:color xmlns:X="urn:x" xml:lang="de">rot &amp; <deep xmlns="urn:x" other="1" xmlns:a1="urn:x" a1:own="2">er</deep></X:color>',
      );
      expect(text).toContain('<plain xmlns="">no namespace</plain>');
      expect(text).not.toContain("gone");
    }
    const wanted =
      '<d:propfind xmlns:d="DAV:"><d:prop><color xmlns="urn:x"/><color xmlns="urn:y"/></d:prop></d:propfind>';
    const some = (await ask("PROPFIND", `${url}/h`, { depth: "1" }, wanted)).text;
    expect(some.match(/<X:color xmlns:X="urn:x"[ >]/g)).toHaveLength(2);
    expect(some.match(/<X:color xmlns:X="urn:y"\/>/g)).toHaveLength(2);
  });

  test("are all changed or none, and those of WebDAV are refused", async () => {
    const url = await front();
    await ask("PUT", `${url}/a`, {}, "1");
    const both = await patch(`${url}/a`, set('<x xmlns="urn:x">1</x>'), set("<d:getetag>1</d:getetag>"));
    expect(both.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 424", "HTTP/1.1 403"]);
    expect(both).toContain("<D:cannot-modify-protected-property/>");
    expect(await shown(`${url}/a`)).not.toContain("urn:x");
    const date = "Sun, 09 Sep 2001 01:46:40 GMT";
    await patch(`${url}/a`, set('<x xmlns="urn:x">1</x>', `<d:getlastmodified>${date}</d:getlastmodified>`));
    expect(await shown(`${url}/a`)).toContain(`<D:getlastmodified>${date}</D:getlastmodified>`);
    expect(await shown(`${url}/a`)).toContain('<X:x xmlns:X="urn:x">1</X:x>');
  });

  test("have at most 64 names, and 8,192 bytes, and one more is refused with nothing done", async () => {
    const url = await front();
    await ask("PUT", `${url}/a`, {}, "1");
    const many = Array.from({ length: 64 }, (_, at) => `<p${at} xmlns="u"/>`);
    expect(await patch(`${url}/a`, set(...many))).toContain("200 OK");
    expect(await patch(`${url}/a`, set('<more xmlns="u"/>'))).toContain("507 Insufficient Storage");
    expect(await shown(`${url}/a`)).not.toContain("more");
    expect((await ask("PROPPATCH", `${url}/a`, {}, update(set(...many, "<x/>")))).status).toBe(400);
    expect(await patch(`${url}/a`, removed(...many))).toContain("200 OK");
    // The attribute's name is `dav:{u}x`, and a space precedes its value.
    const long = 8_192 - 8 - 1;
    expect(await patch(`${url}/a`, set(`<x xmlns="u">${"-".repeat(long + 1)}</x>`))).toContain("507");
    expect(await patch(`${url}/a`, set(`<x xmlns="u">${"-".repeat(long)}</x>`))).toContain("200 OK");
  });
});

test("a folder that is made among snapshots is one: it is not listed, and nothing in it changes", async () => {
  const url = await front();
  await ask("MKCOL", `${url}/f`);
  await ask("PUT", `${url}/f/a`, {}, "1");
  expect(await statusOf("MKCOL", `${url}/f/.snapshots/s`)).toBe(201);
  expect(await statusOf("MKCOL", `${url}/f/.snapshots/s`)).toBe(405);
  expect(await statusOf("MKCOL", `${url}/no/.snapshots/s`)).toBe(409);
  await ask("PUT", `${url}/f/a`, {}, "2");
  expect((await ask("GET", `${url}/f/.snapshots/s/a`)).text).toBe("1");
  const namesIn = async (path: string) =>
    [...(await ask("PROPFIND", url + path, { depth: "1" })).text.matchAll(/<D:href>([^<]*)</g)].map(
      (each) => each[1],
    );
  expect(await namesIn("/f/")).toEqual(["/f/", "/f/a"]);
  expect(await namesIn("/f/.snapshots/")).toEqual(["/f/.snapshots/", "/f/.snapshots/s/"]);
  for (const method of ["PUT", "DELETE", "LOCK"])
    expect(
      await statusOf(
        method,
        `${url}/f/.snapshots/s/${method === "LOCK" ? "new" : "a"}`,
        {},
        method === "PUT" ? "3" : method === "LOCK" ? lockBody : undefined,
      ),
    ).toBe(403);
  expect(await statusOf("MOVE", `${url}/f/.snapshots/s`, { destination: "/g" })).toBe(403);
  expect(await statusOf("DELETE", `${url}/f`)).toBe(412);
  expect(await statusOf("COPY", `${url}/f/.snapshots/s/a`, { destination: "/f/a" })).toBe(204);
  expect((await ask("GET", `${url}/f/a`)).text).toBe("1");
  expect(await statusOf("DELETE", `${url}/f/.snapshots/s`)).toBe(204);
  expect(await statusOf("DELETE", `${url}/f`)).toBe(204);
});

test("a folder's use and quota are properties that must be asked for, and a full folder answers 507", async () => {
  const url = await front();
  await ask("MKCOL", `${url}/f`);
  await ask("PUT", `${url}/f/a`, {}, "12345");
  const own = 'xmlns:L="urn:leasehold:files"';
  const patch = async (at: string, change: string) =>
    (
      await ask(
        "PROPPATCH",
        url + at,
        {},
        `<d:propertyupdate xmlns:d="DAV:" ${own}>${change}</d:propertyupdate>`,
      )
    ).text;
  const set = (...properties: string[]) => `<d:set><d:prop>${properties.join("")}</d:prop></d:set>`;
  expect(await patch("/f", set("<L:quota>8 2</L:quota>"))).toContain("200 OK");
  for (const wrong of ["", "8", "-1 2", "8 2 1", "1e3 2"])
    expect(await patch("/f", set(`<L:quota>${wrong}</L:quota>`))).toContain("403 Forbidden");
  const beside = await patch("/f", set("<L:quota>1 1</L:quota>", '<x xmlns="u"/>'));
  expect(beside.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 424", "HTTP/1.1 403"]);
  const wanted = `<d:propfind xmlns:d="DAV:" ${own}><d:prop><d:quota-used-bytes/><d:quota-available-bytes/><L:quota/><L:used-files/></d:prop></d:propfind>`;
  const { text } = await ask("PROPFIND", `${url}/f`, { depth: "0" }, wanted);
  expect(text).toContain("<D:quota-used-bytes>5</D:quota-used-bytes>");
  expect(text).toContain("<D:quota-available-bytes>3</D:quota-available-bytes>");
  expect(text).toMatch(/quota xmlns:X="urn:leasehold:files">8 2</);
  expect(text).toMatch(/used-files xmlns:X="urn:leasehold:files">1</);
  expect((await ask("PROPFIND", `${url}/f`, { depth: "0" })).text).not.toContain("quota");
  const full = await ask("PUT", `${url}/f/b`, {}, "1234");
  expect([full.status, full.headers.get("leasehold-error")]).toEqual([507, "QUOTA_EXCEEDED"]);
  expect(full.text).toContain("<D:quota-not-exceeded/>");
  expect(await statusOf("PUT", `${url}/f/b`, {}, "123")).toBe(201);
  expect(await statusOf("COPY", `${url}/f/b`, { destination: "/f/c" })).toBe(507);
  expect(await statusOf("MKCOL", `${url}/f/c`)).toBe(507);
  expect(await patch("/f", "<d:remove><d:prop><L:quota/></d:prop></d:remove>")).toContain("200 OK");
  expect(await statusOf("MKCOL", `${url}/f/c`)).toBe(201);
});

describe("conditions and locks", () => {
  test("a request with an ended lock changes nothing, as others may have changed the file", async () => {
    const [here, there] = [await front(), await front()];
    await ask("PUT", `${here}/a`, {}, "1");
    const token = (await ask("LOCK", `${here}/a`, {}, lockBody)).headers.get("lock-token")!;
    expect(await statusOf("PUT", `${there}/a`, { if: `(${token})` }, "2")).toBe(204);
    expect(await statusOf("UNLOCK", `${here}/a`, { "lock-token": token })).toBe(204);
    expect(await statusOf("PUT", `${there}/a`, {}, "of another")).toBe(204);
    for (const url of [here, there])
      expect(await statusOf("PUT", `${url}/a`, { if: `(${token})` }, "3")).toBe(412);
    expect(await statusOf("PUT", `${here}/a`, { if: "(Not <DAV:no-lock>)" }, "4")).toBe(204);
  });

  test("a content with another tag than the expected is not replaced", async () => {
    const url = await front();
    await ask("PUT", `${url}/a`, {}, "1");
    const etag = (await ask("HEAD", `${url}/a`)).headers.get("etag")!;
    expect(await statusOf("PUT", `${url}/a`, { "if-match": etag }, "2")).toBe(204);
    expect(await statusOf("PUT", `${url}/a`, { "if-match": etag }, "3")).toBe(412);
    expect(await statusOf("PUT", `${url}/a`, { "if-none-match": "*" }, "3")).toBe(412);
    expect(await statusOf("PUT", `${url}/a`, { if: `([${etag}])` }, "3")).toBe(412);
    const now = (await ask("HEAD", `${url}/a`)).headers.get("etag")!;
    expect(await statusOf("GET", `${url}/a`, { "if-none-match": now })).toBe(304);
  });

  test("a lock of one node counts at all: requests without its token change nothing", async () => {
    const [here, there] = [await front(), await front()];
    await ask("MKCOL", `${here}/f`);
    const locked = await ask("LOCK", `${here}/f/a`, { timeout: "Second-100" }, lockBody);
    expect(locked.status).toBe(201);
    expect(locked.text).toContain("<D:owner>me &amp; you</D:owner>");
    const token = locked.headers.get("lock-token")!;
    for (const url of [here, there]) {
      expect(await statusOf("PUT", `${url}/f/a`, {}, "x")).toBe(423);
      expect(await statusOf("DELETE", `${url}/f/a`)).toBe(423);
      expect(await statusOf("LOCK", `${url}/f/a`, {}, lockBody)).toBe(423);
      expect(await statusOf("PUT", `${url}/f/a`, { if: `(${token})` }, "x")).toBe(204);
    }
    expect(await statusOf("DELETE", `${here}/f`)).toBe(423);
    expect(await statusOf("LOCK", `${here}/f/a`, { if: `(${token})` })).toBe(200);
    expect(await statusOf("UNLOCK", `${here}/f/a`, { "lock-token": token })).toBe(204);
    expect(await statusOf("PUT", `${there}/f/a`, {}, "x")).toBe(204);
    expect(await statusOf("UNLOCK", `${here}/f/a`, { "lock-token": token })).toBe(409);
  });
});

describe("locks of several clients", () => {
  const sharedBody = lockBody.replace("exclusive", "shared");
  const tokenOf = (answer: Awaited<ReturnType<typeof ask>>): string => answer.headers.get("lock-token")!;

  test("shared locks stand beside each other, any of their tokens counts, and the last ends them", async () => {
    const [here, there] = [await front(), await front()];
    await ask("PUT", `${here}/a`, {}, "1");
    const first = await ask("LOCK", `${here}/a`, {}, sharedBody);
    const second = await ask("LOCK", `${here}/a`, {}, sharedBody);
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(tokenOf(first)).not.toBe(tokenOf(second));
    const { text } = await ask("PROPFIND", `${here}/a`, { depth: "0" });
    expect(text.match(/<D:activelock>/g)).toHaveLength(2);
    // Another node grants no lock, and knows the tokens.
    for (const body of [sharedBody, lockBody])
      expect(await statusOf("LOCK", `${there}/a`, {}, body)).toBe(423);
    expect(await statusOf("LOCK", `${here}/a`, {}, lockBody)).toBe(423);
    for (const url of [here, there]) {
      expect(await statusOf("PUT", `${url}/a`, {}, "x")).toBe(423);
      for (const each of [first, second])
        expect(await statusOf("PUT", `${url}/a`, { if: `(${tokenOf(each)})` }, "x")).toBe(204);
    }
    expect(await statusOf("UNLOCK", `${here}/a`, { "lock-token": tokenOf(first) })).toBe(204);
    expect(await statusOf("PUT", `${here}/a`, { if: `(${tokenOf(first)})` }, "x")).toBe(412);
    expect(await statusOf("PUT", `${there}/a`, {}, "x")).toBe(423);
    expect(await statusOf("UNLOCK", `${here}/a`, { "lock-token": tokenOf(second) })).toBe(204);
    expect(await statusOf("PUT", `${there}/a`, {}, "x")).toBe(204);
    expect(await statusOf("LOCK", `${there}/a`, {}, lockBody)).toBe(200);
  });

  test("a lock of a folder sees what other nodes have locked inside, and they see it", async () => {
    const [here, there] = [await front(), await front()];
    await ask("MKCOL", `${here}/f`);
    await ask("PUT", `${here}/f/a`, {}, "1");
    const inside = await ask("LOCK", `${there}/f/a`, {}, lockBody);
    expect(await statusOf("LOCK", `${here}/f`, {}, lockBody)).toBe(423);
    expect(await statusOf("LOCK", `${here}/f`, {}, sharedBody)).toBe(423);
    expect(await statusOf("DELETE", `${here}/f`)).toBe(423);
    expect(await statusOf("MOVE", `${here}/f`, { destination: "/g" })).toBe(423);
    // A lock of only the folder does not cover the file.
    const alone = await ask("LOCK", `${here}/f`, { depth: "0" }, lockBody);
    expect(alone.status).toBe(200);
    const ofInside = { if: `(${tokenOf(inside)})` };
    expect(await statusOf("PUT", `${here}/f/a`, ofInside, "2")).toBe(204);
    // The lock covers the folder's list of members.
    for (const url of [here, there]) {
      expect(await statusOf("PUT", `${url}/f/b`, {}, "new")).toBe(423);
      expect(await statusOf("MKCOL", `${url}/f/c`)).toBe(423);
      expect(await statusOf("LOCK", `${url}/f/d`, {}, lockBody)).toBe(423);
      expect(await statusOf("DELETE", `${url}/f/a`, ofInside)).toBe(423);
    }
    const ofFolder = { if: `</f> (${tokenOf(alone)})` };
    expect(await statusOf("PUT", `${there}/f/b`, ofFolder, "new")).toBe(201);
    await ask("UNLOCK", `${here}/f`, { "lock-token": tokenOf(alone) });
    await ask("UNLOCK", `${there}/f/a`, { "lock-token": tokenOf(inside) });
    const whole = await ask("LOCK", `${here}/f`, {}, lockBody);
    expect(whole.status).toBe(200);
    expect(await statusOf("LOCK", `${there}/f/a`, {}, lockBody)).toBe(423);
    expect(await statusOf("GET", `${there}/f/a`, { if: `(${tokenOf(inside)})` })).toBe(412);
  });

  test("two nodes that find a folder and a file in it free both look again, and one is refused", async () => {
    const [one, other] = [cluster.open("one"), cluster.open("other")];
    opened.push(one, other);
    // Each takes its lease after both have looked.
    let looked = 0;
    let resolve!: () => void;
    const bothLooked = new Promise<void>((done) => (resolve = done));
    const nodes = [one, other].map((leases) => {
      const ground = leaseLocks(leases, "p");
      const take: typeof ground.take = async (...wish) => {
        if ((looked += 1) === 2) resolve();
        await bothLooked;
        return ground.take(...wish);
      };
      return new Locks({ ...ground, take });
    });
    const wish = { owner: "", isDeep: true, isShared: false };
    const taken = await Promise.allSettled([
      nodes[0]!.take({ ...wish, path: "f" }, 60),
      nodes[1]!.take({ ...wish, path: "f/a" }, 60),
    ]);
    expect(taken.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(1);
    for (const locks of nodes) await locks.close();
    await nodes[0]!.take({ ...wish, path: "f" }, 60);
    await nodes[0]!.close();
  });

  test("a lock is refused if another was granted at the node after it had found the path free", async () => {
    const leases = cluster.open("one");
    opened.push(leases);
    const ground = leaseLocks(leases, "p");
    const wish = { path: "a", owner: "", isDeep: false, isShared: true };
    const statusesOf = async (isShared: boolean): Promise<number | undefined> => {
      let isFirst = true;
      const locks: Locks = new Locks({
        ...ground,
        markOf: async (path) => {
          const mark = await ground.markOf(path);
          if (isFirst) {
            isFirst = false;
            await locks.take({ ...wish, isShared }, 60);
          }
          return mark;
        },
      });
      try {
        await locks.take(wish, 60);
        return undefined;
      } catch (error) {
        return (error as Refusal).status;
      } finally {
        await locks.close();
      }
    };
    expect([await statusesOf(true), await statusesOf(false)]).toEqual([undefined, 423]);
  });

  test("a node has 1,000 locks, and one more is refused", async () => {
    const ground = {
      guarantees: { data: true },
      holder: async () => ({ state: "free" }),
      list: async () => [],
    };
    const { signal } = new AbortController();
    const tryAcquire = async () => ({ signal, release: async () => undefined });
    const locks = new Locks(leaseLocks({ ...ground, tryAcquire } as unknown as Leases, "p"));
    const wish = { path: "a", owner: "", isDeep: false, isShared: true };
    for (let count = 0; count < 999; count += 1) await locks.take(wish, 60);
    await locks.take({ ...wish, path: "b", isShared: false }, 60);
    await expect(locks.take(wish, 60)).rejects.toMatchObject({ status: 503 });
    await locks.forget("b");
    await locks.take(wish, 60);
    await locks.close();
  });

  test("while nobody knows whether a path is locked, nothing is changed", async () => {
    const url = await front();
    opened[0]!.holder = async () => ({ state: "unknown" });
    const answer = await ask("PUT", `${url}/a`, {}, "x");
    expect([answer.status, answer.headers.get("leasehold-error")]).toEqual([503, "NO_QUORUM"]);
    expect(files.paths).toEqual([]);
  });
});

describe("what is not served", () => {
  test("bodies that are no XML, name entities, are deep or long", async () => {
    const url = await front();
    const deep = `${"<a>".repeat(50)}${"</a>".repeat(50)}`;
    for (const body of ["<a", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', deep])
      expect(await statusOf("PROPFIND", `${url}/`, { depth: "0" }, body)).toBe(400);
    expect(await statusOf("PROPFIND", `${url}/`, { depth: "0" }, " ".repeat(100_000))).toBe(413);
    expect(await statusOf("PROPFIND", `${url}/`)).toBe(403);
  });

  test("paths that lead elsewhere", async () => {
    const url = await front();
    for (const path of ["/a%2f..%2fb", "/%2e%2e%2fx", "/%00", "/%ff"])
      expect([400, 403]).toContain(await statusOf("GET", url + path));
    expect(await statusOf("MOVE", `${url}/a`, { destination: "http://other/x" })).toBe(502);
    expect(await statusOf("PATCH", `${url}/a`)).toBe(405);
  });

  test("requests without the password, and of other sites' pages", async () => {
    const open = await front();
    expect(await statusOf("GET", `${open}/`, { origin: "http://evil.example" })).toBe(403);
    const url = await front({ credentials: "me:secret" });
    expect(await statusOf("GET", `${url}/`)).toBe(401);
    const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
    expect(await statusOf("GET", `${url}/`, basic("me:wrong"))).toBe(401);
    expect(JSON.parse((await ask("GET", `${url}/`, basic("me:secret"))).text)).toMatchObject({ node: "a" });
    const beyond = serveWebdav(files, opened[0]!, { host: "0.0.0.0", credentials: "me:secret" });
    await expect(beyond).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  });
});
