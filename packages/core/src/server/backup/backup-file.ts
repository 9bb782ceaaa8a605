import { createHash } from "node:crypto";
import type { FrozenState } from "../../replica/frozen-state.js";
import type { Steps } from "../../state/steps.js";
import { type DatabasePlan, databasePages, planDatabase } from "./bolt/write.js";
import { bucketsOf } from "./buckets.js";

/**
 * Length of a SHA-256, at the file's end. The pages before it are full blocks of 512 bytes: etcdctl detects
 * the hash by the file's length.
 */
export const hashBytes = 32;

/** A planned backup, not written yet. */
export interface BackupPlan {
  readonly database: DatabasePlan;
  /** Length of the whole file. */
  readonly bytes: number;
}

/** Determines content and size of a backup. Later changes are not included. */
export function* planBackup(state: FrozenState): Steps<BackupPlan> {
  const database = yield* planDatabase(yield* bucketsOf(state));
  return { database, bytes: database.bytes + hashBytes };
}

/** Yields etcd's database file, followed by its SHA-256. */
export function* backupBytes({ database }: BackupPlan): Generator<Buffer> {
  const hash = createHash("sha256");
  for (const page of databasePages(database)) {
    hash.update(page);
    yield page;
  }
  yield hash.digest();
}
