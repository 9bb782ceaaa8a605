import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { configOf } from "../common/config.js";
import { openDataDirectory } from "./data-directory.js";

/**
 * A directory that the first version wrote: 20 versions of `often`, `k0` to `k4` of which `k3` was deleted,
 * all compacted at 10, a lease with the key `held`, 30 versions of `later`. The snapshot ends among those,
 * and the journal goes on after it.
 */
const first = fileURLToPath(new URL("../../../../test/core/fixtures/data-1", import.meta.url));

test("a directory that an earlier version wrote is read: its snapshot, and the journal that goes on", async () => {
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
