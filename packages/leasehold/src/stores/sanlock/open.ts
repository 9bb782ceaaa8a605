import { LeaseholdError } from "../../lease/errors.js";
import { alignedBytes, DirectFile } from "../block/direct-file.js";
import type { OpenStore } from "../common/contract.js";
import { ioError } from "../common/io-error.js";
import { checkLeader, sectorBytesOf } from "./leader-record.js";
import { areaBytes, SanlockStore } from "./sanlock-store.js";

/** The largest sectors that sanlock supports. */
const sectorBytesMax = 4_096;

/**
 * Opens a lockspace that `sanlock direct init` (or `client init`) has created:
 * `sanlock:/dev/vg/leases?lockspace=NAME`.
 */
export const openSanlockStore: OpenStore = async (url, { signal }) => {
  const lockspace = url.searchParams.get("lockspace") ?? "";
  const isAlone = [...url.searchParams.keys()].every((name) => name === "lockspace");
  if (url.protocol !== "sanlock:" || !/^\/./.test(url.pathname) || lockspace === "" || !isAlone) {
    throw new LeaseholdError(
      "INVALID_URL",
      "the address of a lockspace of sanlock is sanlock:/dev/name?lockspace=NAME",
    );
  }
  const path = decodeURIComponent(url.pathname);
  const name = `sanlock:${path}?lockspace=${lockspace}`;
  try {
    return await openOn(await DirectFile.open(path), name, lockspace, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw ioError(name, error);
  }
};

async function openOn(
  file: DirectFile,
  name: string,
  lockspace: string,
  signal: AbortSignal | undefined,
): Promise<SanlockStore> {
  try {
    if (file.sizeBytes < areaBytes) {
      throw new LeaseholdError(
        "STORE_UNFIT",
        `${name} has ${file.sizeBytes} bytes, and a lockspace has ${areaBytes}`,
      );
    }
    const first = alignedBytes(sectorBytesMax);
    await file.read(first, 0);
    checkLeader(first, lockspace);
    const sectorBytes = sectorBytesOf(first);
    const store = new SanlockStore(name, file, lockspace, sectorBytes);
    if (store.hostIdMax === 0 || sectorBytes < file.sectorBytes) {
      throw new LeaseholdError(
        "STORE_UNFIT",
        `${name} was formatted with sectors of ${sectorBytes} bytes, and the device has sectors of ${file.sectorBytes}`,
      );
    }
    await store.makeMarker(signal);
    const seen = `of ${store.hostIdMax} hosts, with sectors of ${sectorBytes} bytes`;
    store.findings = [{ tried: "read the lockspace with direct I/O", seen, ok: true }];
    return store;
  } catch (error) {
    await file.close();
    throw error;
  }
}
