import { createHash } from "node:crypto";
import type { FrozenState } from "../../replica/frozen-state.js";
import type { Steps } from "../../state/steps.js";
import { type DatabasePlan, databasePages, planDatabase } from "./bolt/write.js";
import { bucketsOf } from "./buckets.js";

/**
 * SHA-256, at the end. The pages before it are full blocks of 512 bytes: etcdctl detects it by the file's
 * length.
 */
export const hashBytes = 32;

/** A planned backup, of which nothing is written yet. */
export interface BackupPlan {
  readonly database: DatabasePlan;
  /** The length of the whole file. */
  readonly bytes: number;
}

/** Content and size of a backup. Later changes are not in it. */
export function* planBackup(state: FrozenState): Steps<BackupPlan> {
  const database = yield* planDatabase(yield* bucketsOf(state));
  return { database, bytes: database.bytes + hashBytes };
}

/** etcd's database file, and SHA-256 over it. */
export function* backupBytes({ database }: BackupPlan): Generator<Buffer> {
  const hash = createHash("sha256");
  for (const page of databasePages(database)) {
    hash.update(page);
    yield page;
  }
  yield hash.digest();
}
