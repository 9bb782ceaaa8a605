import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Timers, World } from "../common/ports.js";
import type { OpenedStore, OpenStoreOptions, OpenStore } from "./common/contract.js";
import { kindTraits } from "./common/kind-traits.js";
import type { Scheme, StorePlace } from "./farm-address.js";
import { type AssumedTraits, LazyStore } from "./lazy-store.js";
import { greatest } from "../common/lists.js";
import { majorityOf } from "../common/majority.js";

/**
 * A kind of store: its adapter, which is loaded when the first store is opened, and the properties assumed
 * for an unreachable store.
 */
interface Kind extends Omit<AssumedTraits, "name"> {
  /** The minimum timeout for opening a store, ms. */
  readonly openMs?: number;
  load(): Promise<OpenStore>;
}

/** For slots of a disk and their markers, which are claimed with waits of 2δ; ms. */
const slottedOpenMs = 15_000;

const directory = async () => (await import("./directory/open.js")).openDirectoryStore;
const block = async () => (await import("./block/open.js")).openBlockStore;
const s3 = async () => (await import("./s3/open.js")).openS3Store;
const redis = async () => (await import("./redis/open.js")).openRedisStore;
const postgres = async () => (await import("./postgres/open.js")).openPostgresStore;

const kinds: Readonly<Record<Exclude<Scheme, "memory">, Kind>> = {
  file: { load: directory, ...kindTraits.directory },
  block: { load: block, openMs: slottedOpenMs, ...kindTraits.block },
  s3: { load: s3, ...kindTraits.s3 },
  redis: { load: redis, ...kindTraits.redis },
  rediss: { load: redis, ...kindTraits.redis },
  postgres: { load: postgres, ...kindTraits.postgres },
  postgresql: { load: postgres, ...kindTraits.postgres },
};

/**
 * Opens one store and probes it, see {@link OpenStore}.
 *
 * Rejects with a `LeaseholdError`: `INVALID_URL`, `UNSUPPORTED` if a package that the kind needs is not
 * installed, `STORE_…`.
 */
export async function openStore(place: StorePlace, options: OpenStoreOptions): Promise<OpenedStore> {
  const open = await kindOf(place).load();
  return open(place.url, options);
}

/**
 * Opens the stores of a farm. Unreachable ones may join later, with assumed properties until then. Waits up
 * to `timeoutMs` for slow stores, and less once a majority is open. The process stays alive until they have
 * been closed.
 *
 * Rejects with a `LeaseholdError` of a store that can never be used: `INVALID_URL`, `INVALID_CONFIG`,
 * `UNSUPPORTED`, `STORE_UNFIT`.
 */
export async function openStores(
  places: readonly StorePlace[],
  options: Omit<OpenStoreOptions, "signal"> & { readonly world: World; readonly timeoutMs: number },
): Promise<LazyStore[]> {
  const { world, timeoutMs, ...each } = options;
  const stores = places.map((place) => {
    const { kind, bytesMax, pollMs } = kindOf(place);
    const assumed = { name: place.name, kind, bytesMax, pollMs, delayMs: delayMsOf(place) };
    return new LazyStore(assumed, world.timers, (signal) => openStore(place, { ...each, signal }));
  });
  try {
    await untilEnough(stores, world.timers, {
      timeoutMs: openingMs(places, timeoutMs),
      graceMs: greatest(places.map((place) => kindOf(place).openMs ?? kindOf(place).delayMs)),
    });
    return stores;
  } catch (error) {
    await Promise.all(stores.map((store) => store.close()));
    throw error;
  }
}

/**
 * Resolves when all have been tried, or when a majority has and the grace period for the others is over, or
 * at the timeout. Rejects if one of them can never be used.
 */
function untilEnough(
  stores: readonly LazyStore[],
  timers: Timers,
  { timeoutMs, graceMs }: { readonly timeoutMs: number; readonly graceMs: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    let settled = 0;
    const pending = [timers.after(timeoutMs, () => end(resolve))];
    const end = (settle: () => void) => {
      for (const timer of pending) timer.cancel();
      settle();
    };
    for (const store of stores)
      store.settled().then(
        () => {
          settled += 1;
          if (settled === stores.length) end(resolve);
          else if (settled >= majorityOf(stores.length))
            pending.push(timers.after(graceMs, () => end(resolve)));
        },
        (error: unknown) => end(() => reject(error)),
      );
  });
}

/**
 * The δ of a store, even an unreachable one: it follows from the address alone, so that all users of a farm
 * agree.
 */
function delayMsOf(place: StorePlace): number {
  const { delayMs } = kindOf(place);
  const said = place.scheme === "block" ? place.url.searchParams.get("delay") : null;
  if (said === null) return delayMs;
  try {
    return parseDuration(said, "delay");
  } catch {
    // Opening the store will report the error.
    return delayMs;
  }
}

/** The timeout for opening these stores, ms, for a caller with a timeout of `timeoutMs`. */
export function openingMs(places: readonly StorePlace[], timeoutMs: number): number {
  return greatest(
    places.map((place) => kindOf(place).openMs ?? 0),
    timeoutMs,
  );
}

function kindOf({ scheme, name }: StorePlace): Kind {
  if (scheme !== "memory") return kinds[scheme];
  throw new LeaseholdError("INVALID_URL", `${name}: stores in memory are opened by their farm's name`);
}
