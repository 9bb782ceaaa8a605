import { expect, test } from "vitest";
import {
  bytes,
  diskOf,
  FilesCluster,
  header,
  joinedDisk,
  names,
  stamp,
  text,
} from "../../../../test/support/files-cluster.js";
import { LeaseholdError } from "leasehold/common";
import { metaOf, metaText, tagOf } from "./records.js";

test("a copy is not marked as complete in a process that started during it", async () => {
  // "new!" is acknowledged at `a` and `c`. `a` is the primary and completes the copy of `b`.
  const stores = [
    await diskOf("a", 2n, 2n, "new!"),
    await diskOf("b", 1n, 1n, "old!"),
    await diskOf("c", 2n, 2n, "new!"),
  ];
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  files.reachable.delete("c");
  let crashes = 0;
  files.before = async (to, kind) => {
    // The power failure loses unsynced changes.
    if (to !== "b" || kind !== "mark" || (crashes += 1) > 1) return;
    files.storeOf("b").crash(() => true);
    await files.start("b");
  };
  expect(text(await files.during(files.nodes.get("a")!.named("f").read(0, 4)))).toBe("new!");
  expect(crashes).toBeGreaterThan(0);
  // `a` is gone, and `b` is part of the remaining majority.
  files.reachable.add("c").delete("a");
  files.cluster.cutOff("a");
  await files.cluster.advance("5s");
  expect(text(await files.during(files.nodes.get("b")!.named("f").read(0, 4)))).toBe("new!");
});

test("a disk that is replaced between its promise and the list of its blocks does not count", async () => {
  // "new!" is acknowledged at `b` and `c`.
  const stores = [
    await diskOf("a", 1n, 1n, "old!"),
    await diskOf("b", 2n, 2n, "new!"),
    await diskOf("c", 2n, 2n, "new!"),
  ];
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  files.reachable.delete("b");
  let replaced = false;
  files.before = async (to, kind, _ask, from) => {
    if (from !== "a" || to !== "c" || kind !== "blocks" || replaced) return;
    replaced = true;
    files.reachable.add("b");
    files.storeOf("c").wipe();
    await files.start("c");
    for (let turns = 0; files.nodes.get("c")!.status().state === "waiting"; turns += 1) {
      expect(turns).toBeLessThan(10_000);
      await Promise.resolve();
    }
  };
  expect(text(await files.during(files.nodes.get("a")!.named("f").read(0, 4)))).toBe("new!");
  expect(replaced).toBe(true);
});

test("truncated data does not come back when the last block cannot be read at the time", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 1n, 1n, "abcd")));
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  const file = files.nodes.get("a")!.named("f");
  expect((await files.during(file.stat())).size).toBe(4);
  files.storeOf("a").rot("f", 0);
  let isFetched = false;
  files.before = (_to, kind) => {
    if (kind === "fetch" && !isFetched) throw new LeaseholdError("TIMEOUT");
  };
  await expect(files.during(file.truncate(2))).rejects.toMatchObject({ code: "FILE_UNCERTAIN" });
  isFetched = true;
  await files.during(file.write(3, bytes("X")));
  expect(text(await files.during(file.read(0, 8)))).toBe("ab\0X");
});

test("a node with an empty disk recovers a file whose primary serves on without a change", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 1n, 1n, "old!")));
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  const file = files.nodes.get("a")!.named("f");
  expect(await files.during(file.sync())).toBe(3);
  files.storeOf("c").wipe();
  await files.start("c");
  await files.cluster.advance("5s");
  expect(files.nodes.get("c")!.status()).toMatchObject({ state: "serving" });
  expect(text((await files.storeOf("c").readBlock("f", 0))?.bytes ?? bytes("none"))).toBe("old!");
  expect(metaOf((await files.storeOf("c").readMeta("f"))!).base).toBeDefined();
});

test("a file whose creation a reset has left out has no state", async () => {
  const stores = await Promise.all(
    names.map(async (node) => {
      const store = await joinedDisk(node);
      const isLeft = node === "b";
      const base = isLeft ? 2n : 3n;
      const left = isLeft ? { ...header, epoch: 2n } : undefined;
      await store.writeMeta("f", metaText({ promised: 3n, base, header: left }));
      return store;
    }),
  );
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  files.reachable.delete("c");
  expect(await files.during(files.nodes.get("a")!.stats(["f"]))).toEqual(new Map());
});

test("a file does not grow beyond the exact integers of a number", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 1n, 1n, "old!")));
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  const file = files.nodes.get("a")!.named("f");
  await files.during(file.truncate(Number.MAX_SAFE_INTEGER - 1));
  await expect(files.during(file.append(bytes("two")))).rejects.toMatchObject({ code: "INVALID_RANGE" });
  expect((await files.during(file.stat())).size).toBe(Number.MAX_SAFE_INTEGER - 1);
});

test.each([
  ["a read of a terabyte", { path: "f", operation: { kind: "read", offset: 0, length: 2 ** 40 } }],
  ["a write beyond the largest offset", { path: "f", operation: { kind: "write", offset: -1 } }],
  ["a path that leaves its folder", { path: "../f", operation: { kind: "stat" } }],
])("%s, asked by another node, is refused", async (_what, ask) => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 1n, 1n, "old!")));
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  const file = files.nodes.get("a")!.named("f");
  await files.during(file.truncate(Number.MAX_SAFE_INTEGER));
  const answer = files.nodes.get("a")!.answer("operate", ask as never, bytes("x"));
  await expect(answer).rejects.toMatchObject({ code: expect.stringMatching(/^INVALID_(RANGE|PATH)$/) });
});

test("an aborted call ends at once, also at the primary's own node", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, 1n, 1n, "old!")));
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  const file = files.nodes.get("a")!.named("f");
  await files.during(file.stat());
  files.before = (_to, kind) => (kind === "put" ? new Promise<void>(() => undefined) : undefined);
  const stop = new AbortController();
  let ended = "not yet";
  const writing = file.write(0, bytes("new!"), { signal: stop.signal }).catch((error: LeaseholdError) => {
    ended = error.code;
  });
  await files.cluster.advance("10ms");
  stop.abort();
  for (let turns = 0; turns < 100; turns += 1) await Promise.resolve();
  expect(ended).toBe("FILE_UNCERTAIN");
  await writing;
});

test("a node closes while it copies a large file", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, name === "a" ? 0n : 1n, 1n, "old!")));
  for (const store of stores.slice(1))
    for (let index = 1; index < 500; index += 1)
      await store.writeBlock(
        "f",
        index,
        tagOf({ ...stamp, size: 8 * index + 8, epoch: 1n, sequence: 10 + index }),
        bytes("old!"),
      );
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  files.before = async (_to, kind) => {
    if (kind === "fetch")
      await new Promise<void>((resolve) => void files.cluster.world.timers.after(50, resolve));
  };
  const read = files.nodes
    .get("a")!
    .named("f")
    .read(0, 4)
    .catch((error: LeaseholdError) => error.code);
  await files.cluster.advance("300ms");
  let isClosed = false;
  void files.nodes
    .get("a")!
    .close()
    .then(() => (isClosed = true));
  await files.cluster.advance("500ms");
  expect(isClosed).toBe(true);
  expect(await read).toBe("CLOSED");
});

test("a call times out while its file is copied, and a later one finds the copied blocks", async () => {
  const stores = await Promise.all(names.map((name) => diskOf(name, name === "a" ? 0n : 1n, 1n, "old!")));
  for (const store of stores.slice(1))
    for (let index = 1; index < 100; index += 1)
      await store.writeBlock(
        "f",
        index,
        tagOf({ ...stamp, size: 8 * index + 8, epoch: 1n, sequence: 10 + index }),
        bytes("old!"),
      );
  const files = await FilesCluster.start(stores);
  await files.spendEpochs(3n);
  let fetched = 0;
  files.before = async (_to, kind) => {
    if (kind !== "fetch") return;
    fetched += 1;
    await new Promise<void>((resolve) => void files.cluster.world.timers.after(50, resolve));
  };
  const begunMs = files.cluster.world.clock.monotonicMs();
  let endedMs = 0;
  const first = files.nodes.get("a")!.named("f").read(0, 4);
  void first.catch(() => (endedMs = files.cluster.world.clock.monotonicMs()));
  await expect(files.during(first)).rejects.toMatchObject({ code: "NO_QUORUM" });
  expect(endedMs - begunMs).toBeLessThan(700);
  expect(text(await files.during(files.nodes.get("a")!.named("f").read(0, 4)))).toBe("old!");
  expect(fetched).toBeLessThan(110);
});
