import { expect, test } from "vitest";
import { bytes, FilesCluster, names, text } from "../../../../test/support/files-cluster.js";
import { LeaseholdError } from "leasehold/common";
import { emptyContent } from "../names/types.js";
import type { Asks, Kind } from "../protocol/messages.js";
import { uploadPrefix } from "../protocol/keys.js";
import type { NamedFiles } from "./named-files.js";

/** Blocks have 8 bytes. */
const long = "0123456789abcdefghij";

async function* of(content: string): AsyncGenerator<Uint8Array> {
  yield bytes(content);
}

async function contentAt(files: NamedFiles, path: string): Promise<string | undefined> {
  const entry = await files.entry(path);
  return entry?.kind === "file" ? text(await entry.read(0, entry.size)) : undefined;
}

async function uploadsAt(cluster: FilesCluster, node: string): Promise<string[]> {
  return cluster.storeOf(node).listFiles(uploadPrefix, uploadPrefix, 100);
}

const commits = (kind: Kind, ask: Asks[Kind]): boolean =>
  kind === "operate" && "operation" in ask && ask.operation.kind === "commit";

/** The node with the primary of names, and another one. */
async function primaryAndOther(cluster: FilesCluster): Promise<readonly [string, string]> {
  await cluster.during(cluster.named.get("a")!.put("first", of("1")));
  const primary = names.find((name) => cluster.nodes.get(name)!.router.primaryHere("names") !== undefined)!;
  return [primary, names.find((name) => name !== primary)!];
}

test("a name that does not exist takes one question, and leaves nothing on any disk", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  const before = cluster.nodes.get(primary)!.status().counters.resets;
  const asked: Kind[] = [];
  cluster.before = (_to, kind, _ask, from) => void (from === other && asked.push(kind));
  const missing = cluster.named.get(other)!.entry("no/such/file");
  for (let turns = 0; turns < 1_000; turns += 1) await Promise.resolve();
  expect(await missing).toBeUndefined();
  expect(asked).toEqual(["operate"]);
  expect(cluster.nodes.get(primary)!.status().counters.resets).toBe(before);
  for (const name of names)
    expect(await cluster.storeOf(name).listFiles("", "", 100)).toEqual([
      "names",
      expect.stringMatching(/^~/),
    ]);
});

test("a put whose change is made, and whose answer is lost, succeeds and is made once", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  let lost = 0;
  const { answer } = cluster.nodes.get(primary)!;
  cluster.nodes.get(primary)!.answer = async (kind, ask, body) => {
    const answered = await answer.call(cluster.nodes.get(primary)!, kind, ask, body);
    if (commits(kind, ask) && (lost += 1) === 1) throw new LeaseholdError("TIMEOUT");
    return answered as never;
  };
  const stat = await cluster.during(cluster.named.get(other)!.put("x", of(long)));
  expect(lost).toBe(1);
  expect(await cluster.during(contentAt(cluster.named.get(primary)!, "x"))).toBe(long);
  expect(stat.size).toBe(long.length);
});

test("a put whose change is uncertain, and was replaced since, is not made again", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  await cluster.during(cluster.named.get(other)!.put("x", of("old")));
  let commitsSeen = 0;
  const node = cluster.nodes.get(primary)!;
  const { answer } = node;
  node.answer = async (kind, ask, body) => {
    const answered = await answer.call(node, kind, ask, body);
    if (!commits(kind, ask) || (commitsSeen += 1) > 1) return answered as never;
    // The change is made, and another client replaces the file before the first learns of it.
    await cluster.named.get(primary)!.put("x", of("theirs"));
    throw new LeaseholdError("TIMEOUT");
  };
  const put = cluster.during(cluster.named.get(other)!.put("x", of("ours")));
  await expect(put).rejects.toMatchObject({ code: "FILE_UNCERTAIN" });
  expect(await cluster.during(contentAt(cluster.named.get(other)!, "x"))).toBe("theirs");
});

test("a put of a new name that is uncertain, and was renamed since, is not made again", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  let commitsSeen = 0;
  const node = cluster.nodes.get(primary)!;
  const { answer } = node;
  node.answer = async (kind, ask, body) => {
    const answered = await answer.call(node, kind, ask, body);
    if (!commits(kind, ask) || (commitsSeen += 1) > 1) return answered as never;
    await cluster.named.get(primary)!.rename("x", "y");
    throw new LeaseholdError("TIMEOUT");
  };
  const put = cluster.during(cluster.named.get(other)!.put("x", of("ours")));
  await expect(put).rejects.toMatchObject({ code: "FILE_UNCERTAIN" });
  expect(await cluster.during(contentAt(cluster.named.get(other)!, "x"))).toBeUndefined();
  expect(await cluster.during(contentAt(cluster.named.get(other)!, "y"))).toBe("ours");
});

test.each(["unused", "old"])(
  "a put of an %s name that comes late, and is undone, is not made again",
  async (name) => {
    const cluster = await FilesCluster.startNamed();
    const [primary, other] = await primaryAndOther(cluster);
    if (name === "old") await cluster.during(cluster.named.get(other)!.put("x", of("old")));
    const node = cluster.nodes.get(primary)!;
    const { answer } = node;
    const late: (() => Promise<unknown>)[] = [];
    let commitsSeen = 0;
    node.answer = async (kind, ask, body) => {
      if (commits(kind, ask) && (commitsSeen += 1) === 1) {
        late.push(() => answer.call(node, kind, ask, body));
        throw new LeaseholdError("TIMEOUT");
      }
      const answered = await answer.call(node, kind, ask, body);
      const looks = kind === "operate" && "operation" in ask && ask.operation.kind === "lookup";
      const change = looks ? late.pop() : undefined;
      if (change === undefined) return answered as never;
      // The name has been looked up. Only now the change is made, and another client undoes it.
      await change();
      await cluster.named.get(primary)!.remove("x");
      return answered as never;
    };
    const put = cluster.during(cluster.named.get(other)!.put("x", of("ours")));
    await expect(put).rejects.toMatchObject({ code: "FILE_UNCERTAIN" });
    expect(await cluster.during(contentAt(cluster.named.get(other)!, "x"))).toBeUndefined();
  },
);

test("an upload whose announcement is lost with the primary of names is announced and named again", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  const files = cluster.named.get(other)!;
  const half = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes(long.slice(0, 10));
    cluster.reachable.delete(primary);
    cluster.cluster.cutOff(primary);
    await new Promise<void>((resolve) => void cluster.cluster.world.timers.after(3_000, resolve));
    yield bytes(long.slice(10));
  };
  const put = files.put("x", half());
  void put.catch(() => undefined);
  await cluster.cluster.advance("10s");
  expect((await put).size).toBe(long.length);
  expect(await cluster.during(contentAt(files, "x"))).toBe(long);
});

test("memory of an upload is not used again while a slow node is still given the block", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  const slow = names.find((name) => name !== primary && name !== other)!;
  const { timers } = cluster.cluster.world;
  const codes: unknown[] = [];
  const node = cluster.nodes.get(slow)!;
  const { answer } = node;
  node.answer = async (kind, ask, body) => {
    if (kind === "piece") await new Promise<void>((resolve) => void timers.after(20, resolve));
    return answer.call(node, kind, ask, body).catch((error: unknown) => {
      codes.push((error as LeaseholdError).code);
      throw error;
    }) as never;
  };
  const text = Array.from({ length: 100 }, (_, index) => `block${100 + index}`).join("");
  await cluster.during(cluster.named.get(other)!.put("x", of(text)));
  expect(await cluster.during(contentAt(cluster.named.get(slow)!, "x"))).toBe(text);
  expect(codes).not.toContain("FILE_DAMAGED");
});

test("a content that no majority of nodes has on disk gets no name", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary] = await primaryAndOther(cluster);
  cluster.before = (to, kind) => {
    if (kind === "hold" && to !== primary) throw new LeaseholdError("TIMEOUT");
  };
  const put = cluster.during(cluster.named.get(primary)!.put("x", of(long)));
  await expect(put).rejects.toMatchObject({ code: "NO_QUORUM" });
  cluster.before = () => undefined;
  expect(await cluster.during(contentAt(cluster.named.get("b")!, "x"))).toBeUndefined();
});

test("a content is not collected if it has a name at the second look", async () => {
  const cluster = await FilesCluster.startNamed();
  const { uploads } = cluster.nodes.get("a")!;
  await cluster.during(cluster.named.get("a")!.put("x", of(long)));
  const [key = ""] = await uploadsAt(cluster, "a");
  const content = key.slice(uploadPrefix.length);
  expect(await uploads.collect(content, () => Promise.resolve(false))).toBe(false);
  expect(await uploadsAt(cluster, "a")).toEqual([key]);
  // Until it knows, the node neither stores the content nor reports having it.
  const hold = { content, blocks: 3, checksum: 0, tag: null, nodes: [] };
  const asked = uploads.collect(content, async () => {
    await expect(uploads.hold(hold, bytes(""))).rejects.toMatchObject({ code: "STORE_FORGOTTEN" });
    return true;
  });
  expect(await asked).toBe(true);
  expect(await uploadsAt(cluster, "a")).toEqual([]);
});

test("a broken upload leaves the old content, and nothing on any disk", async () => {
  const cluster = await FilesCluster.startNamed();
  const files = cluster.named.get("a")!;
  await cluster.during(files.put("x", of("old")));
  const before = await uploadsAt(cluster, "a");
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes(long);
    throw new Error("the client has gone");
  };
  await expect(cluster.during(files.put("x", broken()))).rejects.toThrow("the client has gone");
  expect(await cluster.during(contentAt(cluster.named.get("b")!, "x"))).toBe("old");
  await cluster.cluster.advance("10s");
  for (const name of names) expect(await uploadsAt(cluster, name)).toEqual(before);
});

test("a node that was away fetches the contents that have names, and collects those that have none", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  const away = names.find((name) => name !== primary && name !== other)!;
  await cluster.during(cluster.named.get(primary)!.put("x", of("old")));
  await cluster.cluster.advance("5s");
  cluster.reachable.delete(away);
  await cluster.during(cluster.named.get(primary)!.put("x", of(long)));
  await cluster.during(cluster.named.get(primary)!.remove("first"));
  cluster.reachable.add(away);
  await cluster.cluster.advance("10s");
  for (const name of names) expect(await uploadsAt(cluster, name)).toHaveLength(1);
  // The other nodes are gone, and only this node has to have the content.
  expect((await cluster.storeOf(away).listBlocks((await uploadsAt(cluster, away))[0]!)).length).toBe(3);
});

test("a reader goes on with the content that it has found, and finds the new one next time", async () => {
  const cluster = await FilesCluster.startNamed();
  const files = cluster.named.get("a")!;
  await cluster.during(files.put("x", of(long)));
  const found = await cluster.during(files.entry("x"));
  await cluster.during(cluster.named.get("b")!.put("x", of("new")));
  await cluster.cluster.advance("1s");
  expect(found).toMatchObject({ kind: "file", size: long.length });
  const read = () => (found?.kind === "file" ? found.read(0, 100) : Promise.resolve(bytes("")));
  expect(text(await cluster.during(read()))).toBe(long);
  expect(await cluster.during(contentAt(files, "x"))).toBe("new");
  await cluster.cluster.advance("10s");
  await expect(cluster.during(read())).rejects.toMatchObject({ code: "FILE_CHANGED" });
});

test("an open file finds the content that its path has now, and writes in place leave other names alone", async () => {
  const cluster = await FilesCluster.startNamed();
  const [files, others] = [cluster.named.get("a")!, cluster.named.get("b")!];
  await cluster.during(files.put("x", of(long)));
  await cluster.during(files.copy("x", "y"));
  const open = await cluster.during(files.open("x"));
  await cluster.during(open.write(2, bytes("++")));
  expect(await cluster.during(contentAt(others, "x"))).toBe("01++456789abcdefghij");
  expect(await cluster.during(contentAt(others, "y"))).toBe(long);
  await cluster.during(others.rename("x", "z"));
  await expect(cluster.during(open.read(0, 4))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  await cluster.during(others.put("x", of("another")));
  expect(text(await cluster.during(open.read(0, 100)))).toBe("another");
  expect(await cluster.during(contentAt(files, "z"))).toBe("01++456789abcdefghij");
});

test("an empty file whose put is uncertain, and that was removed since, does not come back", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  // A retry of any empty upload announces the empty content, which all such uploads share.
  const wish = { kind: "put", path: "y", makeFolders: true, ifMissing: false, ifContent: null } as const;
  const change = { ...wish, content: emptyContent, ifVersion: null, sealed: [] };
  let commitsSeen = 0;
  const node = cluster.nodes.get(primary)!;
  const { answer } = node;
  node.answer = async (kind, ask, body) => {
    const answered = await answer.call(node, kind, ask, body);
    if (!commits(kind, ask) || (commitsSeen += 1) > 1) return answered as never;
    await cluster.named.get(primary)!.remove("x");
    await node.router.names({ kind: "begin", change });
    throw new LeaseholdError("TIMEOUT");
  };
  const put = cluster.during(cluster.named.get(other)!.put("x", of("")));
  await expect(put).rejects.toMatchObject({ code: "FILE_UNCERTAIN" });
  expect(await cluster.during(contentAt(cluster.named.get(other)!, "x"))).toBeUndefined();
});

test("an upload that breaks off, and an empty one, leave no announcement", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  const announced: string[] = [];
  cluster.before = (_to, kind, ask) => {
    if (kind === "operate" && "operation" in ask && ask.operation.kind === "begin")
      announced.push((ask.operation.change as { readonly content: { readonly id: string } }).content.id);
  };
  const files = cluster.named.get(other)!;
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes(long);
    throw new Error("broken off");
  };
  await expect(cluster.during(files.put("x", broken()))).rejects.toThrow("broken off");
  await cluster.during(files.put("y", of("")));
  expect(announced).toHaveLength(2);
  const ask = { kind: "unnamed", contents: announced } as const;
  const { unnamed } = await cluster.during(cluster.nodes.get(primary)!.router.names(ask));
  expect(unnamed).toEqual(announced);
});

test("a file is composed of others at another node, read across them, and its contents are kept", async () => {
  const cluster = await FilesCluster.startNamed();
  const [primary, other] = await primaryAndOther(cluster);
  const files = cluster.named.get(other)!;
  const parts = await cluster.during(
    Promise.all([long, "x", long].map((content, at) => files.put(`u/${at}`, of(content)))),
  );
  const named = parts.map(({ path, version }) => [path.slice(2), version] as const);
  const attributes = { "content.etag": "1" };
  const stat = await cluster.during(files.compose("g", "id", "u", named, { attributes }));
  expect(stat).toMatchObject({ size: 41, attributes });
  expect(await cluster.during(files.compose("g", "id", "u", named))).toEqual(stat);
  const whole = `${long}x${long}`;
  for (const name of [primary, other]) {
    const view = await cluster.during(cluster.named.get(name)!.entry("g"));
    if (view?.kind !== "file") throw new Error("it is no file");
    for (let offset = 0; offset <= 42; offset += 1)
      for (const length of [0, 1, 9, 21, 50])
        expect(text(await view.read(offset, length))).toBe(whole.slice(offset, offset + length));
  }
  const listed = await cluster.during(files.children("", { prefix: "g" }));
  expect(listed.entries).toMatchObject([{ path: "g", size: 41, attributes }]);
  await cluster.cluster.advance("60s");
  expect(await uploadsAt(cluster, primary)).toHaveLength(4);
  const file = await cluster.during(files.open("g"));
  await cluster.during(file.append(bytes("y")));
  expect(await cluster.during(contentAt(files, "g"))).toBe(`${whole}y`);
  expect(await cluster.during(files.stat("g"))).not.toHaveProperty("attributes");
  await cluster.cluster.advance("60s");
  expect(await uploadsAt(cluster, primary)).toHaveLength(1);
});

test("a snapshot keeps a file that is written in place, and its contents are kept while it is there", async () => {
  const cluster = await FilesCluster.startNamed();
  const files = cluster.named.get("a")!;
  await cluster.during(files.put("f/put", of(long)));
  const file = await cluster.during(files.open("f/live", { create: "missing" }));
  await cluster.during(file.write(0, bytes("before")));
  await cluster.during(files.makeFolder("f/.snapshots/s"));
  await cluster.during(file.write(0, bytes("after!")));
  await cluster.during(files.remove("f/put"));
  await cluster.cluster.advance("20s");
  const other = cluster.named.get("b")!;
  expect(await cluster.during(contentAt(other, "f/.snapshots/s/live"))).toBe("before");
  expect(await cluster.during(contentAt(other, "f/.snapshots/s/put"))).toBe(long);
  expect(await cluster.during(contentAt(other, "f/live"))).toBe("after!");
  const inside = await cluster.during(files.open("f/.snapshots/s/live"));
  await expect(cluster.during(inside.write(0, bytes("x")))).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await expect(cluster.during(files.put("f/.snapshots/s/put", of("x")))).rejects.toMatchObject({
    code: "UNSUPPORTED",
  });
  expect((await cluster.during(files.list("f/"))).files.map(({ path }) => path)).toEqual(["f/live"]);
  const paths = async (folder: string) =>
    (await cluster.during(files.children(folder))).entries.map(({ path }) => path);
  expect(await paths("f")).toEqual(["f/live"]);
  expect(await paths("f/.snapshots")).toEqual(["f/.snapshots/s"]);
  await cluster.during(files.remove("f/.snapshots/s", { recursive: true }));
  await cluster.cluster.advance("20s");
  expect(await uploadsAt(cluster, "a")).toEqual([]);
});

test("a put asks whether it is accepted before it takes a byte, and a refused one changes nothing", async () => {
  const cluster = await FilesCluster.startNamed();
  const files = cluster.named.get("a")!;
  const asked: boolean[] = [];
  const accept = (existed: boolean): Promise<void> => {
    asked.push(existed);
    return asked.length < 3 ? Promise.resolve() : Promise.reject(new Error("no"));
  };
  await cluster.during(files.put("f", of("1"), { accept }));
  await cluster.during(files.put("f", of(long), { accept }));
  let isTaken = false;
  const bytesOf = async function* (): AsyncGenerator<Uint8Array> {
    isTaken = true;
    yield* of("3");
  };
  await expect(cluster.during(files.put("f", bytesOf(), { accept }))).rejects.toThrow("no");
  expect([asked, isTaken]).toEqual([[false, true, true], false]);
  expect(await cluster.during(contentAt(files, "f"))).toBe(long);
});
