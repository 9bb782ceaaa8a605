import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { LeaseholdError } from "../../../lease/errors.js";
import { DirectoryLock } from "../../../runtime/directory-lock.js";
import { workFolderPattern } from "./files.js";
import { isFolder } from "./show.js";

/**
 * Runs `work` while no other command of this machine changes the certificates or keys of a folder: of two
 * renewals at once, one's key could be left beside the other's certificate.
 *
 * @throws LeaseholdError `DATA_IN_USE` when another command is at work there
 * @throws CommandFailure `CERT_UNREADABLE` when there is no such folder
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

/** `undefined` where the file system has no sockets, as on a stick with an authority that is kept offline. */
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

/** A command that was killed has left private keys in its work folders. */
async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (workFolderPattern.test(name)) await rm(join(folder, name), { recursive: true, force: true });
}
