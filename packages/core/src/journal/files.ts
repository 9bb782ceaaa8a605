import { chmod, mkdir, open, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { LeaseholdError } from "leasehold/common";

/** Makes created, renamed and removed names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * The files contain password hashes, tokens and keys: no other user of this machine may read them, whatever
 * the umask.
 */
export const ownFileMode = 0o600;
const ownFolderMode = 0o700;

/** Creates a server's private folder, or makes an existing one and its files private. */
export async function ownFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: ownFolderMode });
  await setMode(path, ownFolderMode);
  for (const name of await readdir(path)) await ownFile(join(path, name));
}

export const ownFile = (path: string): Promise<void> => setMode(path, ownFileMode);

/**
 * Errors for files of another user, or on a file system without modes. Those are left to the administrator.
 */
const notOurs: ReadonlySet<string | undefined> = new Set([
  "EPERM",
  "EROFS",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
]);

async function setMode(path: string, mode: number): Promise<void> {
  try {
    await chmod(path, mode);
  } catch (error) {
    if (!notOurs.has((error as NodeJS.ErrnoException).code)) throw error;
  }
}

/** Wraps a disk error, and says what it means. */
export function diskError(what: string, cause: unknown): LeaseholdError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why = code === "ENOSPC" || code === "EDQUOT" ? "the disk is full" : (message ?? String(cause));
  const text = `${what}: ${why}. The server stops: it cannot tell any more what is on disk; all that it has acknowledged is`;
  return new LeaseholdError("DISK_FAILED", text, { cause });
}

/** An error for content that no crash leaves behind: the server must not continue with it. */
export function damaged(what: string, options?: ErrorOptions): LeaseholdError {
  return new LeaseholdError("LOG_CORRUPT", what, options);
}

/** An error for a file that was changed at this position after it had been written. */
export function damagedAt(path: string, offset: number): LeaseholdError {
  return damaged(
    `${basename(path)} is damaged at byte ${offset}: what was on disk has changed there, and no loss of power ` +
      "leaves that. Keep the directory and look at the disk; the other servers have the data: remove this " +
      "server from the core, and add a new one with an empty directory",
  );
}
