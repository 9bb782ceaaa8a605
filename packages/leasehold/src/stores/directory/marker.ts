import { stat } from "node:fs/promises";
import { join } from "node:path";
import { LeaseholdError } from "../../lease/errors.js";
import type { Files } from "./files.js";

/**
 * All of Leasehold's data is below this directory. All users of the store must find it, so its name is the
 * same in all versions.
 */
export const homeName = "leasehold";

/**
 * The format's version, as the prefix of a marker. Data of other versions has another prefix, and is not
 * touched.
 */
const markerPrefix = "v1-";

const markersRetriedMax = 8;

/**
 * The marker of the directory store at `root`, created if there is none. It is also the name of the directory
 * with all registers, so an operation whose path contains it affects the store with this marker or fails.
 *
 * @throws LeaseholdError `STORE_FOREIGN`, `STORE_UNAVAILABLE`; errors of the file system.
 */
export async function findOrMakeMarker(files: Files, root: string): Promise<string> {
  const home = join(root, homeName);
  for (let tries = 0; tries < markersRetriedMax; tries += 1) {
    const names = await files.namesIn(home);
    const marker = names?.find((name) => name.startsWith(markerPrefix));
    if (marker !== undefined) return marker;
    if (names !== undefined && names.length > 0) {
      throw new LeaseholdError(
        "STORE_FOREIGN",
        `${home} was made by another program: it contains ${names[0]}`,
      );
    }
    await stat(root);
    const made = `${markerPrefix}${globalThis.crypto.randomUUID()}`;
    await files.appear(root, homeName, async (path) => {
      await files.make(join(path, made));
      await files.syncDirectory(path);
    });
  }
  throw new LeaseholdError("STORE_UNAVAILABLE", `${home} is removed each time that it is created`);
}
