import { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import { MemoryMedium, MemoryStore } from "./memory-store.js";
import type { Store } from "../store.js";

/** Farms of this process by name. A program with more than this does not close what it opens. */
const farmsMax = 1_000;

/** The smallest farm that tolerates the loss of one store. */
const storesPerFarm = 3;

/** The size limit of a value on typical servers, bytes. */
const bytesMax = 65_536;

interface NamedFarm {
  readonly media: readonly MemoryMedium[];
  /** Open stores; the farm is dropped when the last one closes. */
  open: number;
}

const farms = new Map<string, NamedFarm>();

class NamedStore extends MemoryStore {
  readonly #onClose: () => void;
  #isClosed = false;

  constructor(medium: MemoryMedium, writer: string, onClose: () => void) {
    super(medium, writer);
    this.#onClose = onClose;
  }

  override close(): Promise<void> {
    if (!this.#isClosed) this.#onClose();
    this.#isClosed = true;
    return super.close();
  }
}

/**
 * Three stores in this process's memory, shared by all that open the name.
 *
 * @throws LeaseholdError `INVALID_CONFIG` when too many names are open.
 */
export function openMemoryStores(name: string, world: World, writer: string): Store[] {
  const farm = farms.get(name) ?? found(world);
  farms.set(name, farm);
  const closed = () => {
    farm.open -= 1;
    if (farm.open === 0) farms.delete(name);
  };
  farm.open += farm.media.length;
  return farm.media.map((medium) => new NamedStore(medium, writer, closed));
}

function found({ timers, random }: World): NamedFarm {
  if (farms.size >= farmsMax)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${farmsMax} farms in memory are open in this process; close some`,
    );
  const media = Array.from(
    { length: storesPerFarm },
    (_, index) => new MemoryMedium({ timers, random, name: `memory ${index + 1}`, bytesMax }),
  );
  return { media, open: 0 };
}
