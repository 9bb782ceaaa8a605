import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { LeaseholdError } from "../../../lease/errors.js";
import { DirectoryLock } from "../../../runtime/directory-lock.js";
import { workFolderPattern } from "./files.js";
import { isFolder } from "./show.js";

/**
 * Runs `work` while no other command of this machine changes the certificates or keys of a folder: two
 * concurrent renewals could leave the key of one with the certificate of the other.
 *
 * @throws LeaseholdError `DATA_IN_USE` if another command is running there
 * @throws CommandFailure `CERT_UNREADABLE` if there is no such folder
 */
export async function withFolderLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  await isFolder(folder);
  const lock = await lockOf(folder);
  try {
    if (lock !== undefined) await removeLeftovers(folder);
    return await work();
  } finally {
    await lock?.release();
  }
}

/** `undefined` if the file system has no sockets, for example on a USB stick with an offline authority. */
async function lockOf(folder: string): Promise<DirectoryLock | undefined> {
  try {
    return await DirectoryLock.take(folder, ".cert-lock");
  } catch (error) {
    if (error instanceof LeaseholdError) throw error;
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["EPERM", "ENOTSUP", "EOPNOTSUPP", "EINVAL"].includes(code)) return undefined;
    throw error;
  }
}

/** A killed command may have left private keys in its temporary folders. */
async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (workFolderPattern.test(name)) await rm(join(folder, name), { recursive: true, force: true });
}
