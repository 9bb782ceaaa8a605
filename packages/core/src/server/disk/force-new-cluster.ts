import { randomBytes } from "node:crypto";
import type { Journal } from "../../journal/journal.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { Recovered } from "../../raft/api.js";
import { forced } from "../../host/new-core.js";
import { snapshotPieces } from "../../state/snapshot.js";
import type { CoreState } from "../../state/state.js";
import { foundingMember } from "../config/identity.js";
import { batchesInTurns, finishInTurns } from "../accounts/turns.js";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

/** An opened data directory. */
export interface OpenedContent {
  readonly journal: Journal;
  readonly snapshots: Snapshots;
  readonly record: MemberRecord;
  readonly recovered: Recovered;
  readonly state: CoreState;
}

/**
 * Makes this server the only one of a new core, with everything on its disk. That includes entries that may
 * not have been committed, since some of them may have been. Entries that only the others had are lost.
 *
 * The new core has its own id: former members that come back are refused, and cannot vote here. The change of
 * the journal is the last step. A crash before it leaves the old log under the new id, with which no other
 * server can be reached; then all of this is repeated.
 *
 * @throws LeaseholdError `DISK_FAILED`, `LOG_CORRUPT`
 */
export async function forceNewCluster(path: string, opened: OpenedContent): Promise<OpenedContent> {
  const { journal, snapshots, record, state } = opened;
  const known = record.members.map(foundingMember).find(({ id }) => id === record.id)!;
  const cluster = randomBytes(8).readBigUInt64BE();
  const recovered = await finishInTurns(
    forced(opened.recovered, state, { ...known, disk: record.disk }, cluster),
  );
  const { hardState, snapshot: meta } = recovered;
  const own = state.members.get(record.id)!;
  const members = [{ id: own.id, name: own.name, peerUrls: own.peerUrls }];
  const changed = { ...record, cluster, members, disks: new Map() };
  await snapshots.save(meta, batchesInTurns(snapshotPieces(state)));
  await writeMemberRecord(path, changed);
  await journal.append({ installed: meta, hardState });
  await journal.removeUpTo(meta.index);
  await snapshots.removeBefore(meta.index);
  return { ...opened, record: changed, recovered };
}
