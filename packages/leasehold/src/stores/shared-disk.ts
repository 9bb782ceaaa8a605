import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { StorePlace } from "./farm-address.js";

/**
 * Groups of two or more directories of a farm that fail together because they are on the same file system.
 */
export async function directoriesOnOneDisk(places: readonly StorePlace[]): Promise<string[][]> {
  const groups = new Map<number, string[]>();
  const directories = places.filter(({ scheme }) => scheme === "file");
  for (const { url, name } of directories) {
    const device = await stat(fileURLToPath(url)).then(
      ({ dev }) => dev,
      () => undefined,
    );
    if (device !== undefined) groups.set(device, [...(groups.get(device) ?? []), name]);
  }
  return [...groups.values()].filter((names) => names.length > 1);
}
