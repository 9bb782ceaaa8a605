import { type Steps, unitsPerStep } from "../../state/steps.js";
import type { BoltFile } from "./bolt/read.js";
import { crc32c } from "./crc32c.js";
import { readRevision } from "./records.js";

/** The same result as `etcdctl snapshot status` for the same file. */
export interface BackupStatus {
  /** CRC-32C of the names of buckets, the keys and the values. */
  readonly hash: number;
  /** The revision of the newest change. */
  readonly revision: number;
  /** Number of keys in all buckets. */
  readonly totalKey: number;
  readonly totalSize: number;
}

/** @throws BoltError */
export function* statusOf(file: BoltFile): Steps<BackupStatus> {
  let [hash, revision, totalKey] = [0, 0, 0];
  for (const { items, name } of file.buckets()) {
    hash = crc32c(Buffer.from(name), hash);
    for (const { key, value } of items) {
      totalKey += 1;
      if (totalKey % unitsPerStep === 0) yield;
      hash = crc32c(value, crc32c(key, hash));
      if (name === "key") revision = readRevision(key)?.main ?? revision;
    }
  }
  return { hash, revision, totalKey, totalSize: file.bytes };
}
