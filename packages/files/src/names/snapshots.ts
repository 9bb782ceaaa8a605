/**
 * Snapshots of folders are read-only copies. Each folder keeps its snapshots in a child folder of this name,
 * which appears in no list and in no copy. Its contents count for no quota.
 */
export const snapshotsName = ".snapshots";

/** The most snapshots of one folder. */
export const snapshotsMax = 100;

/** Lease names are limited to 512 bytes. */
export const pathBytesMax = 480;

/** Whether a path is the snapshots' folder, or below it. */
export function isInSnapshots(path: string): boolean {
  return path.split("/").includes(snapshotsName);
}

/** The folder of which a path is a snapshot; undefined if the path is not a snapshot. */
export function folderOfSnapshot(path: string): string | undefined {
  const parts = path.split("/");
  const isSnapshot = parts.length >= 2 && parts.indexOf(snapshotsName) === parts.length - 2;
  return isSnapshot ? parts.slice(0, -2).join("/") : undefined;
}
