import { open } from "node:fs/promises";
import { basename } from "node:path";
import { LeaseholdError } from "../../lease/errors.js";

/** Makes new, renamed and removed names of a folder survive a loss of power. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** What the disk refused, as an error that says what that means. */
export function diskError(what: string, cause: unknown): LeaseholdError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why = code === "ENOSPC" || code === "EDQUOT" ? "the disk is full" : (message ?? String(cause));
  const text = `${what}: ${why}. The server stops: it cannot tell any more what is on disk; all that it has acknowledged is`;
  return new LeaseholdError("DISK_FAILED", text, { cause });
}

/** What no crash leaves behind: the server must not go on with it. */
export function damaged(what: string, options?: ErrorOptions): LeaseholdError {
  return new LeaseholdError("LOG_CORRUPT", what, options);
}

/** A place where a file was changed after it had been written. */
export function damagedAt(path: string, offset: number): LeaseholdError {
  return damaged(
    `${basename(path)} is damaged at byte ${offset}: what was on disk has changed there, and no loss of power ` +
      "leaves that. Keep the directory and look at the disk; the other servers have the data: remove this " +
      "server from the core, and add a new one with an empty directory",
  );
}
