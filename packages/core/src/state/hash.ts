import { bytesOf } from "./keys.js";
import type { Version } from "./revisions.js";
import { type Steps, unitsPerStep } from "./steps.js";
import { bytesOfValue } from "./values.js";

/** A checksum that continues from the one of the preceding bytes. */
export type Checksum = (bytes: Uint8Array, before: number) => number;

/** Bytes of values hashed in one step: some tens of microseconds. */
const bytesPerStep = 64 * 1024;

/**
 * Hashes keys and their history up to a revision. The hash is the same on all servers that have the revision
 * and have compacted up to the same one.
 */
export function* hashOfKeys(
  view: { histories(): Iterable<readonly Version[]> },
  revision: number,
  checksum: Checksum,
): Steps<number> {
  let hash = 0;
  let looked = 0;
  let bytes = 0;
  for (const history of view.histories())
    for (const version of history) {
      looked += 1;
      if (version.modified <= revision) {
        bytes += version.value.length;
        hash = checksum(bytesOfValue(version.value), checksum(headOf(version), hash));
      }
      if (looked < unitsPerStep && bytes < bytesPerStep) continue;
      looked = 0;
      bytes = 0;
      yield;
    }
  return hash;
}

/** Everything but the value, with both lengths: unique for each version. */
function headOf({ created, key, lease, modified, sub, value, version }: Version): Uint8Array {
  const numbers = new Float64Array([modified, sub, created, version, key.length, value.length]);
  const keyBytes = bytesOf(key);
  const head = new Uint8Array(numbers.byteLength + 8 + keyBytes.length);
  head.set(new Uint8Array(numbers.buffer));
  new DataView(head.buffer).setBigInt64(numbers.byteLength, lease, true);
  head.set(keyBytes, numbers.byteLength + 8);
  return head;
}
