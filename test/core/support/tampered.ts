import { join } from "node:path";
import { Snapshots } from "../../../packages/core/src/journal/snapshots.js";
import { restoreState, snapshotPieces } from "../../../packages/core/src/state/snapshot.js";
import { CoreState } from "../../../packages/core/src/state/state.js";
import { finish } from "../../../packages/core/src/state/steps.js";

/** A snapshot in which a key has another value than the one written, with all checksums valid. */
export function withOtherValue(pieces: Iterable<Uint8Array>, key: string): Uint8Array[] {
  const state = restoreState(pieces);
  const newest = state.revisions.get(key);
  if (newest === undefined) throw new Error(`the snapshot has no key ${key}`);
  const other = new CoreState();
  Object.assign(other, { cluster: state.cluster, clusterMs: state.clusterMs });
  other.revisions.current = state.revisions.current;
  other.revisions.compacted = state.revisions.compacted;
  other.members.set(state.members.all);
  for (const { id, name, ttlSeconds } of state.leases.all()) other.leases.grant(id, ttlSeconds, name);
  for (const history of state.revisions.histories())
    other.revisions.restore(
      history.map((version) => (version === newest ? { ...version, value: "another value" } : version)),
    );
  finish(other.revisions.restored());
  return [...snapshotPieces(other)];
}

/** Does the same to all snapshots in a server's data directory, which must not be in use. */
export async function tamperWith(dataDir: string, key: string): Promise<void> {
  const snapshots = await Snapshots.open(join(dataDir, "snapshots"));
  for (const position of await snapshots.list()) {
    const { meta, batches } = await snapshots.read(position);
    const all: Uint8Array[] = [];
    for await (const batch of batches) for (const piece of batch) all.push(piece);
    await snapshots.save(meta, [withOtherValue(all, key)]);
  }
}
