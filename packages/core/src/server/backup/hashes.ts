import { checksumOf } from "leasehold/journal";
import type { FrozenState } from "../../replica/frozen-state.js";
import { CoreError } from "../../state/errors.js";
import { inOrder, isDeletion, type Version } from "../../state/revisions.js";
import { snapshotPieces, type SnapshotSource } from "../../state/snapshot.js";
import { sortInSteps, type Steps, unitsPerStep } from "../../state/steps.js";
import { crc32c } from "./crc32c.js";
import { keyValueBytes, revisionOf } from "./records.js";

/**
 * Hashes a server's whole content. The hash is the same on all servers that have applied the same commands,
 * and only on those.
 */
export function* hashOfAll({ source }: FrozenState): Steps<number> {
  let hash = 0;
  for (const piece of snapshotPieces(source)) {
    hash = checksumOf(piece, hash);
    yield;
  }
  return hash;
}

/** Bytes hashed in one step. */
const bytesPerStep = 64 * 1024;

/**
 * Hashes keys and their history up to a revision. The hash is the same on all servers that have the revision,
 * and have compacted up to the same one. It is etcd's hash, over the content of its bucket of keys.
 *
 * @param revision 0 for the newest
 * @throws CoreError `futureRevision`, `compacted`
 */
export function* hashAt({ source: { revisions } }: FrozenState, revision: bigint): Steps<number> {
  const until = revision === 0n ? revisions.current : Number(revision);
  if (until > revisions.current) throw new CoreError("futureRevision");
  if (revision > 0n && until <= revisions.compacted) throw new CoreError("compacted");
  let hash = crc32c(Buffer.from("key"), 0);
  let [bytes, looked] = [0, 0];
  for (const version of yield* hashedVersions(revisions, until)) {
    const { modified, sub } = version;
    const value = keyValueBytes(version);
    hash = crc32c(value, crc32c(revisionOf(modified, sub, isDeletion(version)), hash));
    bytes += value.length;
    looked += 1;
    if (bytes < bytesPerStep && looked % unitsPerStep > 0) continue;
    bytes = 0;
    yield;
  }
  return hash;
}

/**
 * Of compacted versions, etcd hashes those still readable at that revision. If no key exists then, it hashes
 * everything that compaction has left, which excludes deletions.
 */
function* hashedVersions(revisions: SnapshotSource["revisions"], until: number): Steps<readonly Version[]> {
  const hashed: Version[] = [];
  const left: Version[] = [];
  let isEmpty = true;
  let looked = 0;
  for (const history of revisions.histories()) {
    const newest = history.findLast(({ modified }) => modified <= until);
    if (newest === undefined) continue;
    if (!isDeletion(newest)) isEmpty = false;
    for (const version of history) {
      looked += 1;
      if (looked % unitsPerStep === 0) yield;
      if (version.modified > until) break;
      if (version.modified > revisions.compacted) hashed.push(version);
      else if (!isDeletion(version)) (version === newest ? hashed : left).push(version);
    }
  }
  if (isEmpty) for (const version of left) hashed.push(version);
  return yield* sortInSteps(hashed, inOrder);
}
