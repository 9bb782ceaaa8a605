import { expect, test } from "vitest";
import { effort } from "../../../../test/support/effort.js";
import { FilesCluster, joinedDisk, names } from "../../../../test/support/files-cluster.js";
import type { Leases } from "../../../leasehold/src/lease/types.js";
import { namesKey } from "./keys.js";
import type { FilesNode } from "./files-node.js";
import { type Change, emptyContent, type NamesResult } from "../names/types.js";

const unconditional = { sealed: [], ifVersion: null } as const;

const putAt = (path: string): Change => ({
  kind: "put",
  path,
  content: emptyContent,
  makeFolders: true,
  ifMissing: false,
  ifContent: null,
  ...unconditional,
});

const copy = (from: string, to: string): Change => ({
  kind: "copy",
  from,
  to,
  makeFolders: true,
  over: "nothing",
  isDeep: true,
  ...unconditional,
});

const codeOf = ({ router }: FilesNode, change: Change): Promise<string> =>
  router.names({ kind: "commit", change }).then(
    () => "done",
    ({ code }: { code: string }) => code,
  );

/**
 * A cluster with a folder of files that have the longest possible names, and a change from its first node.
 */
async function withFiles(count: number): Promise<(changes: readonly Change[]) => Promise<string[]>> {
  const files = await FilesCluster.start(await Promise.all(names.map((name) => joinedDisk(name))));
  const node = files.nodes.get("a")!;
  const make = (changes: readonly Change[]) =>
    files.during(Promise.all(changes.map((change) => codeOf(node, change))));
  await make([putAt("first")]);
  const paths = Array.from({ length: count }, (_, at) => `from/${String(at).padStart(470, "n")}`);
  expect(new Set(await make(paths.map(putAt)))).toEqual(new Set(["done"]));
  return make;
}

test("a record has the changes that fit, and one that is too large leaves the others alone", async () => {
  const make = await withFiles(1_600);
  const copies = ["x", "y", "z", "a"].map((name) => copy("from", `big/${name}`));
  expect(new Set(await make([...copies, putAt("z")]))).toEqual(new Set(["done"]));
  expect(await make([putAt("u"), copy("big", "v"), putAt("w")])).toEqual(["done", "UNSUPPORTED", "done"]);
});

test("a disk without room for a snapshot still takes removals, in the same tenure", async () => {
  let roomBytes = Infinity;
  const disks = names.map((name) => joinedDisk(name, { roomBytes: () => roomBytes }));
  const files = await FilesCluster.start(await Promise.all(disks));
  const node = files.nodes.get("a")!;
  const inTurn = async (changes: readonly Change[]): Promise<Set<string>> => {
    const codes = new Set<string>();
    for (const change of changes) codes.add(await codeOf(node, change));
    return codes;
  };
  await files.during(codeOf(node, putAt("first")));
  const { resets } = node.router.counters;
  // The number of records that a tenure writes before its first snapshot.
  const paths = Array.from({ length: 1_999 }, (_, at) => `f${at}`);
  expect(await files.during(inTurn(paths.map(putAt)))).toEqual(new Set(["done"]));
  roomBytes = 1_000;
  const removals = paths.slice(0, 5).map((path): Change => ({
    kind: "remove",
    path,
    isDeep: false,
    ...unconditional,
  }));
  expect(await files.during(inTurn(removals))).toEqual(new Set(["done"]));
  expect(node.router.counters.resets).toBe(resets);
  roomBytes = Infinity;
  expect(await files.during(inTurn(paths.slice(5, 7).map(putAt)))).toEqual(new Set(["done"]));
  await files.cluster.advance("2s");
  expect((await files.storeOf("a").listBlocks(namesKey)).length).toBeLessThan(100);
});

test("4,096 changes wait, one more is refused, and those that wait are made", async () => {
  const files = await FilesCluster.start(await Promise.all(names.map((name) => joinedDisk(name))));
  const node = files.nodes.get("a")!;
  await files.during(codeOf(node, putAt("first")));
  const codesOf = (count: number) =>
    files.during(Promise.all(Array.from({ length: count }, (_, at) => codeOf(node, putAt(`f${at}`)))));
  expect(new Set(await codesOf(4_096))).toEqual(new Set(["done"]));
  expect((await codesOf(4_097)).filter((code) => code !== "done")).toEqual(["OVERLOADED"]);
});

test("the longest attributes of many names are listed in pages, and read again after a snapshot", async () => {
  const files = await FilesCluster.start(await Promise.all(names.map((name) => joinedDisk(name))));
  const node = files.nodes.get("a")!;
  await files.during(codeOf(node, putAt("first")));
  const attributes = { n: "\u0001".repeat(8_191) };
  // A page holds up to 1,000 names, but only 21 of these.
  const count = 100 * effort;
  const paths = Array.from({ length: count }, (_, at) => `f/${String(at).padStart(3, "0")}`);
  const long = paths.map((path) => ({ ...putAt(path), attributes }) as Change);
  for (let at = 0; at < long.length; at += 100)
    expect(
      new Set(await files.during(Promise.all(long.slice(at, at + 100).map((each) => codeOf(node, each))))),
    ).toEqual(new Set(["done"]));
  const listed = async (): Promise<number> => {
    let seen = 0;
    for (let after: string | undefined = "f/"; after !== undefined;) {
      const page: NamesResult = await node.router.names({ kind: "files", prefix: "f/", after, limit: 1_000 });
      const { found = [], next } = page;
      expect(JSON.stringify(found).length).toBeLessThan(2 ** 20);
      expect(found.every(({ entry }) => entry.attributes?.["n"] === attributes.n)).toBe(true);
      seen += found.length;
      after = next;
    }
    return seen;
  };
  expect(await listed()).toBe(count);
  // The number of records that a tenure writes before its snapshot.
  const one = async (): Promise<void> => {
    for (let at = 0; at < 2_001; at += 1) expect(await codeOf(node, putAt("g"))).toBe("done");
  };
  await files.during(one());
  await files.cluster.advance("2s");
  const blocks = await files.storeOf("a").listBlocks(namesKey);
  expect(blocks.length).toBeLessThan(1_000);
  for (const { index } of blocks)
    expect((await files.storeOf("a").readBlock(namesKey, index))!.bytes.length).toBeLessThan(2 ** 20);
  expect(await listed()).toBe(count);
});

test("a primary that loses its lease while it reads the names does not read the rest", async () => {
  let isLost = false;
  let reads = 0;
  const disks = await Promise.all(names.map((name) => joinedDisk(name)));
  const read = disks[0]!.readBlock.bind(disks[0]);
  disks[0]!.readBlock = (path, index) => {
    if (path === namesKey) reads += 1;
    return read(path, index);
  };
  const files = await FilesCluster.start(disks, (leases) => ({
    ...leases,
    guarantees: leases.guarantees,
    tryAcquire: async (...how: Parameters<Leases["tryAcquire"]>) => {
      const lease = await leases.tryAcquire(...how);
      if (!isLost || lease === undefined) return lease;
      isLost = false;
      return Object.defineProperty(lease, "remaining", { value: () => 0 });
    },
    acquire: leases.acquire.bind(leases),
  }));
  const { router } = files.nodes.get("a")!;
  for (let at = 0; at < 40; at += 1)
    expect(await files.during(codeOf(files.nodes.get("a")!, putAt(`f${at}`)))).toBe("done");
  await files.during(router.forget(namesKey));
  isLost = true;
  const { entry } = await files.during(router.names({ kind: "lookup", path: "f39" }));
  expect(entry?.kind).toBe("file");
  // The first tenure read one batch of records, the next one all of them.
  expect(reads).toBeGreaterThan(41);
  expect(reads).toBeLessThan(2 * 41);
});
