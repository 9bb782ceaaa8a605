import { expect, test } from "vitest";
import {
  bytes,
  diskOf,
  FilesCluster,
  header,
  names,
  stamp,
  text,
} from "../../../../test/support/files-cluster.js";
import { LeaseholdError, type Leases } from "leasehold/common";
import { headerText, metaOf, metaText, tagOf } from "./records.js";
import { Replica } from "./replica.js";
import { Standings } from "./standings.js";

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
  await replica.mark({ path: "f", epoch: "3", incarnation: "a" });
  store.crash(() => true);
  expect(text((await store.readBlock("f", 0))!.bytes)).toBe("new!");
});

test("a change that an earlier reset has left out does not come back from the copy that has it", async () => {
  // The primary of epoch 2 wrote only to its own disk. The primary of epoch 3 has served since, without that
  // write.
  const stores = [
    await diskOf("a", 2n, 2n, "lost"),
    await diskOf("b", 3n, 1n, "kept"),
    await diskOf("c", 3n, 1n, "kept"),
  ];
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  files.reachable.delete("c");
  const file = files.nodes.get("a")!.named("f");
  expect(text(await files.during(file.read(0, 4)))).toBe("kept");
});

test.each([
  ["at the next primary", "b"],
  ["at a copy that is completed", "a"],
])("a file whose creation an earlier reset has left out does not appear: %s", async (_, left) => {
  // The primary of epoch 2 created the file only on its own disk. The primary of epoch 3 has recorded that
  // the file does not exist.
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
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  files.reachable.delete("c");
  const stat = files.during(files.nodes.get("b")!.named("f").stat());
  await expect(stat).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  const metas = await Promise.all(stores.slice(0, 2).map((store) => store.readMeta("f")));
  expect(metas.map((meta) => metaOf(meta!).header)).toEqual([undefined, undefined]);
});

test("a primary does not serve on after a change that no majority has confirmed", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 0n, 0n, "old!")));
  const files = await FilesCluster.start(stores);
  const file = files.nodes.get("a")!.named("f");
  expect((await files.during(file.stat())).size).toBe(4);
  files.reachable.delete("b");
  files.reachable.delete("c");
  await expect(files.during(file.write(0, bytes("new!")))).rejects.toMatchObject({
    code: "FILE_UNCERTAIN",
  });
  await expect(files.during(file.read(0, 4))).rejects.toMatchObject({ code: "NO_QUORUM" });
  files.reachable.add("b");
  expect(text(await files.during(file.read(0, 4)))).toBe("new!");
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
  const files = await FilesCluster.start(stores, busyFirst);
  expect((await files.during(files.nodes.get("a")!.stat("f"))).size).toBe(4);
  expect(refused).toBeGreaterThan(2);
});
