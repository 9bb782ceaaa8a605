import { expect, test } from "vitest";
import { MemoryCluster } from "../../testing/memory-cluster.js";
import { MemoryBlockStore } from "../memory-store.js";
import type { Leases } from "../../lease/types.js";
import { FilesNode } from "./files-node.js";
import { type Answered, noBytes, type Peers } from "./messages.js";
import { Replica } from "./replica.js";
import { headerText, metaOf, metaText, tagOf } from "./records.js";
import { Standings } from "./standings.js";
import { LeaseholdError } from "../../lease/errors.js";

const names = ["a", "b", "c"];
const stamp = { size: 4, modifiedMs: 0 };
const header = {
  ...stamp,
  epoch: 1n,
  sequence: 1,
  exists: true,
  blockSize: 8,
  floor: { epoch: 1n, sequence: 1 },
};
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (content: string) => new TextEncoder().encode(content);

/** A disk of a cluster that has begun, with a file of one block. */
async function diskOf(node: string, base: bigint, epoch: bigint, content: string): Promise<MemoryBlockStore> {
  const store = new MemoryBlockStore();
  const standings = new Standings(store, node, names, () => node);
  await standings.load();
  await standings.join(Object.fromEntries(names.map((name) => [name, name])), 0, []);
  await store.writeMeta("f", metaText({ promised: base, base, header }));
  await store.writeBlock("f", 0, tagOf({ ...stamp, epoch, sequence: 9 }), bytes(content));
  await store.sync("f");
  return store;
}

/** Nodes that reach each other as long as they are in `reachable`; `leasesOf` may change their leases. */
async function nodesOn(stores: readonly MemoryBlockStore[], leasesOf = (leases: Leases) => leases) {
  const cluster = new MemoryCluster();
  const reachable = new Set(names);
  const nodes = new Map<string, FilesNode>();
  const peersOf = (from: string): Peers => ({
    ask: async (to, kind, ask, { body = noBytes }) => {
      if (!reachable.has(to) || !reachable.has(from)) throw new LeaseholdError("UNREACHABLE");
      return (await nodes.get(to)!.answer(kind, ask, body)) satisfies Answered<typeof kind>;
    },
  });
  for (const [index, node] of names.entries()) {
    const settings = {
      blockSize: 8,
      ttlMs: 1_000,
      leaseMarginMs: 5,
      operationTimeoutMs: 500,
      answerTimeoutMs: 100,
      idleMs: 60_000,
      scrubPauseMs: 10_000,
    };
    const store = stores[index]!;
    const leases = leasesOf(cluster.open(node));
    const options = { node, nodes: names, addresses: {}, world: cluster.world, leases, store, settings };
    nodes.set(node, new FilesNode({ ...options, peers: peersOf(node), newId: () => node }));
    await nodes.get(node)!.begin();
  }
  return { cluster, reachable, nodes };
}

/** What comes of it while virtual time passes. */
async function during<T>(cluster: MemoryCluster, work: Promise<T>): Promise<T> {
  const settled = work.catch(() => undefined);
  await cluster.advance("2s");
  await settled;
  return work;
}

test("a replica that has promised an epoch does nothing for an earlier one", async () => {
  const store = await diskOf("a", 1n, 1n, "old!");
  const standings = new Standings(store, "a", names, () => "a");
  await standings.load();
  const replica = new Replica(store, standings);
  await replica.promise({ path: "f", epoch: "3" });
  const tag = tagOf({ ...stamp, epoch: 2n, sequence: 1 });
  const put = replica.put({ path: "f", epoch: "2", index: 0, tag, spare: false }, bytes("late"));
  await expect(put).rejects.toMatchObject({ code: "LEASE_LOST" });
  const late = replica.header({ path: "f", epoch: "2", header: headerText({ ...header, epoch: 2n }) });
  await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
  expect(text((await replica.read("f", 0))!.bytes)).toBe("old!");
});

test("a copy that is marked as complete has its blocks on disk", async () => {
  const store = await diskOf("a", 1n, 1n, "old!");
  const standings = new Standings(store, "a", names, () => "a");
  await standings.load();
  const replica = new Replica(store, standings);
  await replica.promise({ path: "f", epoch: "3" });
  const tag = tagOf({ ...stamp, epoch: 2n, sequence: 1 });
  await replica.put({ path: "f", epoch: "3", index: 0, tag, spare: false, later: true }, bytes("new!"));
  await replica.mark({ path: "f", epoch: "3", generation: 0 });
  store.crash(() => true);
  expect(text((await store.readBlock("f", 0))!.bytes)).toBe("new!");
});

test("a change that an earlier reset has left out does not come back with the copy that has it", async () => {
  // The primary of epoch 2 wrote to its own disk alone; that of epoch 3 has served without it since.
  const stores = [
    await diskOf("a", 2n, 2n, "lost"),
    await diskOf("b", 3n, 1n, "kept"),
    await diskOf("c", 3n, 1n, "kept"),
  ];
  const { cluster, reachable, nodes } = await nodesOn(stores);
  for (let token = 0n; token < 3n;) {
    await using lease = await cluster.open("other").acquire("files/f");
    token = lease.token;
  }
  reachable.delete("c");
  const file = nodes.get("a")!.named("f");
  expect(text(await during(cluster, file.read(0, 4)))).toBe("kept");
});

test.each([
  ["at the next primary", "b"],
  ["at a copy that is completed", "a"],
])("a file whose creation an earlier reset has left out does not appear: %s", async (_, left) => {
  // The primary of epoch 2 has created it on its own disk alone; that of epoch 3 has said that there is none.
  const stores = await Promise.all(
    names.map(async (node) => {
      const store = await diskOf(node, 3n, 1n, "old!");
      const isLeft = node === left;
      await store.removeBlock("f", 0);
      const meta = {
        promised: 3n,
        base: isLeft ? 2n : 3n,
        header: isLeft ? { ...header, epoch: 2n } : undefined,
      };
      await store.writeMeta("f", metaText(meta));
      return store;
    }),
  );
  const { cluster, reachable, nodes } = await nodesOn(stores);
  for (let token = 0n; token < 3n;) {
    await using lease = await cluster.open("other").acquire("files/f");
    token = lease.token;
  }
  reachable.delete("c");
  const stat = during(cluster, nodes.get("b")!.named("f").stat());
  await expect(stat).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  const metas = await Promise.all(stores.slice(0, 2).map((store) => store.readMeta("f")));
  expect(metas.map((meta) => metaOf(meta!).header)).toEqual([undefined, undefined]);
});

test("a primary does not serve on after a change that no majority has confirmed", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 0n, 0n, "old!")));
  const { cluster, reachable, nodes } = await nodesOn(stores);
  const file = nodes.get("a")!.named("f");
  expect((await during(cluster, file.stat())).size).toBe(4);
  reachable.delete("b");
  reachable.delete("c");
  await expect(during(cluster, file.write(0, bytes("new!")))).rejects.toMatchObject({
    code: "FILE_UNCERTAIN",
  });
  await expect(during(cluster, file.read(0, 4))).rejects.toMatchObject({ code: "NO_QUORUM" });
  reachable.add("b");
  expect(text(await during(cluster, file.read(0, 4)))).toBe("new!");
});

test("an operation goes on trying while members of the leases have too much to do", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 0n, 0n, "old!")));
  let refused = 0;
  const busyFirst = (leases: Leases): Leases => {
    const { tryAcquire } = leases;
    leases.tryAcquire = async (...args: Parameters<Leases["tryAcquire"]>) => {
      if ((refused += 1) <= 2) throw new LeaseholdError("OVERLOADED");
      return tryAcquire.apply(leases, args);
    };
    return leases;
  };
  const { cluster, nodes } = await nodesOn(stores, busyFirst);
  expect((await during(cluster, nodes.get("a")!.stat("f"))).size).toBe(4);
  expect(refused).toBeGreaterThan(2);
});
