import { expect, test } from "vitest";
import { bytes, FilesCluster, names, text } from "../../../../test/support/files-cluster.js";
import { copiesAttribute } from "../names/attributes.js";
import type { NodeChange } from "../names/nodes.js";
import type { NamesOperation } from "../names/types.js";
import { uploadPrefix } from "../protocol/keys.js";
import type { NodesChange } from "../types.js";
import type { NamedFiles } from "./named-files.js";

const long = "0123456789abcdefghij";

async function* of(content: string): AsyncGenerator<Uint8Array> {
  yield bytes(content);
}

async function contentAt(files: NamedFiles, path: string): Promise<string | undefined> {
  const entry = await files.entry(path);
  return entry?.kind === "file" ? text(await entry.read(0, entry.size)) : undefined;
}

const paths = Array.from({ length: 12 }, (_, at) => `f${at}`);

const whole = paths.map((path) => long + path);

class Cluster {
  readonly files: FilesCluster;

  constructor(files: FilesCluster) {
    this.files = files;
  }

  static async start(): Promise<Cluster> {
    const cluster = new Cluster(await FilesCluster.startNamed());
    await cluster.at("a", (files) => Promise.all(paths.map((path) => files.put(path, of(long + path)))));
    return cluster;
  }

  at<T>(node: string, work: (files: NamedFiles) => Promise<T>): Promise<T> {
    return this.files.during(work(this.files.named.get(node)!));
  }

  change(change: NodesChange): Promise<unknown> {
    return this.at("a", (files) => files.changeNodes(change));
  }

  async add(id: string, zone = ""): Promise<void> {
    await this.change({ what: "add", node: { id, address: `${id}:1`, zone } });
    await this.files.join(id);
  }

  /** The number of contents on each disk. */
  async here(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const node of this.files.nodes.keys()) {
      const keys = await this.files.storeOf(node).listFiles(uploadPrefix, uploadPrefix, 1_000);
      if (keys.length > 0) counts[node] = keys.length;
    }
    return counts;
  }

  /** The number of contents that should be on each node. */
  async wanted(): Promise<Record<string, number>> {
    const { nodes } = await this.at("a", (files) => files.nodes());
    return Object.fromEntries(
      nodes.filter(({ contents }) => contents > 0).map(({ id, contents }) => [id, contents]),
    );
  }

  async read(node: string): Promise<(string | undefined)[]> {
    return this.at(node, (files) => Promise.all(paths.map((path) => contentAt(files, path))));
  }
}

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((one, other) => one + other, 0);

test("nodes that are added take their share, and a drained one gives all of it away and can leave", async () => {
  const cluster = await Cluster.start();
  expect(await cluster.here()).toEqual({ a: 12, b: 12, c: 12 });
  for (const id of ["d", "e", "f", "g"]) await cluster.add(id);
  await cluster.files.cluster.advance("8s");
  const shares = await cluster.wanted();
  expect(Object.keys(shares)).toHaveLength(7);
  expect(sum(shares)).toBe(36);
  expect(await cluster.here()).toEqual(shares);
  expect(await cluster.read("g")).toEqual(whole);
  // A node without a copy of the names can put files too.
  await cluster.at("f", (files) => files.put("more", of("more")));
  expect(await cluster.at("b", (files) => contentAt(files, "more"))).toBe("more");
  for (const id of ["d", "e", "f", "g"]) {
    await expect(cluster.change({ what: "remove", id })).rejects.toMatchObject({ code: "INVALID_CONFIG" });
    await cluster.change({ what: "drain", id });
  }
  await cluster.files.cluster.advance("12s");
  expect(await cluster.wanted()).toEqual({ a: 13, b: 13, c: 13 });
  for (const id of ["d", "e", "f", "g"]) await cluster.change({ what: "remove", id });
  expect(await cluster.here()).toEqual({ a: 13, b: 13, c: 13 });
  expect(await cluster.read("b")).toEqual(whole);
  const { nodes } = await cluster.at("c", (files) => files.nodes());
  expect(nodes.map(({ id }) => id)).toEqual(names);
});

test("a node that keeps the names is not removed, and a list that has changed meanwhile is not changed", async () => {
  const cluster = await Cluster.start();
  const { version } = await cluster.at("b", (files) => files.nodes());
  await expect(cluster.change({ what: "remove", id: "c" })).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  await cluster.add("d");
  const late = cluster.at("b", (files) => files.changeNodes({ what: "drain", id: "d" }, { ifList: version }));
  await expect(late).rejects.toMatchObject({ code: "FILE_CHANGED" });
});

test("copies are in zones of their own, and as many as are wanted", async () => {
  const cluster = await Cluster.start();
  for (const id of names)
    await cluster.change({ what: "add", node: { id, address: "", zone: "one" } }).catch(() => undefined);
  for (const id of names)
    await cluster.change({ what: "add", node: { id, address: `${id}:1`, zone: "one" } });
  await cluster.add("d", "two");
  await cluster.add("e", "three");
  await cluster.files.cluster.advance("8s");
  const shares = await cluster.wanted();
  expect([shares["d"], shares["e"], sum(shares)]).toEqual([12, 12, 36]);
  await cluster.change({ what: "copies", copies: 2 });
  await cluster.files.cluster.advance("8s");
  expect(sum(await cluster.wanted())).toBe(24);
  expect(await cluster.here()).toEqual(await cluster.wanted());
  expect(await cluster.read("a")).toEqual(whole);
});

test("a folder says on how many nodes its files are, also those that are moved into it", async () => {
  const cluster = await Cluster.start();
  const attributes = { [copiesAttribute]: "1" };
  await cluster.at("a", (files) => files.makeFolder("one", { attributes }));
  await cluster.at("b", (files) => files.put("one/below/x", of(long)));
  expect(sum(await cluster.wanted())).toBe(37);
  await cluster.at("b", (files) => files.rename("f0", "one/f0"));
  await cluster.files.cluster.advance("8s");
  expect(sum(await cluster.wanted())).toBe(35);
  expect(await cluster.here()).toEqual(await cluster.wanted());
  await cluster.at("a", (files) => files.touch("one", { attributes: { [copiesAttribute]: null } }));
  await cluster.files.cluster.advance("8s");
  expect(sum(await cluster.here())).toBe(39);
});

test("a node whose disk was lost is filled, and an old disk does not count any more", async () => {
  const cluster = await Cluster.start();
  await cluster.add("d");
  await cluster.files.cluster.advance("8s");
  const before = await cluster.here();
  expect(before["d"]).toBeGreaterThan(0);
  const old = cluster.files.storeOf("d");
  await cluster.files.join("d");
  await cluster.files.cluster.advance("8s");
  expect(await cluster.here()).toEqual(before);
  expect(cluster.files.storeOf("d")).not.toBe(old);
  // The old disk is back.
  await cluster.files.join("d", old);
  await cluster.files.cluster.advance("8s");
  const hold = { content: "x", blocks: 1, checksum: 0, tag: null, nodes: [] };
  const { uploads } = cluster.files.nodes.get("d")!;
  await expect(uploads.hold(hold, bytes(""))).rejects.toMatchObject({ code: "STORE_FORGOTTEN" });
  expect(await cluster.read("d")).toEqual(whole);
});

test("a content is placed on a node that has it, does not collect it, and was told to take it", async () => {
  const cluster = await Cluster.start();
  const { router } = cluster.files.nodes.get("a")!;
  const ask = (operation: NamesOperation) => cluster.files.during(router.names(operation));
  const nodes = (change: NodeChange) => ask({ kind: "commit", change: { kind: "nodes", change } });
  // A node that is not running.
  await nodes({ what: "add", node: { id: "d", address: "d:1", zone: "" }, ifList: null });
  await nodes({ what: "disk", id: "d", disk: "d1", before: "", ifList: null });
  const { list } = await ask({ kind: "list" });
  const { contents: all = [] } = await ask({ kind: "contents", node: "a", after: "", limit: 100 });
  const unnamed = { kind: "unnamed", node: "d", contents: all.map(({ id }) => id) } as const;
  expect(await ask(unnamed)).toEqual({ unnamed: unnamed.contents });
  const given = async () => {
    const { contents = [] } = await ask({ kind: "contents", node: "d", after: "", limit: 100 });
    return contents;
  };
  const [content] = await given();
  const { id, nodes: before, step } = content!;
  expect((await ask(unnamed)).unnamed).not.toContain(id);
  const holders = step!.nodes.map((node) => ({
    node,
    disk: list!.nodes.find((each) => each.id === node)!.disk,
  }));
  const place = { kind: "place", content: id, before, ...step!, holders } as const;
  const placing = (change: Partial<typeof place>) => ask({ kind: "commit", change: { ...place, ...change } });
  const forgotten = { code: "STORE_FORGOTTEN" };
  await expect(placing({ ticket: "other" })).rejects.toMatchObject(forgotten);
  await expect(placing({ holders: holders.filter(({ node }) => node !== "d") })).rejects.toMatchObject(
    forgotten,
  );
  const lost = holders.map(({ node, disk }) => ({ node, disk: node === "d" ? "d0" : disk }));
  await expect(placing({ holders: lost })).rejects.toMatchObject(forgotten);
  // The answer came late, and the node has asked again.
  await given();
  await expect(placing({})).rejects.toMatchObject(forgotten);
  const again = (await given()).find((each) => each.id === id)!.step!;
  expect(await placing(again)).toMatchObject({ isDone: true });
  expect(await ask({ kind: "placement", content: id })).toEqual({ nodes: step!.nodes });
  await expect(placing(again)).rejects.toMatchObject({ code: "FILE_CHANGED" });
});
