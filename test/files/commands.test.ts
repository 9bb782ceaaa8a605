import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { serveWebdav, type WebdavServer } from "../../packages/files/src/webdav/server.js";
import { MemoryCluster } from "../../packages/leasehold/src/testing/index.js";
import { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";
import { MemoryFiles } from "../support/memory-files.js";
import { dist } from "../support/built.js";

/** The commands of `leasehold files`, against fronts whose files are in memory. */

let files: MemoryFiles;
let servers: WebdavServer[];
let folder: string;

beforeEach(async () => {
  files = new MemoryFiles();
  const cluster = new MemoryCluster();
  servers = [await serveWebdav(files, cluster.open("a")), await serveWebdav(files, cluster.open("b"))];
  folder = mkdtempSync(join(tmpdir(), "leasehold-files-"));
});
afterEach(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

async function leasehold(args: readonly string[], input: string | Buffer = "") {
  const child = spawn(process.execPath, [join(dist, "cli/main.js"), "files", ...args], {
    cwd: folder,
    env: { ...process.env, LEASEHOLD_NODES: servers.map(({ url }) => url).join(), TZ: "UTC" },
  });
  const out: Buffer[] = [];
  let err = "";
  child.stdout.on("data", (bytes: Buffer) => out.push(bytes));
  child.stderr.on("data", (text) => (err += String(text)));
  child.stdin.on("error", () => undefined).end(input);
  const [code] = (await once(child, "close")) as [number];
  return { code, out: Buffer.concat(out), text: Buffer.concat(out).toString(), err };
}

describe("leasehold files", () => {
  test("puts, lists, shows, moves, gets, prints and removes", async () => {
    const content = Buffer.alloc(5_000_000, "leasehold files\n");
    writeFileSync(join(folder, "a.bin"), content);
    expect(await leasehold(["put", "a.bin", "deep/er/"])).toMatchObject({ code: 0, err: "" });
    expect((await leasehold(["put", "-", "deep/note"], "from a pipe")).code).toBe(0);
    const list = await leasehold(["ls", "deep"]);
    expect(list.text.split("\n").slice(0, 3)).toEqual([
      "  SIZE  CHANGED              NAME",
      "5.0 MB  2023-11-14 22:13:20  er/",
      "  11 B  2023-11-14 22:13:20  note",
    ]);
    expect(JSON.parse((await leasehold(["stat", "deep/er/a.bin", "-o", "json"])).text)).toMatchObject({
      path: "deep/er/a.bin",
      kind: "file",
      bytes: 5_000_000,
    });
    expect((await leasehold(["mv", "deep/er/a.bin", "b.bin"])).code).toBe(0);
    expect((await leasehold(["get", "/b.bin", "back.bin"])).code).toBe(0);
    expect(readFileSync(join(folder, "back.bin")).equals(content)).toBe(true);
    expect((await leasehold(["cat", "b.bin", "deep/note"])).out.length).toBe(5_000_011);
    expect(await leasehold(["rm", "deep"])).toMatchObject({ code: 2 });
    expect((await leasehold(["rm", "-r", "deep", "b.bin"])).code).toBe(0);
    expect((await leasehold(["ls"])).text).toBe("there are no files yet\n");
  });

  test("sets the quota of a folder, shows its use, and reports when it is full", async () => {
    writeFileSync(join(folder, "here"), "12345");
    expect((await leasehold(["put", "here", "f/a"])).code).toBe(0);
    expect((await leasehold(["quota", "f", "--bytes", "0.01kB", "--files", "3"])).text).toMatch(
      /bytes +5 B of 10 B\nfiles +1 of 3\n/,
    );
    expect((await leasehold(["put", "here", "f/b"])).code).toBe(0);
    expect(await leasehold(["put", "here", "f/c"])).toMatchObject({
      code: 77,
      err: "leasehold: The change would bring more into a folder than its quota allows.\n",
    });
    expect((await leasehold(["ls"])).text).toMatch(/^10 B .*f\/\n/m);
    expect((await leasehold(["quota", "f", "--none"])).text).toMatch(/bytes +10 B\nfiles +2\n/);
    expect((await leasehold(["put", "here", "f/c"])).code).toBe(0);
    expect((await leasehold(["quota", "f/a", "--bytes", "1"])).code).toBe(2);
    expect((await leasehold(["quota", "f", "--bytes", "1KB"])).code).toBe(2);
    expect((await leasehold(["quota", "f", "--bytes", "1", "--none"])).code).toBe(2);
    expect((await leasehold(["quota", "none", "--bytes", "1"])).code).toBe(66);
  });

  test("makes, lists and removes snapshots", async () => {
    await files.set("f/a", "1");
    expect((await leasehold(["snapshot", "ls", "f"])).text).toMatch(/is empty/);
    expect((await leasehold(["snapshot", "create", "/f/", "s"])).code).toBe(0);
    expect((await leasehold(["snapshot", "create", "f", "s"])).code).toBe(2);
    await files.set("f/a", "2");
    expect((await leasehold(["cat", "f/.snapshots/s/a"])).text).toBe("1");
    expect((await leasehold(["snapshot", "ls", "f"])).text).toMatch(/ s\/\n/);
    expect((await leasehold(["rm", "-r", "f"])).code).toBe(75);
    expect((await leasehold(["snapshot", "remove", "f", "s"])).code).toBe(0);
    expect((await leasehold(["snapshot", "remove", "f", "s"])).code).toBe(66);
    expect((await leasehold(["snapshot", "ls", "no"])).code).toBe(66);
    expect((await leasehold(["rm", "-r", "f"])).code).toBe(0);
  });

  test("asks the next node when one is gone, and reports when all are", async () => {
    await files.set("a", "");
    await servers[0]!.close();
    expect((await leasehold(["cat", "a"])).code).toBe(0);
    const status = await leasehold(["status"]);
    expect(status.text).toMatch(/serving/);
    expect(status.text).toMatch(/ECONNREFUSED/);
    expect(status.code).toBe(69);
    await servers[1]!.close();
    const alone = await leasehold(["cat", "a", "--timeout", "500ms"]);
    expect(alone).toMatchObject({ code: 69, text: "" });
    expect(alone.err).toMatch(/^leasehold: no node can be reached: .*\n$/);
  });

  test("reports errors in one line, and leaves nothing half done", async () => {
    writeFileSync(join(folder, "here"), "old");
    expect(await leasehold(["get", "none", "here"])).toMatchObject({
      code: 66,
      err: "leasehold: there is no /none\n",
    });
    expect(readdirSync(folder)).toEqual(["here"]);
    expect((await leasehold(["put", "none"])).err).toBe("leasehold: there is no file none\n");
    files.onWrite = () => {
      throw new LeaseholdError("STORE_FULL");
    };
    expect(await leasehold(["put", "here"])).toMatchObject({
      code: 69,
      err: "leasehold: The store has no space left for the write.\n",
    });
    expect(files.paths).toEqual([]);
    expect((await leasehold(["put", "here", "x", "--endpoints", "a:1"])).code).toBe(2);
  });
});
