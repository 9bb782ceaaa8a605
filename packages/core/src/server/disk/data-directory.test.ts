import { chmod, cp, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { configOf } from "../config/config.js";
import { openDataDirectory } from "./data-directory.js";

/**
 * A directory that the first version wrote: 20 versions of `often`; `k0` to `k4`, of which `k3` was deleted;
 * all compacted at 10; a lease with the key `held`; 30 versions of `later`. The snapshot ends among those,
 * and the journal continues.
 */
const first = fileURLToPath(new URL("../../../../../test/core/fixtures/data-1", import.meta.url));

test("a directory written by an earlier version is read: its snapshot, and the journal after it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lh-data-"));
  await cp(first, folder, { recursive: true });
  const { journal, lock, recovered, state, tornBytes } = await openDataDirectory(
    configOf({ dataDir: folder }),
  );
  const { revisions, leases } = state;
  expect(tornBytes).toBe(0);
  expect(revisions).toMatchObject({ current: 38, compacted: 10, live: 7 });
  expect(revisions.get("often")).toMatchObject({ version: 20, created: 2 });
  expect(revisions.getAt("often", 10)).toMatchObject({ version: 9 });
  expect(revisions.get("k3")).toBeUndefined();
  const [lease] = [...leases.all()];
  expect(lease).toMatchObject({ ttlSeconds: 4_000, keys: "held" });
  expect(recovered.entries.at(-1)!.index - recovered.snapshot.index).toBe(recovered.entries.length);
  expect(recovered.entries.length).toBeGreaterThan(15);
  await journal.close();
  await lock.release();
  await rm(folder, { recursive: true });
});

/** The modes of the directory's files, as shown by `ls`; without the lock's, which has no content. */
async function modes(folder: string): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => !name.startsWith("lock"));
  const found = names.map(async (name): Promise<[string, string]> => {
    const { mode } = await stat(join(folder, name));
    return [name, (mode & 0o777).toString(8)];
  });
  return new Map((await Promise.all(found)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

test("no other user can read its content, whichever user created it and whichever version wrote it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lh-data-"));
  await chmod(folder, 0o755);
  const config = configOf({ dataDir: folder, name: "a" });
  const open = async () => {
    const { journal, lock } = await openDataDirectory(config);
    const found = await modes(folder);
    await journal.close();
    await lock.release();
    return found;
  };
  const first = await open();
  expect([...first.keys()]).toEqual(
    expect.arrayContaining(["member.json", "snapshots", "wal", "wal/000000000001.wal"]),
  );
  for (const [name, mode] of first) {
    const isFolder = name === "wal" || name === "snapshots";
    expect([name, mode]).toEqual([name, isFolder ? "700" : "600"]);
    await chmod(join(folder, name), isFolder ? 0o755 : 0o644);
  }
  expect(await open()).toEqual(first);
  await rm(folder, { recursive: true });
});
