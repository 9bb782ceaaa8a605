import { clockRateErrorDefault, whyNoClockRateError } from "../../common/clock-rates.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import { ConditionalLease, conditionalLeaseDelaysMin } from "../conditional/conditional-lease.js";
import { Driver } from "../driver.js";
import { Farm } from "../farm/farm.js";
import type { DeltaSettings, LeaseProtocol, ProtocolEnvironment } from "../lease-protocol.js";
import { PaperLease, paperLeaseDelaysMin } from "../paper/paper-lease.js";
import { FarmParts } from "../paper/parts.js";
import { DeltaProvider } from "./provider.js";
import type { Store } from "../store.js";
import { greatest, least } from "../../common/lists.js";

/** Default of Δ, in δ: enough for several failures of a renewal that begins at a third of it. */
const delaysPerLease = 12;
const leaseMsDefault = 15_000;

/** The shortest Δ of programs that use the paper's parts, in δ: they time their own renewals. */
const partsDelaysMin = 3;

/** Attempts to found or find the farm: a store that was busy may answer the next one. */
const looksMax = 3;

export interface DeltaOptions {
  /** Name and incarnation of this participant: no two may have the same. */
  readonly holder: string;
  /** The holder's description, for display. */
  readonly label?: string | undefined;
  /**
   * The longest lease (Δ), ms: at least three times δ where every store compares and sets, else eleven times
   * (for the usual ρ). Default: 15 s, or twelve times δ if that is more.
   */
  readonly leaseMsMax?: number | undefined;
  /** δ, ms. Default: the greatest default of the stores. */
  readonly delayMs?: number | undefined;
  /** ρ. Default 0.1. */
  readonly clockRateError?: number | undefined;
}

/**
 * Opens a farm: founds it, or joins it. Resolves when a majority of the stores agrees on the farm; some of
 * them may still be recovering. The provider closes the stores; on rejection they have been closed.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH`, `INVALID_CONFIG`, `NO_QUORUM`, `STORE_…`
 */
export function openFarm(
  stores: readonly Store[],
  world: World,
  options: DeltaOptions,
): Promise<DeltaProvider> {
  const leaseDelaysMin = isAtomic(stores)
    ? conditionalLeaseDelaysMin
    : paperLeaseDelaysMin(options.clockRateError ?? clockRateErrorDefault);
  return found(stores, world, { ...options, leaseDelaysMin }, (driver, farm, environment) => {
    const { settings, writer: holder, label } = environment;
    const protocol = protocolFor(stores, environment);
    const bytesMax = least(stores.map(({ traits }) => traits.bytesMax));
    return new DeltaProvider({ driver, farm, protocol, settings, holder, label, bytesMax });
  });
}

/** The same for programs that use the paper's parts instead of leases. */
export function openParts(stores: readonly Store[], world: World, options: DeltaOptions): Promise<FarmParts> {
  return found(stores, world, { ...options, leaseDelaysMin: partsDelaysMin }, (driver, farm, environment) => {
    return new FarmParts(driver, farm, environment);
  });
}

interface FoundOptions extends DeltaOptions {
  /** The shortest allowed `leaseMsMax`, in δ: a shorter one would expire before it could be renewed. */
  readonly leaseDelaysMin: number;
}

async function found<Result>(
  stores: readonly Store[],
  world: World,
  options: FoundOptions,
  make: (driver: Driver, farm: Farm, environment: ProtocolEnvironment) => Result,
): Promise<Result> {
  const driver = new Driver(stores, world);
  try {
    const settings = settingsOf(stores, options);
    const farm = new Farm(
      stores.map(({ traits }) => traits),
      settings,
    );
    for (let looks = 0; looks < looksMax && !farm.isFounded; looks += 1) await driver.run(farm.look());
    if (!farm.isFounded) throw farm.whyNot(driver.now());
    const { holder, label } = options;
    return make(driver, farm, { farm, writer: holder, label, random: world.random, settings });
  } catch (error) {
    await driver.close();
    throw error;
  }
}

/** If every store can compare and set, nothing depends on δ. */
function protocolFor(stores: readonly Store[], environment: ProtocolEnvironment): LeaseProtocol {
  return isAtomic(stores) ? new ConditionalLease(environment) : new PaperLease(environment);
}

function isAtomic(stores: readonly Store[]): boolean {
  return stores.every(({ traits }) => traits.kind === "atomic");
}

function settingsOf(stores: readonly Store[], options: FoundOptions): DeltaSettings {
  const require = (holds: boolean, rule: string) => {
    if (!holds) throw new LeaseholdError("INVALID_CONFIG", rule);
  };
  require(stores.length > 0, "a farm has at least one store");
  const traits = stores.map((store) => store.traits);
  const { leaseDelaysMin } = options;
  const delayMs = options.delayMs ?? greatest(traits.map((each) => each.delayMs));
  const leaseMsMax =
    options.leaseMsMax ?? Math.max(leaseMsDefault, Math.max(delaysPerLease, leaseDelaysMin) * delayMs);
  const clockRateError = options.clockRateError ?? clockRateErrorDefault;
  require(delayMs > 0, `δ must be more than 0 ms, and is ${delayMs}`);
  const leastMs = leaseDelaysMin * delayMs;
  require(leaseMsMax >= leastMs &&
    leaseMsMax <
      Infinity, `the longest lease must be at least ${leaseDelaysMin} times δ (${delayMs} ms), so ${leastMs} ms, and is ${leaseMsMax} ms`);
  const wrong = whyNoClockRateError(clockRateError);
  require(wrong === undefined, wrong ?? "");
  return { leaseMsMax, delayMs, clockRateError, pollMs: greatest(traits.map((each) => each.pollMs)) };
}
