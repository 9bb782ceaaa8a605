import { Buffer } from "node:buffer";
import { checksumOf } from "../../journal/checksum.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { CoreError } from "../../state/errors.js";
import type { Version } from "../../state/revisions.js";
import { snapshotPieces } from "../../state/snapshot.js";
import { type Steps, unitsPerStep } from "../../state/steps.js";
import { bytesOfValue } from "../../state/values.js";

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
 * Of keys and their history up to a revision: the same on all servers that have it, and have compacted as
 * far.
 *
 * @param revision 0 for the newest
 * @throws CoreError `futureRevision`, `compacted`
 */
export function* hashOfKeys({ source }: FrozenState, revision: bigint): Steps<number> {
  const { compacted, current } = source.revisions;
  const until = revision === 0n ? current : Number(revision);
  if (until > current) throw new CoreError("futureRevision");
  if (revision > 0n && until <= compacted) throw new CoreError("compacted");
  let hash = 0;
  let looked = 0;
  for (const history of source.revisions.histories())
    for (const version of history) {
      looked += 1;
      if (looked % unitsPerStep === 0) yield;
      if (version.modified <= until) hash = checksumOf(bytesOfVersion(version), hash);
    }
  return hash;
}

function bytesOfVersion({ key, value, lease, ...numbers }: Version): Buffer {
  const { created, modified, sub, version } = numbers;
  const text = `${Buffer.from(key).toString("base64")} ${modified} ${sub} ${created} ${version} ${lease} `;
  return Buffer.concat([Buffer.from(text), bytesOfValue(value)]);
}
