import { invalidConfig } from "leasehold/common";
import { readdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { diskError, syncFolder } from "../../journal/files.js";
import type { CoreConfig } from "../config/config.js";
import { idText, type Identity, newIdentity } from "../config/identity.js";
import { isBcrypt } from "../auth/bcrypt.js";
import { beginDirectory } from "../disk/data-directory.js";
import { restored } from "../../host/new-core.js";
import { type Backup, readBackup, type ReadOptions } from "./read-backup.js";

/** Identity of a restored server. */
export interface Restored {
  readonly identity: Identity;
  readonly backup: Backup;
}

/**
 * Makes the data directory of a server of a new core from a backup. All servers of that core must be restored
 * from the same file: its hash is a part of the cluster's id, so that others are refused. The file comes from
 * a core or from etcd.
 *
 * @throws LeaseholdError `INVALID_CONFIG` if the directory is not empty, or the file cannot be read or is too
 *   large; `LOG_CORRUPT` if it is damaged; `VERSION_MISMATCH` if it has our former format
 */
export async function restoreBackup(
  path: string,
  config: CoreConfig,
  options: ReadOptions = {},
): Promise<Restored> {
  const { dataDir } = config;
  const found = await readdir(dataDir).catch(() => []);
  if (found.length > 0) throw invalidConfig(`--data-dir ${dataDir} is not empty: nothing was restored`);
  const backup = await readBackup(path, config.quotaBytes, options);
  const { identity, recovered } = restored(backup, config, newIdentity);
  // Written under another name first: a half-restored directory would begin an empty core.
  const unfinished = `${dataDir}.restoring`;
  await rm(unfinished, { recursive: true, force: true });
  await beginDirectory(unfinished, identity, recovered, backup.state);
  try {
    await rename(unfinished, dataDir);
    await syncFolder(dirname(dataDir));
  } catch (error) {
    throw diskError(`${unfinished} cannot become ${dataDir}`, error);
  }
  return { identity, backup };
}

/** Describes the restored server for operators. */
export function restoredText({ identity, backup }: Restored, dataDir: string): string {
  const { id, cluster, members } = identity;
  const { auth, revisions } = backup.state;
  const place = `the server ${idText(id)} of a new core of ${members.length} (${idText(cluster)})`;
  const lines = [`${dataDir} is restored at revision ${revisions.current} for ${place}`];
  const decoder = new TextDecoder();
  const count = auth.users().filter(({ secret }) => isBcrypt(decoder.decode(secret))).length;
  if (count > 0)
    lines.push(
      `${count} of its users have etcd's bcrypt passwords until they are set anew (etcdctl user passwd)`,
    );
  return lines.join("\n");
}
