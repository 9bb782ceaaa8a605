import { stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { LeaseholdError } from "../../lease/errors.js";
import { assertFit, type OpenStore } from "../common/contract.js";
import { ioError } from "../common/io-error.js";
import { probeAtomic } from "../common/probe.js";
import { AtomicStore } from "../common/atomic-store.js";
import { kindTraits } from "../common/kind-traits.js";
import { DirectoryMedium } from "./directory-medium.js";
import { ungated } from "./files.js";
import { findOrMakeMarker } from "./marker.js";
import { probeDirectory } from "./probe.js";

/** File systems that are empty after a restart, by Linux's numbers. */
const volatileTypes: Readonly<Record<number, string>> = { 0x0102_1994: "tmpfs", 0x8584_58f6: "ramfs" };

const nfsType = 0x6969;

/** Describes a file system's durability, by its number, for messages. */
export function keepingOf(type: number): string {
  const volatileType = volatileTypes[type];
  if (volatileType !== undefined) return `${volatileType}: it is empty after a restart`;
  return type === nfsType
    ? "NFS: it is durable if its server exports it with sync, which a client cannot see; with async it may forget"
    : "a durable one";
}

/**
 * Opens an existing directory as a store: `file:///mnt/a`. All of Leasehold's data is in its subdirectory
 * `leasehold`. With `?mounted` the directory must be a mount point: if the mount were missing, the empty
 * directory would look like an unused store.
 */
export const openDirectoryStore: OpenStore = async (url, { signal }) => {
  const root = pathOf(url);
  const name = `file://${root}`;
  let medium: DirectoryMedium | undefined;
  try {
    const { dev } = await stat(root);
    if (url.searchParams.has("mounted") && (await stat(dirname(root))).dev === dev)
      throw new LeaseholdError("STORE_UNAVAILABLE", "nothing is mounted there");
    const { type } = await statfs(root);
    const traits = { name, durable: volatileTypes[type] === undefined, ...kindTraits.directory };
    signal?.throwIfAborted();
    const marker = await findOrMakeMarker(ungated, root);
    const { findings, namesHoldContent } = await probeDirectory(root, marker);
    assertFit(name, findings);
    medium = new DirectoryMedium(root, dev, namesHoldContent, traits);
    const store = new AtomicStore(medium);
    store.findings = assertFit(name, [
      { tried: "asked what file system it is on", seen: keepingOf(type), ok: true },
      ...findings,
      ...(await probeAtomic(store, signal)),
    ]);
    await medium.clean();
    return store;
  } catch (error) {
    await medium?.close();
    signal?.throwIfAborted();
    throw ioError(name, error);
  }
};

function pathOf(url: URL): string {
  const unknown = [...url.searchParams.keys()].find((setting) => setting !== "mounted");
  if (unknown !== undefined)
    throw new LeaseholdError("INVALID_URL", `a directory store has no setting ${JSON.stringify(unknown)}`);
  const isRight = url.protocol === "file:" && url.hash === "";
  try {
    if (isRight) return fileURLToPath(url);
  } catch {
    // One message for every kind of invalid address.
  }
  throw new LeaseholdError("INVALID_URL", "the address of a directory store is file:///absolute/path");
}
