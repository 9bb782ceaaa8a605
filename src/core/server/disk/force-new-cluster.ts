import { randomBytes } from "node:crypto";
import type { Journal } from "../../journal/journal.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { Recovered } from "../../raft/api.js";
import type { SnapshotMeta } from "../../raft/types.js";
import { readCommand } from "../../replica/applier.js";
import { snapshotPieces } from "../../state/snapshot.js";
import type { CoreState } from "../../state/state.js";
import { foundingMember } from "../common/identity.js";
import { finishInTurns, batchesInTurns, Turns } from "../common/turns.js";
import { type MemberRecord, writeMemberRecord } from "./member-file.js";

/** A server's data directory, opened. */
export interface OpenedContent {
  readonly journal: Journal;
  readonly snapshots: Snapshots;
  readonly record: MemberRecord;
  readonly recovered: Recovered;
  readonly state: CoreState;
}

/**
 * Makes this server the only one of a new core, with all that is on its disk: also entries of which nobody
 * knows whether they were committed, as those that were may be among them. What only the others had is lost.
 *
 * The new core has an id of its own: the former members, should they come back, are refused, and do not vote
 * here. The journal's change is the last step. A crash before it leaves the old log under the new id, by
 * which nobody can be reached; then this is done again.
 *
 * @throws LeaseholdError `DISK_FAILED`, `LOG_CORRUPT`
 */
export async function forceNewCluster(path: string, opened: OpenedContent): Promise<OpenedContent> {
  const { journal, snapshots, record, recovered, state } = opened;
  const { index, term } = await replay(recovered, state);
  const own =
    state.members.get(record.id) ?? record.members.map(foundingMember).find(({ id }) => id === record.id)!;
  const cluster = randomBytes(8).readBigUInt64BE();
  state.becomeNew();
  state.cluster = cluster;
  state.members.set([{ ...own, learner: false, joining: false, disk: record.disk }]);
  const members = [{ id: own.id, name: own.name, peerUrls: own.peerUrls }];
  const forced = { ...record, cluster, members, disks: new Map() };
  const meta: SnapshotMeta = {
    index: index + 1,
    term: Math.max(term, recovered.hardState.term) + 1,
    membership: { voters: [own.id], learners: [] },
  };
  const hardState = { term: meta.term, votedFor: 0n, commit: meta.index };
  await snapshots.save(meta, batchesInTurns(snapshotPieces(state)));
  await writeMemberRecord(path, forced);
  await journal.append({ installed: meta, hardState });
  await journal.removeUpTo(meta.index);
  await snapshots.removeBefore(meta.index);
  return { ...opened, record: forced, recovered: { hardState, snapshot: meta, entries: [] } };
}

/** Where the log ends. */
async function replay(
  { entries, snapshot }: Recovered,
  state: CoreState,
): Promise<{ index: number; term: number }> {
  const turns = new Turns();
  let end: { index: number; term: number } = snapshot;
  for (const entry of entries) {
    if (entry.index <= end.index) continue;
    end = entry;
    if (entry.data.length > 0)
      await finishInTurns(state.applying(readCommand(entry.index, entry.data), entry.term));
    if (turns.isOver) await turns.next();
  }
  await finishInTurns(state.revisions.sweep());
  return { index: end.index, term: end.term };
}
