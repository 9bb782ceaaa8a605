import { cellFunctionVersion, cellSizeDefaultMax } from "./cells.js";
import { clockRateErrorDefault, whyNoClockRateError } from "../../common/clock-rates.js";
import { LeaseholdError } from "../../lease/errors.js";

/** The constants of section 3.1, which must be equal on all members of a cluster. Times in ms. */
export interface FleaseSettings {
  /** Ids of all members, sorted: a member's index in this list identifies it in the protocol. */
  readonly members: readonly string[];
  /** How many members coordinate one resource: all of them, or a cell of this size. */
  readonly cellSize: number;
  /** Number of this membership. */
  readonly view: number;
  /** ε: bound on the difference of any two wall clocks, with 2 ms for the granularity of readings. */
  readonly maxClockSkewMs: number;
  /** ρ: bound on the error of a steady clock's rate. */
  readonly clockRateError: number;
  /** ρ̂ = 2ρ/(1-ρ): the same for a round trip between two clocks. */
  readonly mutualRateError: number;
  /** t_max: the longest lease. */
  readonly ttlMaxMs: number;
  /** The shortest lease that leaves time for a renewal. */
  readonly ttlMinMs: number;
  /** How long a phase waits for a majority. */
  readonly rpcTimeoutMs: number;
  /**
   * The timeout of a renewal's phase as a share of the remaining hold; applies if that is longer than
   * `rpcTimeoutMs`. A member that misses the timeout is overloaded: it would not answer another request
   * sooner, and a retry would waste its answer to the first. 0 where a request without an answer within
   * `rpcTimeoutMs` never gets one.
   */
  readonly renewalPatience: number;
  /** Recovery wait on the wall clock. */
  readonly waitWallMs: number;
  /** Recovery wait on the steady clock. */
  readonly waitRateMs: number;
  /** How far the ballot floor of a rejoining acceptor lies ahead of its start. */
  readonly floorLeadMs: number;
  /** An idle resource is forgotten this long after 3ε. */
  readonly discardAfterMs: number;
  /**
   * The maximum number of resources an acceptor keeps, counting those with long names as several; it refuses
   * further ones.
   */
  readonly resourcesMax: number;
}

/** The settings that the user chooses; the others are derived, or have defaults. */
export type FleaseSettingsInput = Pick<
  FleaseSettings,
  "members" | "maxClockSkewMs" | "ttlMaxMs" | "rpcTimeoutMs"
> &
  Choices<"cellSize" | "view" | "clockRateError" | "renewalPatience" | "resourcesMax">;

type Choices<Names extends keyof FleaseSettings> = {
  readonly [Name in Names]?: FleaseSettings[Name] | undefined;
};

/** Members limit: all members are connected to each other, and each hears a heartbeat from every other. */
export const membersMax = 300;

/** Members ever: a process keeps the ids of removed members, because an index is never reused. */
export const memberIdsMax = 1_000;

/** Ids are ASCII, one byte for each character. */
export const memberIdLengthMax = 64;

/** Sets of a cell's acceptors are 32-bit masks, and a joint cell has one more acceptor. */
export const cellSizeMax = 31;

const defaultRenewalPatience = 1 / 3;

/** At most about 150 MB at an acceptor: a resource with a long name counts as several (`quotas.ts`). */
const defaultResourcesMax = 1_000_000;

/** Granularity of a wall-clock reading: 1 ms on either side. */
export const granularityMs = 2;

/**
 * Derives the remaining settings from the input, and refuses a configuration that violates an inequality of
 * section 3.1.
 */
export function fleaseSettings(input: FleaseSettingsInput): FleaseSettings {
  const ε = input.maxClockSkewMs;
  const ρ = input.clockRateError ?? clockRateErrorDefault;
  const wrong = whyNoClockRateError(ρ);
  require(wrong === undefined, wrong ?? "");
  const mutualRateError = (2 * ρ) / (1 - ρ);
  const ttlMaxMs = input.ttlMaxMs;
  const settings: FleaseSettings = {
    members: [...input.members].sort(),
    cellSize: input.cellSize ?? Math.min(input.members.length, cellSizeDefaultMax),
    view: input.view ?? 1,
    maxClockSkewMs: ε,
    clockRateError: ρ,
    mutualRateError,
    ttlMaxMs,
    ttlMinMs: Math.floor(4 * input.rpcTimeoutMs + 2 * ε) + 1,
    rpcTimeoutMs: input.rpcTimeoutMs,
    renewalPatience: input.renewalPatience ?? defaultRenewalPatience,
    waitWallMs: ttlMaxMs + 3 * ε,
    waitRateMs: ttlMaxMs * (1 + mutualRateError),
    floorLeadMs: 2 * ε,
    discardAfterMs: 1_000,
    resourcesMax: input.resourcesMax ?? defaultResourcesMax,
  };
  checkMembers(settings.members);
  checkCellSize(settings);
  checkTimes(settings);
  checkResourcesMax(settings.resourcesMax);
  return settings;
}

/** @throws LeaseholdError `INVALID_CONFIG` */
export function checkResourcesMax(resourcesMax: number): void {
  const isWhole = Number.isInteger(resourcesMax) && resourcesMax >= 1;
  require(isWhole, `resourcesMax must be a whole number of 1 or more, and is ${resourcesMax}`);
}

function checkMembers(members: readonly string[]): void {
  require(members.length > 0, "a cluster needs at least one member");
  const count = members.length;
  require(count <= membersMax, `a cluster has at most ${membersMax} members, and this one has ${count}`);
  for (const [index, id] of members.entries()) {
    const why = whyNoMemberId(id);
    require(why === undefined, why ?? "");
    require(id !== members[index - 1], `the member ${JSON.stringify(id)} is listed twice`);
  }
}

export function whyNoMemberId(id: string): string | undefined {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(id)) return undefined;
  return `a member's id is 1 to ${memberIdLengthMax} characters of A-Z a-z 0-9 _ -, and ${JSON.stringify(id)} is not`;
}

function checkCellSize({ cellSize, members }: FleaseSettings): void {
  const most = Math.min(members.length, cellSizeMax);
  const isInRange = Number.isInteger(cellSize) && cellSize >= 1 && cellSize <= most;
  const bound = most < members.length ? `${most}` : `the number of members, ${most}`;
  require(isInRange, `cellSize must be a whole number from 1 to ${bound}, and is ${cellSize}`);
}

/**
 * The violated inequalities of section 3.1, each with its numbers. The conditions on the waits and the floor
 * hold by construction.
 */
function checkTimes(s: FleaseSettings): void {
  for (const [name, value] of Object.entries(s)) {
    if (typeof value === "number")
      require(Number.isFinite(value) && value >= 0, `${name} must be a number of 0 or more, and is ${value}`);
  }
  const { maxClockSkewMs: ε, ttlMaxMs, ttlMinMs, rpcTimeoutMs } = s;
  const rule = (holds: boolean, inequality: string, numbers: string) =>
    require(holds, `${inequality} does not hold: ${numbers}`);
  rule(ε >= granularityMs, `maxClockSkew (ε) ≥ ${granularityMs} ms`, `maxClockSkew is ${ε} ms`);
  rule(rpcTimeoutMs > 0, "rpcTimeout > 0", "rpcTimeout is 0 ms");
  rule(ttlMaxMs > ε, "ttlMax > maxClockSkew", `ttlMax is ${ttlMaxMs} ms, maxClockSkew ${ε} ms`);
  const leastMs = 4 * rpcTimeoutMs + 2 * ε;
  rule(
    leastMs < ttlMaxMs && ttlMinMs <= ttlMaxMs,
    "4·rpcTimeout + 2·maxClockSkew < ttlMax",
    `4·${rpcTimeoutMs} ms + 2·${ε} ms = ${leastMs} ms, ttlMax is ${ttlMaxMs} ms`,
  );
}

function require(holds: boolean, message: string): asserts holds {
  if (!holds) throw new LeaseholdError("INVALID_CONFIG", message);
}

/** Warnings about settings that are safe but unwise, as sentences for a log. */
export function settingsAdvice(s: FleaseSettings): string[] {
  if (s.ttlMaxMs >= 10 * s.maxClockSkewMs) return [];
  return [
    `ttlMax (${s.ttlMaxMs} ms) is less than ten times maxClockSkew (${s.maxClockSkewMs} ms): much of each lease is spent on clock uncertainty`,
  ];
}

/**
 * The settings that must be equal everywhere, as text to be hashed: two participants with different texts
 * refuse each other (repair F18).
 */
export function canonicalSettings(s: FleaseSettings): string {
  return JSON.stringify([
    "flease-1",
    s.maxClockSkewMs,
    s.ttlMaxMs,
    s.clockRateError,
    s.waitWallMs,
    s.waitRateMs,
    s.floorLeadMs,
    s.members,
    s.cellSize,
    cellFunctionVersion,
  ]);
}
