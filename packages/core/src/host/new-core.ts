import type { Recovered } from "../raft/api.js";
import { founding } from "../raft/options.js";
import type { MemberId, SnapshotMeta } from "../raft/types.js";
import type { CoreMember } from "../state/members.js";
import type { CoreState } from "../state/state.js";
import type { Steps } from "../state/steps.js";
import { readCommand } from "../replica/proposals/read-command.js";

/** What the servers of a core are told when it begins. */
export interface FoundingPlan<Member> {
  readonly initialCluster: readonly Member[];
  readonly name: string;
  readonly token: string;
}

/** The state of one moment, and a text that no other state has. */
export interface Backup {
  readonly state: CoreState;
  readonly hash: string;
}

/** Makes ids of addresses and a token: the same on all servers that are told the same. */
export type Identify<Member, Identity> = (
  founding: readonly Member[],
  name: string,
  token: string,
) => Identity;

/**
 * What a server of a new core begins with that is made from a backup: `backup.state` becomes its state. The
 * ids rest on the backup, too: servers that were restored from different ones refuse each other, and those of
 * the core that it was taken of are refused, at whatever addresses they come back.
 */
export function restored<Member, Identity extends { readonly members: readonly { readonly id: MemberId }[] }>(
  { hash, state }: Backup,
  { initialCluster, name, token }: FoundingPlan<Member>,
  identify: Identify<Member, Identity>,
): { readonly identity: Identity; readonly recovered: Recovered } {
  // Who the new members are, the first entry of the new log says.
  state.becomeNew();
  const identity = identify(initialCluster, name, `${token} ${hash}`);
  return { identity, recovered: founding(identity.members.map(({ id }) => id)) };
}

/**
 * What the only server of a new core begins with, with all that its disk has: also entries of which nobody
 * knows whether they were committed, as those that were may be among them. `state` is that of the snapshot on
 * its disk, and becomes that of the new core.
 *
 * @param own this server, if the state does not say who it is
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

/** Where the log ends. */
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
