/**
 * Snapshots of folders: copies that do not change, each in a folder of this name in its folder. That is in no
 * list and in no copy, and what it has counts for no quota.
 */
export const snapshotsName = ".snapshots";

/** Snapshots of one folder. */
export const snapshotsMax = 100;

/** Leases' names are limited to 512 bytes. */
export const pathBytesMax = 480;

/** Whether a path is that of snapshots, or in one. */
export function isInSnapshots(path: string): boolean {
  return path.split("/").includes(snapshotsName);
}

/** The folder of which a path is a snapshot; undefined if it is none. */
export function folderOfSnapshot(path: string): string | undefined {
  const parts = path.split("/");
  const isSnapshot = parts.length >= 2 && parts.indexOf(snapshotsName) === parts.length - 2;
  return isSnapshot ? parts.slice(0, -2).join("/") : undefined;
}
