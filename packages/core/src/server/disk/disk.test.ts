import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Journal } from "../../journal/journal.js";
import { Snapshots } from "../../journal/snapshots.js";
import type { Persist, SnapshotMeta } from "../../raft/types.js";
import { Disk } from "./disk.js";

const metaAt = (index: number): SnapshotMeta => ({
  index,
  term: 1,
  membership: { voters: [1n], learners: [] },
});
const persist = (sequence: number, snapshot?: SnapshotMeta): Persist => ({
  sequence,
  hardState: { term: 1, votedFor: 1n, commit: 0 },
  entries: [],
  snapshot,
});

let folder: string;
let journal: Journal;
let disk: Disk;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lh-disk-"));
  ({ journal } = await Journal.open(join(folder, "wal")));
  disk = new Disk(journal, await Snapshots.open(join(folder, "snapshots")), 0);
});
afterEach(async () => {
  await journal.close();
  await rm(folder, { recursive: true });
});

test("a leader's snapshot without its content is refused, and the log does not continue after it", async () => {
  const other = { meta: metaAt(6), pieces: [Uint8Array.of(1)] };
  const steps = [
    disk.persist(persist(1, metaAt(7)), undefined),
    disk.persist(persist(2), undefined),
    disk.persist(persist(3, metaAt(8)), other),
  ];
  for (const step of steps) await expect(step).rejects.toThrow("cannot be written without its content");
  expect(journal.batches).toBe(0);
  expect(await readdir(join(folder, "snapshots"))).toEqual([]);
});

test("an aborted snapshot leaves nothing, and the log is unchanged", async () => {
  const giving = new AbortController();
  function* pieces() {
    yield Uint8Array.of(1);
    giving.abort(new Error("given up"));
    for (;;) yield Uint8Array.of(2);
  }
  const saving = disk.saveSnapshot({ meta: metaAt(7), pieces: pieces() }, giving.signal);
  await expect(saving).rejects.toThrow("given up");
  expect(await readdir(join(folder, "snapshots"))).toEqual([]);
  expect(journal.batches).toBe(0);
});
