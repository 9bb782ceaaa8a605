import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryFiles } from "../../../../test/support/memory-files.js";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { serveWebdav, type WebdavServer } from "../webdav/server.js";
import { GuardedFiles } from "./guarded-files.js";
import { hashOf, isPassword } from "./password.js";
import { Rights } from "./rights.js";
import { parseRight, parseUsers, rightsMax, usersMax } from "./users-file.js";
import { openUsers, type Users, waitingMax, waitingOfNameMax } from "./users.js";

let folder: string;
let path: string;
const open: { close(): unknown }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-users-"));
  path = join(folder, "users");
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
  rmSync(folder, { recursive: true });
});

/** Cheap enough for a test, in the same format as other hashes. */
const cost = 4;
const hash = await hashOf("secret", cost);
const other = await hashOf("other", cost);

async function usersOf(text: string, faults: string[] = []): Promise<Users> {
  writeFileSync(path, text);
  const users = await openUsers(path, { everyMs: 20, fault: (why) => faults.push(why) });
  open.push(users);
  return users;
}

describe("the file of users", () => {
  test("has names, hashes and rights, comments and empty lines", async () => {
    const users = parseUsers(`# all\n\nann ${hash} rw:/ann r:/a%20b/c/ r:/\n  bob ${other}\n`);
    expect(users.get("ann")!.rights.list).toEqual([
      { path: "ann", mayWrite: true },
      { path: "a b/c", mayWrite: false },
      { path: "", mayWrite: false },
    ]);
    expect(users.get("bob")!.rights.list).toEqual([]);
    expect(await isPassword("secret", users.get("ann")!.hash)).toBe(true);
    expect(await isPassword("secret ", users.get("ann")!.hash)).toBe(false);
  });

  test.each([
    ["an ann line", "a/b $scrypt$x", /line 1 .*a name has/],
    ["a plain password", "ann secret rw:/", /is no hash/],
    ["another right", `ann ${hash} w:/`, /neither r:PATH nor rw:PATH/],
    ["a path that leads elsewhere", `ann ${hash} r:/a/../b`, /neither/],
    ["the same name twice", `ann ${hash}\nann ${hash}`, /line 2 .*twice/],
    ["a costly hash", `ann ${hash.replace("ln=4", "ln=18")}`, /is no hash/],
  ])("refuses %s", (_what, text, why) => {
    expect(() => parseUsers(text)).toThrow(why);
  });

  test("has 1,000 users with 64 rights each, and not one more", () => {
    const rights = Array.from({ length: rightsMax }, (_, at) => `r:/${at}`).join(" ");
    const lines = Array.from({ length: usersMax }, (_, at) => `u${at} ${hash} ${rights}`);
    expect(parseUsers(lines.join("\n")).size).toBe(usersMax);
    expect(() => parseUsers([...lines, `more ${hash}`].join("\n"))).toThrow(/more than 1000 users/);
    expect(() => parseUsers(`u ${hash} ${rights} r:/more`)).toThrow(/at most 64 rights/);
  });

  test("is read again when it changes, and stays in use when it is broken then", async () => {
    const faults: string[] = [];
    const users = await usersOf(`ann ${hash} rw:/`, faults);
    expect(await users.authenticate("ann", "secret")).toMatchObject({ name: "ann" });
    writeFileSync(path, "ann broken");
    await expect.poll(() => faults.join()).toMatch(/is no hash/);
    expect(await users.authenticate("ann", "secret")).toMatchObject({ name: "ann" });
    writeFileSync(path, `ann ${other} r:/`);
    await expect.poll(() => users.authenticate("ann", "secret")).toBeUndefined();
    const { rights } = (await users.authenticate("ann", "other"))!;
    expect(rights.mayWrite("x")).toBe(false);
    writeFileSync(path, `ann ${other} r:/x`);
    await expect
      .poll(async () => (await users.authenticate("ann", "other"))?.rights.mayRead("y"))
      .toBe(false);
  });

  test("that changes while a password is checked decides by what it has then", async () => {
    const users = await usersOf(`ann ${await hashOf("secret", 14)}`);
    const checked = users.authenticate("ann", "secret");
    Reflect.set(users, "named", () => undefined);
    expect(await checked).toBeUndefined();
  });

  test("that is missing or too long is refused", async () => {
    await expect(openUsers(join(folder, "no"))).rejects.toMatchObject({ code: "INVALID_CONFIG" });
    await expect(usersOf("#".repeat(2 ** 20 + 1))).rejects.toThrow(/more than 1048576 bytes/);
    await usersOf("#".repeat(2 ** 20));
  });
});

test("of passwords that wait for their check there are 32, of one name 4, and known ones do not wait", async () => {
  const users = await usersOf(`ann ${hash} rw:/`);
  await users.authenticate("ann", "secret");
  const codeOf = (name: string, password: string) =>
    users.authenticate(name, password).then(
      (user) => user?.name ?? "nobody",
      ({ code }: { code: string }) => code,
    );
  const ofOne = Array.from({ length: waitingOfNameMax + 1 }, () => codeOf("ann", "wrong"));
  const ofOthers = Array.from({ length: waitingMax - waitingOfNameMax }, (_, at) => codeOf(`n${at}`, "x"));
  expect(await codeOf("one-more", "x")).toBe("OVERLOADED");
  expect(await codeOf("ann", "secret")).toBe("ann");
  expect(await Promise.all(ofOne)).toEqual([...Array(waitingOfNameMax).fill("nobody"), "OVERLOADED"]);
  expect(new Set(await Promise.all(ofOthers))).toEqual(new Set(["nobody"]));
  expect(await codeOf("one-more", "x")).toBe("nobody");
  expect(await codeOf("ann", "x".repeat(1_025))).toBe("nobody");
});

describe("rights", () => {
  const rights = new Rights([parseRight("rw:/ann")!, parseRight("r:/public/docs")!]);

  test("are of whole names, with everything below", () => {
    const may = (path: string) => [rights.maySee(path), rights.mayRead(path), rights.mayWrite(path)];
    expect(may("ann")).toEqual([true, true, true]);
    expect(may("ann/x/y")).toEqual([true, true, true]);
    expect(may("ann-x")).toEqual([false, false, false]);
    expect(may("public/docs/x")).toEqual([true, true, false]);
    expect(may("public")).toEqual([true, false, false]);
    expect(may("")).toEqual([true, false, false]);
    expect(may("public/x")).toEqual([false, false, false]);
    expect(Rights.all.mayWrite("any/thing")).toBe(true);
    expect(new Rights([]).maySee("x")).toBe(false);
  });

  test("count for each call, whatever its front is", async () => {
    const files = new MemoryFiles();
    for (const each of ["ann/a", "bob/b", "public/docs/d", "public/x", "z"]) await files.set(each, each);
    const guarded = new GuardedFiles(files, rights);
    const denied = { code: "PERMISSION_DENIED" };
    const gone = { code: "FILE_NOT_FOUND" };
    const bytes = async function* (): AsyncGenerator<Uint8Array> {};
    await expect(guarded.put("bob/b", bytes())).rejects.toMatchObject(denied);
    await expect(guarded.put("public/docs/d", bytes())).rejects.toMatchObject(denied);
    await expect(guarded.open("public/docs/d")).rejects.toMatchObject(denied);
    await expect(guarded.remove("public", { recursive: true })).rejects.toMatchObject(denied);
    await expect(guarded.remove("ann", { recursive: true })).rejects.toMatchObject(denied);
    await expect(guarded.rename("ann", "ann/x")).rejects.toMatchObject(denied);
    await expect(guarded.copy("public/docs", "ann", { over: "anything" })).rejects.toMatchObject(denied);
    await expect(guarded.setQuota("ann", null)).rejects.toMatchObject(denied);
    await expect(guarded.makeFolder("x")).rejects.toMatchObject(denied);
    await expect(guarded.touch("public/docs/d", { modifiedMs: 1 })).rejects.toMatchObject(denied);
    await expect(guarded.rename("ann/a", "bob/a")).rejects.toMatchObject(denied);
    await expect(guarded.rename("public/docs/d", "ann/d")).rejects.toMatchObject(denied);
    await expect(guarded.copy("bob/b", "ann/b")).rejects.toMatchObject(gone);
    await expect(guarded.copy("public", "ann/public", { deep: true })).rejects.toMatchObject(gone);
    await expect(guarded.copy("ann/a", "public/docs/a")).rejects.toMatchObject(denied);
    await expect(guarded.stat("bob/b")).rejects.toMatchObject(gone);
    await expect(guarded.children("bob")).rejects.toMatchObject(gone);
    expect(await guarded.entry("bob/b")).toBeUndefined();
    expect(await guarded.entry("public")).toMatchObject({ kind: "folder" });
    await guarded.copy("public/docs/d", "ann/d");
    await guarded.rename("ann/d", "ann/e");
    const pathsIn = async (of: string) => (await guarded.children(of)).entries.map((each) => each.path);
    expect([await pathsIn(""), await pathsIn("public")]).toEqual([["ann", "public"], ["public/docs"]]);
    const listed: string[] = [];
    for (let after: string | undefined = ""; after !== undefined;) {
      const page = await guarded.list("", { after });
      listed.push(...page.files.map((each) => each.path));
      after = page.next;
    }
    expect(listed).toEqual(["ann/a", "ann/e", "public/docs/d"]);
  });

  test("do not show the content of a file on the way to a path that may be read", async () => {
    const files = new MemoryFiles();
    await files.set("public", "a file now");
    const guarded = new GuardedFiles(files, rights);
    expect(await guarded.entry("public")).toBeUndefined();
    expect((await guarded.children("")).entries).toEqual([]);
  });
});

test("WebDAV serves each user what its rights allow", async () => {
  const files = new MemoryFiles();
  for (const each of ["ann/a", "bob/b", "public/d"]) await files.set(each, each);
  const users = await usersOf(`ann ${hash} rw:/ann r:/public\nbob ${other} rw:/bob\n`);
  const leases = new MemoryCluster().open("a");
  const server: WebdavServer = await serveWebdav(files, leases, { users });
  open.unshift(server);
  const ask = async (method: string, at: string, user: string, more: Record<string, string> = {}) => {
    const authorization = `Basic ${Buffer.from(user).toString("base64")}`;
    const headers = { ...(user !== "" && { authorization }), ...more };
    const answer = await fetch(server.url + at, {
      method,
      headers,
      ...(method === "PUT" && { body: "new" }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  const statusOf = async (...args: Parameters<typeof ask>) => (await ask(...args)).status;
  const [ann, bob] = ["ann:secret", "bob:other"];
  for (const user of ["", "ann:other", "nobody:secret", "ann"])
    expect(await statusOf("PROPFIND", "/", user, { depth: "1" })).toBe(401);
  const { text } = await ask("PROPFIND", "/", ann, { depth: "1" });
  expect([...text.matchAll(/<D:href>([^<]*)</g)].map((match) => match[1])).toEqual([
    "/",
    "/ann/",
    "/public/",
  ]);
  expect(await statusOf("GET", "/ann/a", ann)).toBe(200);
  expect(await statusOf("GET", "/ann/a", bob)).toBe(404);
  expect(await statusOf("PUT", "/ann/new", ann)).toBe(201);
  expect(await statusOf("PUT", "/public/new", ann)).toBe(403);
  expect(await statusOf("LOCK", "/public/d", ann)).toBe(403);
  expect(await statusOf("UNLOCK", "/public/d", ann, { "lock-token": "<urn:uuid:1>" })).toBe(403);
  expect(await statusOf("DELETE", "/public/d", ann)).toBe(403);
  expect(await statusOf("PROPPATCH", "/public/d", ann)).toBe(400);
  expect(await statusOf("MKCOL", "/other", ann)).toBe(403);
  expect(await statusOf("COPY", "/public/d", ann, { destination: "/ann/d" })).toBe(201);
  expect(await statusOf("COPY", "/bob/b", ann, { destination: "/ann/b" })).toBe(404);
  expect(await statusOf("MOVE", "/ann/d", ann, { destination: "/bob/d" })).toBe(403);
  expect(await statusOf("MOVE", "/public/d", ann, { destination: "/ann/d2" })).toBe(403);
  expect(files.paths).toEqual(["ann/a", "ann/d", "ann/new", "bob/b", "public/d"]);
  await expect(serveWebdav(files, leases, { users, credentials: "a:b" })).rejects.toMatchObject({
    code: "INVALID_CONFIG",
  });
});
