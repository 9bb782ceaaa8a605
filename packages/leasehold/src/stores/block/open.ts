import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { parseDuration } from "../../lease/duration.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { OpenStore, OpenStoreOptions, ProbeFinding } from "../common/contract.js";
import { ioError } from "../common/io-error.js";
import { kindTraits } from "../common/kind-traits.js";
import { BlockStore } from "./block-store.js";
import { alignedBytes, DirectFile } from "./direct-file.js";
import {
  encodeSuperblock,
  type Layout,
  envelopeIn,
  regionsMaxOf,
  sizeBytesOf,
  slotPosition,
  unitBytes,
} from "./layout.js";
import { BlockMedium } from "./medium.js";
import { realBlockWorld } from "./world.js";

/** The default layout: room for a few thousand resources in 65 MiB. */
const defaults = {
  slots: 32,
  regions: 256,
  slotLeaseMs: 10_000,
  delayMs: kindTraits.block.delayMs,
} as const;

const parameters = new Set(["format", "slots", "regions", "delay", "slot-ttl"]);

/** More slots make every read longer, more regions every list. */
const most = { slots: 1_024, regions: 65_536 } as const;

/** The number of bytes read at a time to check that an area is empty. */
const scanBytes = 1 << 20;

/**
 * Opens a block device, or a file of fixed size, as a store: `block:/dev/sdx`. It must have been formatted:
 * with `?format` (or the option) an area that is all zeros is formatted. `slots`, `regions`, `delay` and
 * `slot-ttl` set the layout of a new medium; an existing layout is kept.
 */
export const openBlockStore: OpenStore = async (url, options) => {
  const address = parse(url);
  const name = `block:${address.path}`;
  try {
    const file = await DirectFile.open(address.path);
    const store = await openOn(file, name, address, options);
    return store;
  } catch (error) {
    options.signal?.throwIfAborted();
    throw ioError(name, error);
  }
};

type BlockAddress = ReturnType<typeof parse>;

async function openOn(
  file: DirectFile,
  name: string,
  address: BlockAddress,
  options: OpenStoreOptions,
): Promise<BlockStore> {
  const medium = new BlockMedium(name, file);
  let store: BlockStore | undefined;
  try {
    const layout = (await medium.readLayout()) ?? (await format(medium, address, options));
    if (sizeBytesOf(layout) > file.sizeBytes) {
      throw new LeaseholdError("STORE_UNFIT", `${name} is shorter than when it was formatted`);
    }
    store = new BlockStore(medium, layout, options.writer, realBlockWorld);
    const begunMs = performance.now();
    const slot = await store.takeSlot(options.signal);
    const tookMs = performance.now() - begunMs;
    store.findings = [
      { tried: "opened it with direct I/O", seen: `sectors of ${file.sectorBytes} bytes`, ok: true },
      {
        tried: "took a slot to write in",
        seen: `slot ${slot} of ${layout.slots}, ${tookMs.toFixed(0)} ms of which ${2 * layout.delayMs} are a wait`,
        ok: true,
      },
      await readBySecond(address.path, slot),
    ];
    return store;
  } catch (error) {
    await (store ?? medium).close();
    throw error;
  }
}

/**
 * Reads the slot with a second handle, so that the content comes from the medium and not from a cache of the
 * first.
 */
async function readBySecond(path: string, slot: number): Promise<ProbeFinding> {
  const second = await DirectFile.open(path);
  try {
    const bytes = alignedBytes(unitBytes);
    await second.read(bytes, slotPosition(slot));
    const isThere = envelopeIn(bytes) !== undefined;
    return {
      tried: "read the slot with another handle",
      seen: isThere ? "what was written" : "nothing",
      ok: isThere,
    };
  } finally {
    await second.close();
  }
}

/**
 * Formats an empty medium. Concurrent formatters agree on one layout: the later write wins, and both wait for
 * it, as in Fig. 2.
 */
async function format(
  medium: BlockMedium,
  address: BlockAddress,
  { format, signal }: OpenStoreOptions,
): Promise<Layout> {
  const { name, sizeBytes } = medium;
  if (!address.format && format !== true) {
    throw new LeaseholdError(
      "STORE_UNFIT",
      `${name} is not formatted; add ?format to its address to format it`,
    );
  }
  const fitting = regionsMaxOf(sizeBytes, address.slots);
  const regions = address.regions ?? Math.min(defaults.regions, fitting);
  if (regions < 1 || regions > fitting) {
    const needed = sizeBytesOf({ slots: address.slots, regions: Math.max(1, regions) });
    throw new LeaseholdError("STORE_UNFIT", `${name} has ${sizeBytes} bytes and ${needed} are needed`);
  }
  const layout = { ...address, regions, id: globalThis.crypto.randomUUID() };
  await assertEmpty(medium, sizeBytesOf(layout));
  await medium.writeEnvelope(0, encodeSuperblock(layout));
  await sleep(2 * layout.delayMs, undefined, signal === undefined ? {} : { signal });
  const found = await medium.readLayout();
  if (found === undefined) throw new LeaseholdError("STORE_UNFIT", `${name} does not keep writes`);
  return found;
}

async function assertEmpty(medium: BlockMedium, sizeBytes: number): Promise<void> {
  const step = scanBytes / unitBytes;
  const units = sizeBytes / unitBytes;
  for (let first = 0; first < units; first += step) {
    const area = await medium.readUnits(first * unitBytes, Math.min(step, units - first));
    const used = area.findIndex((unit) => unit.some((byte) => byte !== 0));
    if (used === -1) continue;
    throw new LeaseholdError(
      "STORE_FOREIGN",
      `${medium.name} is not empty: it has data at byte ${(first + used) * unitBytes}; only zeros are formatted`,
    );
  }
}

function parse(url: URL) {
  const { searchParams: query } = url;
  const unknown = [...query.keys()].some((name) => !parameters.has(name));
  const slots = query.has("slots") ? Number(query.get("slots")) : defaults.slots;
  const regions = query.has("regions") ? Number(query.get("regions")) : undefined;
  const isCount = (count: number, countMax: number) =>
    Number.isInteger(count) && count >= 1 && count <= countMax;
  const areCounts = isCount(slots, most.slots) && (regions === undefined || isCount(regions, most.regions));
  if (url.protocol !== "block:" || !/^\/./.test(url.pathname) || unknown || !areCounts) {
    throw new LeaseholdError(
      "INVALID_URL",
      `the address of a block store is block:/dev/name?format&slots=32&regions=256&delay=2s&slot-ttl=10s, with up to ${most.slots} slots and ${most.regions} regions`,
    );
  }
  const duration = (name: string, defaultMs: number) =>
    query.has(name) ? parseDuration(query.get(name)!, name) : defaultMs;
  const delayMs = duration("delay", defaults.delayMs);
  const slotLeaseMs = duration("slot-ttl", Math.max(defaults.slotLeaseMs, 9 * delayMs));
  // A renewal after a third of the time takes two operations and a pause of 2δ, and one renewal may fail.
  if (slotLeaseMs < 9 * delayMs || delayMs < 1) {
    throw new LeaseholdError("INVALID_URL", "slot-ttl must be nine times the delay or more");
  }
  const path = decodeURIComponent(url.pathname);
  return { path, format: query.has("format"), slots, regions, delayMs, slotLeaseMs };
}
