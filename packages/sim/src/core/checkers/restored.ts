import { restoreState } from "@leasehold/core/inner/state/snapshot.js";
import { keysOf } from "@leasehold/core/inner/state/leases.js";
import type { CoreState } from "@leasehold/core/inner/state/state.js";
import { bytesOfValue } from "@leasehold/core/inner/state/values.js";
import type { NewCore, TakenBackup } from "../world/cores.js";
import type { CoreReport } from "../world/invariants.js";
import type { Reference } from "../world/reference.js";
import { text } from "../world/requests.js";

/**
 * When a core begins with the state of another, each of its servers has exactly that state. The expected
 * state is computed here by replaying the former core's log.
 */
export function checkRestored({ reference, servers }: NewCore, report: CoreReport): void {
  for (const { disk, id } of servers)
    compare(restoreState(disk.snapshot!.pieces), reference.state, report, `${id} begins, and`);
}

/**
 * A backup is consistent: it has everything in the log up to its index and nothing after that. Only the
 * remaining times of leases may be newer.
 */
export function checkBackup({ index, pieces }: TakenBackup, former: Reference, report: CoreReport): void {
  const got = withoutTime(restoreState(pieces));
  const expected = withoutTime(former.stateAt(index));
  compare(got, expected, report, `a backup at ${index}`);
}

function withoutTime(state: CoreState): CoreState {
  for (const lease of state.leases.all()) lease.leftMs = undefined;
  return state;
}

function compare(found: CoreState, expected: CoreState, report: CoreReport, what: string): void {
  const got = contentOf(found);
  for (const [part, should] of Object.entries(contentOf(expected)))
    if (got[part] !== should) report("restored", `${what} has ${part} ${got[part]}, and not ${should}`);
}

/** A text for each part, equal for equal states. */
function contentOf(state: CoreState): Record<string, string> {
  const { auth, cluster, corruptAlarms, leases, members, revisions, spaceAlarms } = state;
  const json = (value: unknown) =>
    JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? `${each}` : each));
  const ids = (set: ReadonlySet<bigint>) => [...set].map(String).sort();
  return {
    cluster: `${cluster}`,
    members: json([members.all, ids(members.removed)]),
    alarms: json([ids(spaceAlarms), ids(corruptAlarms)]),
    revisions: `${revisions.compacted} to ${revisions.current}`,
    keys: json(
      Array.from(revisions.histories(), (history) =>
        history.map(({ value, ...rest }) => ({ ...rest, value: text(bytesOfValue(value)) })),
      ),
    ),
    leases: json(Array.from(leases.all(), (lease) => ({ ...lease, keys: [...keysOf(lease)].sort() }))),
    rights: json([auth.isEnabled, auth.revision, auth.users(), auth.roles()]),
  };
}
