import { getOrInsert } from "../../../common/maps.js";
import type { Ending, TenureForm, TenureId, Nanoseconds, Operation, Sample } from "./format.js";
import { compare, later, toNs } from "./nanoseconds.js";

/** The recorded part of a look at a lease. */
export type Look = Pick<Sample, "m1" | "m2" | "remainingMs">;

/** One tenure, as far as the looks show it. */
export interface Tenure extends TenureId {
  /** The first and last look that found the lease held. */
  readonly first: Look;
  readonly last: Look;
  /** The time at which the holder started to release it. */
  readonly releasedAt: Nanoseconds | undefined;
  /** The first look that found it lost, whether or not it had been released. */
  readonly gone: Pick<Look, "m1" | "m2"> | undefined;
  /** The same, if it had not been released by then. */
  readonly lostAt: Nanoseconds | undefined;
  /** Whether the program was notified of a loss. */
  readonly reportedLost: boolean;
  /** The number of renewals that the looks prove, because the end moved. */
  readonly renewals: number;
  /** The look that proved the last renewal; the first look if there was none. */
  readonly renewedAt: Nanoseconds;
  /** The latest time of the guarded resource's first refusal of its token. */
  readonly refusedAt: Nanoseconds | undefined;
  /**
   * The latest time of the resource's first acceptance of its token, and the earliest time of its last one.
   */
  readonly acceptedFirst: Nanoseconds | undefined;
  readonly acceptedLast: Nanoseconds | undefined;
}

/** The latest possible time of the first instant at which the tenure was held. */
export function certainStart(tenure: Tenure): Nanoseconds {
  return tenure.first.m2;
}

/**
 * The earliest possible time of the last instant at which the tenure was held. Between the two it was held
 * without interruption, even while its process was stopped, because that is the meaning of a token.
 */
export function certainEnd({ last, releasedAt }: Tenure): Nanoseconds {
  return releasedAt !== undefined && releasedAt < last.m1 ? releasedAt : last.m1;
}

/** Whether two tenures of one resource exclude each other. Only shared ones don't. */
export function excludes(one: TenureForm, other: TenureForm): boolean {
  return one.mode !== "shared" || other.mode !== "shared";
}

/**
 * The successor of each tenure: the next one that it excludes. Expects the tenures of one resource in the
 * order of their certain starts.
 */
export function successors(tenures: readonly Tenure[]): (Tenure | undefined)[] {
  const found = Array.from<Tenure | undefined>({ length: tenures.length });
  let next: Tenure | undefined;
  let nextAlone: Tenure | undefined;
  for (let index = tenures.length - 1; index >= 0; index -= 1) {
    const tenure = tenures[index]!;
    const isShared = tenure.mode === "shared";
    found[index] = isShared ? nextAlone : next;
    next = tenure;
    if (!isShared) nextAlone = tenure;
  }
  return found;
}

/** Whether it expired or was lost in another way, without a release by its holder. */
export function wasInterrupted(tenure: Tenure): boolean {
  return tenure.releasedAt === undefined || tenure.lostAt !== undefined;
}

/** The time at which the lease would have expired, according to the last look. */
export function expiryShown({ last }: Tenure): Nanoseconds {
  return last.m2 + toNs(last.remainingMs);
}

/** The end is computed from two clocks, which are corrected in tiny steps. */
const endJitterNs = 1_000_000n;

interface Gathered {
  readonly tenureId: TenureId;
  first: Look | undefined;
  last: Look | undefined;
  gone: Pick<Look, "m1" | "m2"> | undefined;
  releasedAt: Nanoseconds | undefined;
  reportedLost: boolean;
  renewals: number;
  renewedAt: Nanoseconds;
  refusedAt: Nanoseconds | undefined;
  acceptedFirst: Nanoseconds | undefined;
  acceptedLast: Nanoseconds | undefined;
}

/** Collects tenures from the lines of journals. Its size depends on the number of tenures, not of looks. */
export class TenureIndex {
  readonly #gathered = new Map<string, Gathered>();
  /** Keyed by resource and token, because the guarded resource does not know the requester. */
  readonly #refusals = new Map<string, Nanoseconds>();

  /** Returns the reason if the line is invalid, as do the next two methods. */
  addSample(sample: Sample): string | undefined {
    const entry = this.#of(sample);
    const problem = disagreement(entry.tenureId, sample);
    if (problem !== undefined) return problem;
    const { m1, m2, remainingMs } = sample;
    if (!sample.ok) {
      if (entry.gone === undefined || m2 < entry.gone.m2) entry.gone = { m1, m2 };
      return undefined;
    }
    const look = { m1, m2, remainingMs };
    const { last } = entry;
    if (last !== undefined && showsRenewal(last, look)) {
      entry.renewals += 1;
      entry.renewedAt = m1;
    }
    if (entry.first === undefined) entry.renewedAt = m1;
    if (entry.first === undefined || m2 < entry.first.m2) entry.first = look;
    if (last === undefined || m1 > last.m1) entry.last = look;
    return undefined;
  }

  addEnding(ending: Ending): string | undefined {
    const entry = this.#of(ending);
    if (ending.event === "lost") entry.reportedLost = true;
    else entry.releasedAt = earlier(entry.releasedAt, ending.m);
    return disagreement(entry.tenureId, ending);
  }

  addOperation(operation: Operation): string | undefined {
    const { m1, m2, result } = operation;
    const entry = this.#of(operation);
    if (result === "refused") entry.refusedAt = earlier(entry.refusedAt, m2);
    if (result === "accepted") {
      entry.acceptedFirst = earlier(entry.acceptedFirst, m2);
      entry.acceptedLast = later(entry.acceptedLast ?? m1, m1);
    }
    return disagreement(entry.tenureId, operation);
  }

  /** Records that the guarded resource had refused the token at this time. */
  addRefusal(resource: string, token: bigint, m: Nanoseconds): void {
    const key = `${token}\n${resource}`;
    this.#refusals.set(key, earlier(this.#refusals.get(key), m));
  }

  /**
   * The tenures of each resource, in the order of their certain starts. There is none for a lease that was
   * never found held.
   */
  byResource(): Map<string, Tenure[]> {
    const resources = new Map<string, Tenure[]>();
    for (const entry of this.#gathered.values()) {
      const tenure = this.#tenureOf(entry);
      if (tenure === undefined) continue;
      getOrInsert(resources, tenure.resource, () => []).push(tenure);
    }
    for (const tenures of resources.values()) tenures.sort(byCertainStart);
    return resources;
  }

  #tenureOf({ tenureId, first, last, ...entry }: Gathered): Tenure | undefined {
    if (first === undefined || last === undefined) return undefined;
    const { gone, releasedAt } = entry;
    const lost = gone !== undefined && (releasedAt === undefined || gone.m2 < releasedAt);
    const refused = this.#refusals.get(`${tenureId.token}\n${tenureId.resource}`);
    const refusedAt = refused === undefined ? entry.refusedAt : earlier(entry.refusedAt, refused);
    return { ...tenureId, ...entry, first, last, lostAt: lost ? gone.m1 : undefined, refusedAt };
  }

  #of(id: TenureId): Gathered {
    const { pid, incarnation, resource, token } = id;
    // The key includes the process; otherwise two processes that claim the same owner would share a tenure.
    const key = `${token}\n${pid}\n${incarnation}\n${resource}`;
    return getOrInsert(this.#gathered, key, () => ({
      tenureId: { pid, incarnation, resource, token, ...formOf(id) },
      first: undefined,
      last: undefined,
      gone: undefined,
      releasedAt: undefined,
      reportedLost: false,
      renewals: 0,
      renewedAt: 0n,
      refusedAt: undefined,
      acceptedFirst: undefined,
      acceptedLast: undefined,
    }));
  }
}

function formOf({ mode, pool, limit }: TenureForm): TenureForm {
  return { ...(mode !== undefined && { mode }), ...(pool !== undefined && { pool, limit }) };
}

function disagreement(known: TenureForm, { mode, pool, limit }: TenureForm): string | undefined {
  const agree = excludes(known, known) === excludes({ mode }, { mode });
  if (agree && known.pool === pool && known.limit === limit) return undefined;
  return "mode, pool or limit differ from those of an earlier line of this tenure";
}

export function byCertainStart(one: Tenure, other: Tenure): number {
  return compare(certainStart(one), certainStart(other)) || compare(one.token, other.token);
}

/**
 * Whether a renewal is proved: the earliest end that a look allows is later than the latest end that the look
 * before allows.
 */
function showsRenewal(before: Look, look: Look): boolean {
  return look.m1 - before.m2 + toNs(look.remainingMs - before.remainingMs) > endJitterNs;
}

function earlier(one: Nanoseconds | undefined, other: Nanoseconds): Nanoseconds {
  return one === undefined || other < one ? other : one;
}
