import { constants } from "node:fs";
import { mkdir, open, readdir, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../common/io-error.js";

/**
 * What a missing file, or a directory that was renamed while it was used, looks like. On a file server also
 * `ESTALE`.
 */
export function isMissing(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOENT" || errno === "ESTALE";
}

/**
 * What a rename says that would have replaced a directory with something in it: which of the two depends on
 * the system.
 */
export function isOccupied(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOTEMPTY" || errno === "EEXIST";
}

/** Makes a file that must not exist, and sees it to the disk. */
export async function writeSynced(path: string, content: Uint8Array): Promise<void> {
  const file = await open(path, "wx");
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Sees to the disk which names a directory has. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * True if the directory is there. Opening, other than looking, makes the client of a file server ask the
 * server, also for the names in it that it took for missing.
 */
export async function isThere(path: string): Promise<boolean> {
  try {
    await (await open(path, constants.O_RDONLY | constants.O_DIRECTORY)).close();
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** The names in a directory; `undefined` if it is missing. */
export async function namesIn(path: string): Promise<readonly string[] | undefined> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** The content of a file up to so many bytes; `undefined` if it is missing. */
export async function contentOf(path: string, bytesMax: number): Promise<Uint8Array | undefined> {
  let file;
  try {
    file = await open(path, "r");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    const content = new Uint8Array(bytesMax);
    let length = 0;
    while (length < bytesMax) {
      const { bytesRead } = await file.read(content, length, bytesMax - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return content.subarray(0, length);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  } finally {
    await file.close();
  }
}

/**
 * Makes a directory with all that is in it appear at once, unless one is there already: builds it beside, and
 * renames it. A rename onto a directory that is not empty fails on every file system. False if one is there,
 * or the place is gone.
 */
export async function appear(
  place: string,
  name: string,
  build: (path: string) => Promise<void>,
): Promise<boolean> {
  const building = join(place, `new-${globalThis.crypto.randomUUID()}`);
  try {
    await mkdir(building);
    await build(building);
    await syncDirectory(building);
    await rename(building, join(place, name));
    await syncDirectory(place);
    return true;
  } catch (error) {
    await discard(place, building);
    if (isOccupied(error) || isMissing(error)) return false;
    throw error;
  }
}

/**
 * Removes what {@link appear} has left. It gets another name first: its maker, if it has only been paused,
 * must not find it half emptied and make it appear.
 */
export async function discard(place: string, building: string): Promise<void> {
  const dead = join(place, `old-${globalThis.crypto.randomUUID()}`);
  await ignoringFailure(async () => {
    await rename(building, dead);
    await rm(dead, { recursive: true, force: true });
  });
}

/** For cleaning up: what stays is found again by the next who cleans. */
export async function ignoringFailure(run: () => Promise<unknown>): Promise<void> {
  try {
    await run();
  } catch {
    // Left for the next.
  }
}

export async function remove(path: string): Promise<void> {
  await ignoringFailure(() => unlink(path));
}
