import type { Recovered } from "../raft/api.js";
import { founding } from "../raft/options.js";
import type { MemberId, SnapshotMeta } from "../raft/types.js";
import type { CoreMember } from "../state/members.js";
import type { CoreState } from "../state/state.js";
import type { Steps } from "../state/steps.js";
import { readCommand } from "../replica/proposals/read-command.js";

/** The start parameters shared by the servers of a new core. */
export interface FoundingPlan<Member> {
  readonly initialCluster: readonly Member[];
  readonly name: string;
  readonly token: string;
}

/** The state at one moment, and a text unique to it. */
export interface Backup {
  readonly state: CoreState;
  readonly hash: string;
}

/** Derives ids from addresses and a token: the same on all servers with the same parameters. */
export type Identify<Member, Identity> = (
  founding: readonly Member[],
  name: string,
  token: string,
) => Identity;

/**
 * Makes the initial disk of a server of a new core from a backup. `backup.state` becomes the server's state.
 * The ids also depend on the backup: servers restored from different backups refuse each other, and servers
 * of the original core are refused at any address.
 */
export function restored<Member, Identity extends { readonly members: readonly { readonly id: MemberId }[] }>(
  { hash, state }: Backup,
  { initialCluster, name, token }: FoundingPlan<Member>,
  identify: Identify<Member, Identity>,
): { readonly identity: Identity; readonly recovered: Recovered } {
  // The first entry of the new log lists the new members.
  state.becomeNew();
  const identity = identify(initialCluster, name, `${token} ${hash}`);
  return { identity, recovered: founding(identity.members.map(({ id }) => id)) };
}

/**
 * Makes the initial disk of the only server of a new core from everything on its present disk. That includes
 * entries that may not have been committed, since some of them may have been. `state` is that of the snapshot
 * on disk, and becomes that of the new core.
 *
 * @param own this server, in case the state does not list it
 * @param cluster the new core's id
 */
export function* forced(
  { entries, hardState, snapshot }: Recovered,
  state: CoreState,
  own: CoreMember,
  cluster: bigint,
): Steps<Recovered> {
  const { index, term } = yield* replay(entries, snapshot, state);
  const self = state.members.get(own.id) ?? own;
  state.becomeNew();
  state.cluster = cluster;
  state.members.set([{ ...self, learner: false, joining: false, disk: own.disk }]);
  const meta: SnapshotMeta = {
    index: index + 1,
    term: Math.max(term, hardState.term) + 1,
    membership: { voters: [own.id], learners: [] },
  };
  return {
    hardState: { term: meta.term, votedFor: 0n, commit: meta.index },
    snapshot: meta,
    entries: [],
  };
}

/** @returns the end of the log */
function* replay(
  entries: Recovered["entries"],
  snapshot: SnapshotMeta,
  state: CoreState,
): Steps<{ readonly index: number; readonly term: number }> {
  let end: { readonly index: number; readonly term: number } = snapshot;
  for (const entry of entries) {
    if (entry.index <= end.index) continue;
    end = entry;
    if (entry.data.length > 0) {
      const command = readCommand(entry.index, entry.data);
      yield* state.applying(command, entry.term, entry.index);
    }
    yield;
  }
  yield* state.revisions.sweep();
  return end;
}
