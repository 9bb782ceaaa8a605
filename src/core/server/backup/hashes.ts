import { checksumOf } from "../../journal/checksum.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { CoreError } from "../../state/errors.js";
import { hashOfKeys } from "../../state/hash.js";
import { snapshotPieces } from "../../state/snapshot.js";
import type { Steps } from "../../state/steps.js";

/** Of all that a server has: the same on all that have applied the same, and only then. */
export function* hashOfAll({ source }: FrozenState): Steps<number> {
  let hash = 0;
  for (const piece of snapshotPieces(source)) {
    hash = checksumOf(piece, hash);
    yield;
  }
  return hash;
}

/**
 * Of keys and their history up to a revision, as `hashOfKeys` of the state has it.
 *
 * @param revision 0 for the newest
 * @throws CoreError `futureRevision`, `compacted`
 */
export function* hashAt({ source }: FrozenState, revision: bigint): Steps<number> {
  const { compacted, current } = source.revisions;
  const until = revision === 0n ? current : Number(revision);
  if (until > current) throw new CoreError("futureRevision");
  if (revision > 0n && until <= compacted) throw new CoreError("compacted");
  return yield* hashOfKeys(source.revisions, until, checksumOf);
}
