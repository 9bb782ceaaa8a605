import { Driver } from "../../delta/driver.js";
import { Farm } from "../../delta/farm/farm.js";
import type { DeltaSettings } from "../../delta/lease-protocol.js";
import type { Store } from "../../delta/store.js";
import { fleaseSettings } from "../protocol/settings.js";
import type { FleaseSettings } from "../protocol/settings.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import { recordBytesMax } from "./codec.js";
import { StoresNode } from "./stores-node.js";
import type { StoresProvider } from "./stores-provider.js";
import { forgettingWaitMs } from "./store-acceptor.js";
import { greatest } from "../../common/lists.js";

/** Default ε: achieved by a machine that synchronizes with a time server occasionally. As among peers. */
const maxClockSkewMsDefault = 500;

/** Default t_max, or ten times `delayMs` if that is longer. */
const ttlMaxMsDefault = 15_000;
const phasesPerLease = 10;

export interface GridOpenOptions {
  /** Name under which this participant holds leases; an incarnation is appended. */
  readonly name: string;
  /** Label for people; at most 256 bytes. */
  readonly label?: string | undefined;
  /** ε, ms, the same for all users of the stores. Default 500. */
  readonly maxClockSkewMs?: number | undefined;
  /** t_max, the longest lease, ms, the same for all users of the stores. Default: 15 s, or ten times `delayMs`. */
  readonly ttlMaxMs?: number | undefined;
  /**
   * Timeout of one phase, which loads an entry and writes it back on a majority, ms. Safety does not depend
   * on it. Default: the greatest δ that a store proposes, which two of its operations seldom exceed.
   */
  readonly delayMs?: number | undefined;
  /** ρ, the same for all users of the stores. Default 0.1. */
  readonly clockRateError?: number | undefined;
  /** 64 random bits as text, generated anew at each call. */
  readonly incarnation: () => string;
  /** Called when the clocks of this machine are found at fault; every lease is lost then. */
  readonly onFault?: (reason: string) => void;
}

/**
 * Opens Flease on a farm of stores that compare and set: founds the farm, or joins it. Resolves when a
 * majority of the stores has agreed. The provider closes the stores; on rejection they have been closed.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH`, `INVALID_CONFIG`, `NO_QUORUM`, `STORE_…`
 */
export async function openGrid(
  stores: readonly Store[],
  world: World,
  options: GridOpenOptions,
): Promise<StoresProvider> {
  const driver = new Driver(stores, world);
  try {
    checkFitness(stores);
    const traits = stores.map((store) => store.traits);
    const delayMs =
      options.delayMs ??
      greatest(
        traits.map((each) => each.delayMs),
        0,
      );
    const settings = settingsOf(stores.length, delayMs, options);
    const pollMs = greatest(traits.map((each) => each.pollMs));
    const farm = new Farm(traits, farmSettingsOf(settings, pollMs));
    await driver.run(farm.look());
    if (!farm.isFounded) throw farm.whyNot(driver.now());
    const { name, label, incarnation, onFault } = options;
    const told = onFault && { onFault };
    const node = new StoresNode({ settings, driver, farm, pollMs, name, label, incarnation, ...told });
    await node.agree();
    return node.provider;
  } catch (error) {
    await driver.close();
    throw error;
  }
}

/** A farm's settings, derived from those of the leases on it. */
export function farmSettingsOf(settings: FleaseSettings, pollMs: number): DeltaSettings {
  const { clockRateError, mutualRateError, rpcTimeoutMs } = settings;
  // The farm itself stretches the wait for its longest lease by ρ.
  const leaseMsMax = forgettingWaitMs(settings) / (1 + mutualRateError);
  return { leaseMsMax, delayMs: rpcTimeoutMs, clockRateError, pollMs };
}

function checkFitness(stores: readonly Store[]): void {
  if (stores.length === 0) throw new LeaseholdError("INVALID_CONFIG", "a farm has at least one store");
  for (const { traits } of stores) {
    const { name, kind, bytesMax } = traits;
    if (kind !== "atomic")
      throw new LeaseholdError(
        "STORE_UNFIT",
        `${name}: it cannot compare and set, which Flease on stores rests on; Δ-leases do without`,
      );
    if (bytesMax < recordBytesMax)
      throw new LeaseholdError(
        "STORE_UNFIT",
        `${name}: it takes ${bytesMax} bytes, and an entry may have ${recordBytesMax}`,
      );
  }
}

/** @throws LeaseholdError `INVALID_CONFIG`, with options named as in a farm's address */
function settingsOf(stores: number, delayMs: number, options: GridOpenOptions): FleaseSettings {
  try {
    return fleaseSettingsOf(stores, delayMs, options);
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    throw new LeaseholdError(error.code, error.message.replaceAll("rpcTimeout", "maxStoreLatency"));
  }
}

function fleaseSettingsOf(stores: number, delayMs: number, options: GridOpenOptions): FleaseSettings {
  const maxClockSkewMs = options.maxClockSkewMs ?? maxClockSkewMsDefault;
  return fleaseSettings({
    members: Array.from({ length: stores }, (_, index) => `store-${String(index + 1).padStart(2, "0")}`),
    cellSize: stores,
    maxClockSkewMs,
    ttlMaxMs: options.ttlMaxMs ?? Math.max(ttlMaxMsDefault, phasesPerLease * delayMs),
    rpcTimeoutMs: delayMs,
    renewalPatience: 0,
    clockRateError: options.clockRateError,
  });
}
