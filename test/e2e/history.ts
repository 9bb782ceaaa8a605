/**
 * What the journals of many processes prove about leases: a pure function from their lines to a report.
 *
 * Every process of one host reads the same steady clock, so stamps of different journals can be compared. A sample
 * says that one look at a lease happened at some instant between `m1` and `m2`; the lease counts as held without a
 * break from the first to the last look that found it held, because that is what one token means. A violation is
 * reported only when every choice of those instants contradicts the rule: there are no false alarms.
 */

/** Steady time in nanoseconds; a decimal string in a journal. */
export type Nanoseconds = bigint;

/** Which tenure an entry is about. */
interface Holding {
  readonly pid: number;
  /** Name and incarnation of the holder. */
  readonly incarnation: string;
  readonly resource: string;
  readonly token: bigint;
}

/** One look at a lease. */
export interface Sample extends Holding {
  readonly event: "sample";
  /** Read before the look, and after it. */
  readonly m1: Nanoseconds;
  readonly m2: Nanoseconds;
  /** The lease said that it was held. */
  readonly ok: boolean;
  readonly remainingMs: number;
}

/** Written before the lease is given back. */
export interface Release extends Holding {
  readonly event: "release";
  readonly m: Nanoseconds;
}

/** What was done to a process, written by whoever did it, after it was done. */
export interface Intervention {
  readonly event: "killed" | "stopped" | "continued";
  readonly m: Nanoseconds;
  readonly pid: number;
}

export type HistoryEvent = Sample | Release | Intervention;

/** The journal cannot be read: no verdict is possible. */
export class HistoryError extends Error {
  constructor(source: string, line: number, problem: string) {
    super(`${source}:${line}: ${problem}`);
    this.name = "HistoryError";
  }
}

export type Rule =
  /** Two tenures of one resource were held at the same instant. */
  | "overlap"
  /** A later tenure has a smaller token than an earlier one. */
  | "token-order"
  /** Two tenures have the same token. */
  | "token-repeated"
  /** A lease was found held after its own holder had begun to release it. */
  | "held-after-release"
  /** A process that had been stopped found its lease held although another had taken over meanwhile. */
  | "held-after-pause"
  /** A lease that had been found lost was found held again. */
  | "reopened";

export interface Violation {
  readonly rule: Rule;
  readonly resource: string;
  readonly text: string;
}

/** One uninterrupted holding, as far as the looks show it. */
export interface Tenure extends Holding {
  /** Looks that found it held, in order of time; at least one. */
  readonly held: readonly Sample[];
  readonly first: Sample;
  readonly last: Sample;
  readonly releasedAt: Nanoseconds | undefined;
  /** First look that found it lost without a release. */
  readonly lostAt: Nanoseconds | undefined;
  /** Renewals that the looks show: the end moved. */
  readonly renewals: number;
}

/** How long a resource had nobody after its holder was killed. */
export interface Succession {
  readonly resource: string;
  readonly killedAt: Nanoseconds;
  /** Until the successor's first look. */
  readonly gapMs: number;
}

export interface HistoryReport {
  /** `void`: nothing was violated, but nothing was put to the test either. */
  readonly verdict: "clean" | "violated" | "void";
  readonly violations: readonly Violation[];
  readonly voidBecause: readonly string[];
  /** In order of time. */
  readonly tenures: readonly Tenure[];
  readonly samples: number;
  readonly renewals: number;
  /** Successions of different holders after a release, and without one. */
  readonly handovers: number;
  readonly takeovers: number;
  /** Pairs of tenures whose outermost stamps overlap, without proof. Near zero unless processes were stopped in a look. */
  readonly inconclusive: number;
  /** First looks after a pause in which another had taken over, that found the lease lost as they had to. */
  readonly lossesFoundAfterPause: number;
  /** Of holders that were killed. */
  readonly successions: readonly Succession[];
}

/**
 * Reads one journal: one JSON object a line. Kinds of entries that the rules do not use are skipped.
 *
 * @throws HistoryError
 */
export function parseHistory(text: string, source: string): HistoryEvent[] {
  const lines = text.split("\n");
  const events: HistoryEvent[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === "") continue;
    const event = parseLine(line, (problem) => new HistoryError(source, index + 1, problem));
    if (event !== undefined) events.push(event);
  }
  return events;
}

/** Holds a merged history, in any order, against every rule. */
export function checkHistory(events: readonly HistoryEvent[]): HistoryReport {
  const interventions = events.filter(isIntervention);
  const { tenures, violations } = collectTenures(events);
  const byResource = groupBy(tenures, (tenure) => tenure.resource);
  let inconclusive = 0;
  let takeovers = 0;
  let handovers = 0;
  for (const same of byResource.values()) {
    const overlaps = findOverlaps(same);
    inconclusive += overlaps.inconclusive;
    violations.push(...overlaps.violations, ...findTokenFaults(same));
    for (const [index, tenure] of same.entries()) {
      const before = same[index - 1];
      if (before === undefined || before.incarnation === tenure.incarnation) continue;
      if (before.releasedAt === undefined) takeovers++;
      else handovers++;
    }
  }
  const pauses = judgePauses(interventions, events.filter(isSample), byResource);
  violations.push(...pauses.violations);
  const renewals = tenures.reduce((sum, tenure) => sum + tenure.renewals, 0);
  const voidBecause = [
    ...(takeovers === 0 ? ["no holder was replaced without having released"] : []),
    ...(renewals === 0 ? ["no lease was renewed"] : []),
  ];
  return {
    verdict: violations.length > 0 ? "violated" : voidBecause.length > 0 ? "void" : "clean",
    violations,
    voidBecause,
    tenures,
    samples: events.filter(isSample).length,
    renewals,
    handovers,
    takeovers,
    inconclusive,
    lossesFoundAfterPause: pauses.lossesFound,
    successions: findSuccessions(interventions, byResource),
  };
}

/** The report's figures in one line, and each violation in one more. */
export function describeReport(report: HistoryReport): string {
  const figures =
    `${report.verdict}: ${report.tenures.length} tenures, ${report.takeovers} takeovers, ` +
    `${report.handovers} handovers, ${report.renewals} renewals, ${report.samples} samples, ` +
    `${report.inconclusive} inconclusive`;
  const violations = report.violations.map((violation) => `${violation.rule}: ${violation.text}`);
  return [figures, ...report.voidBecause, ...violations].join("\n");
}

// Reading

type Fail = (problem: string) => HistoryError;

function parseLine(line: string, fail: Fail): HistoryEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw fail("not a line of JSON");
  }
  if (typeof value !== "object" || value === null) throw fail("not an object");
  const fields = value as Record<string, unknown>;
  const { event } = fields;
  const moment = (name: string): bigint => wholeNumber(fields[name], name, fail);
  switch (event) {
    case "sample": {
      const { ok, remainingMs } = fields;
      const [m1, m2] = [moment("m1"), moment("m2")];
      if (typeof ok !== "boolean") throw fail("ok is not true or false");
      if (typeof remainingMs !== "number") throw fail("remainingMs is not a number");
      if (m2 < m1) throw fail("m2 is before m1");
      return { event, m1, m2, ok, remainingMs, ...parseHolding(fields, fail) };
    }
    case "release":
      return { event, m: moment("m"), ...parseHolding(fields, fail) };
    case "killed":
    case "stopped":
    case "continued":
      return { event, m: moment("m"), pid: parsePid(fields, fail) };
    default:
      if (typeof event !== "string") throw fail("no event");
      return undefined;
  }
}

function parseHolding(fields: Record<string, unknown>, fail: Fail): Holding {
  const { incarnation, resource } = fields;
  if (typeof incarnation !== "string" || incarnation === "") throw fail("no incarnation");
  if (typeof resource !== "string" || resource === "") throw fail("no resource");
  const token = wholeNumber(fields["token"], "token", fail);
  return { pid: parsePid(fields, fail), incarnation, resource, token };
}

function parsePid(fields: Record<string, unknown>, fail: Fail): number {
  const { pid } = fields;
  if (typeof pid !== "number" || !Number.isInteger(pid)) throw fail("pid is not a whole number");
  return pid;
}

function wholeNumber(value: unknown, name: string, fail: Fail): bigint {
  if (typeof value !== "string" || !/^\d+$/.test(value)) throw fail(`${name} is not a string of digits`);
  return BigInt(value);
}

function isSample(event: HistoryEvent): event is Sample {
  return event.event === "sample";
}

function isIntervention(event: HistoryEvent): event is Intervention {
  return event.event !== "sample" && event.event !== "release";
}

// Tenures

interface Gathered {
  readonly samples: Sample[];
  release: Release | undefined;
}

function collectTenures(events: readonly HistoryEvent[]): { tenures: Tenure[]; violations: Violation[] } {
  const gathered = new Map<string, Gathered>();
  for (const event of events) {
    if (isIntervention(event)) continue;
    const key = `${event.resource}\n${event.incarnation}\n${event.token}`;
    let entry = gathered.get(key);
    if (entry === undefined) gathered.set(key, (entry = { samples: [], release: undefined }));
    if (event.event === "sample") entry.samples.push(event);
    else if (entry.release === undefined || event.m < entry.release.m) entry.release = event;
  }
  const tenures: Tenure[] = [];
  const violations: Violation[] = [];
  for (const { samples, release } of gathered.values()) {
    const tenure = makeTenure(samples, release, violations);
    if (tenure !== undefined) tenures.push(tenure);
  }
  return { tenures: tenures.sort((a, b) => compare(a.first.m2, b.first.m2)), violations };
}

function makeTenure(
  samples: Sample[],
  release: Release | undefined,
  violations: Violation[],
): Tenure | undefined {
  samples.sort((a, b) => compare(a.m1, b.m1));
  const held = samples.filter((sample) => sample.ok);
  const [first, last] = [held[0], held.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const { pid, incarnation, resource, token } = first;
  const releasedAt = release?.m;
  const foundLost = samples.find((sample) => !sample.ok);
  if (releasedAt !== undefined && last.m1 > releasedAt) {
    const text = `${nameOf(first)} was found held ${apartMs(releasedAt, last.m1)} ms after its release`;
    violations.push({ rule: "held-after-release", resource, text });
  }
  if (foundLost !== undefined && last.m1 > foundLost.m2) {
    const text = `${nameOf(first)} was found held ${apartMs(foundLost.m2, last.m1)} ms after it was found lost`;
    violations.push({ rule: "reopened", resource, text });
  }
  const lost = foundLost !== undefined && (releasedAt === undefined || foundLost.m2 < releasedAt);
  const lostAt = lost ? foundLost.m1 : undefined;
  const renewals = countRenewals(held);
  return { pid, incarnation, resource, token, held, first, last, releasedAt, lostAt, renewals };
}

/** A renewal shows when the earliest end that a look allows is later than the latest end that the look before allows. */
function countRenewals(held: readonly Sample[]): number {
  let renewals = 0;
  for (const [index, sample] of held.entries()) {
    const before = held[index - 1];
    if (before === undefined) continue;
    const movedNs = sample.m1 - before.m2 + toNs(sample.remainingMs - before.remainingMs);
    if (movedNs > endJitterNs) renewals++;
  }
  return renewals;
}

/** The end is computed from two clocks that are corrected by tiny steps. */
const endJitterNs = 1_000_000n;

// Rules. A tenure was held at one instant up to `certainStart` at the latest, and at one from `certainEnd` on.

function certainStart(tenure: Tenure): Nanoseconds {
  return tenure.first.m2;
}

function certainEnd(tenure: Tenure): Nanoseconds {
  const { last, releasedAt } = tenure;
  return releasedAt !== undefined && releasedAt < last.m1 ? releasedAt : last.m1;
}

/** For a tenure with a single look this asks that the other was held before and after the whole of that look. */
function certainlyOverlap(one: Tenure, other: Tenure): boolean {
  return certainStart(one) < certainEnd(other) && certainStart(other) < certainEnd(one);
}

function possiblyOverlap(one: Tenure, other: Tenure): boolean {
  return one.first.m1 < other.last.m2 && other.first.m1 < one.last.m2;
}

function findOverlaps(tenures: readonly Tenure[]): { violations: Violation[]; inconclusive: number } {
  const violations: Violation[] = [];
  let inconclusive = 0;
  let running: Tenure[] = [];
  for (const tenure of tenures.toSorted((a, b) => compare(a.first.m1, b.first.m1))) {
    running = running.filter((earlier) => earlier.last.m2 > tenure.first.m1);
    for (const earlier of running) {
      if (certainlyOverlap(earlier, tenure)) violations.push(overlapOf(earlier, tenure));
      else if (possiblyOverlap(earlier, tenure)) inconclusive++;
    }
    running.push(tenure);
  }
  return { violations, inconclusive };
}

function overlapOf(one: Tenure, other: Tenure): Violation {
  const from = later(certainStart(one), certainStart(other));
  const to = certainEnd(one) < certainEnd(other) ? certainEnd(one) : certainEnd(other);
  const length = to > from ? `for ${apartMs(from, to)} ms` : "in a single look";
  const text = `${nameOf(one)} and ${nameOf(other)} were both held at ${from}, ${length}`;
  return { rule: "overlap", resource: one.resource, text };
}

/** Expects the tenures in the order of their certain starts. */
function findTokenFaults(tenures: readonly Tenure[]): Violation[] {
  const violations: Violation[] = [];
  const byToken = new Map<bigint, Tenure>();
  let greatest: Tenure | undefined;
  for (const tenure of tenures) {
    const { resource, token } = tenure;
    const twin = byToken.get(token);
    if (twin !== undefined) {
      violations.push({
        rule: "token-repeated",
        resource,
        text: `${nameOf(tenure)} has the token of ${nameOf(twin)}`,
      });
    } else if (greatest !== undefined && token < greatest.token && wasBefore(greatest, tenure)) {
      violations.push({
        rule: "token-order",
        resource,
        text: `${nameOf(tenure)} began after ${nameOf(greatest)}`,
      });
    }
    byToken.set(token, tenure);
    if (greatest === undefined || token > greatest.token) greatest = tenure;
  }
  return violations;
}

/**
 * If the two exclude each other, the first was before the second. A process that was stopped in its first look has an
 * uncertain start, so their order in the list alone proves nothing.
 */
function wasBefore(one: Tenure, other: Tenure): boolean {
  return certainStart(one) <= certainEnd(other);
}

interface PauseVerdict {
  readonly violations: Violation[];
  readonly lossesFound: number;
}

/** The first look after SIGCONT must find the lease lost if another certainly held it by then. */
function judgePauses(
  interventions: readonly Intervention[],
  samples: readonly Sample[],
  byResource: ReadonlyMap<string, readonly Tenure[]>,
): PauseVerdict {
  const violations: Violation[] = [];
  let lossesFound = 0;
  const samplesByPid = groupBy(samples, (sample) => sample.pid);
  for (const { event, pid, m } of interventions) {
    if (event !== "continued") continue;
    const own = samplesByPid.get(pid) ?? [];
    for (const tenure of [...byResource.values()].flat()) {
      if (tenure.pid !== pid || tenure.first.m1 > m || (tenure.releasedAt ?? m) < m) continue;
      const look = own.find((sample) => sample.m1 >= m && isOf(sample, tenure));
      if (look === undefined) continue;
      const successor = byResource
        .get(tenure.resource)!
        .find((other) => isAfter(other, tenure) && certainStart(other) < look.m1);
      if (successor === undefined) continue;
      if (!look.ok) lossesFound++;
      else
        violations.push({
          rule: "held-after-pause",
          resource: tenure.resource,
          text: `${nameOf(tenure)} was found held after a pause in which ${nameOf(successor)} took over`,
        });
    }
  }
  return { violations, lossesFound };
}

function isOf(sample: Sample, tenure: Tenure): boolean {
  return (
    sample.token === tenure.token &&
    sample.incarnation === tenure.incarnation &&
    sample.resource === tenure.resource
  );
}

function isAfter(other: Tenure, tenure: Tenure): boolean {
  return other.incarnation !== tenure.incarnation && certainStart(other) > certainStart(tenure);
}

function findSuccessions(
  interventions: readonly Intervention[],
  byResource: ReadonlyMap<string, readonly Tenure[]>,
): Succession[] {
  const successions: Succession[] = [];
  const kills = interventions.filter((intervention) => intervention.event === "killed");
  for (const [resource, tenures] of byResource) {
    for (const [index, tenure] of tenures.entries()) {
      const kill = kills.find(({ pid }) => pid === tenure.pid);
      const successor = tenures[index + 1];
      const ended = tenure.releasedAt !== undefined || tenure.lostAt !== undefined;
      if (kill === undefined || successor === undefined || ended) continue;
      successions.push({ resource, killedAt: kill.m, gapMs: apartMs(kill.m, successor.first.m1) });
    }
  }
  return successions;
}

// Words and numbers

function groupBy<K, V>(values: readonly V[], keyOf: (value: V) => K): Map<K, V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}

function nameOf({ resource, incarnation, token }: Holding): string {
  return `${resource} by ${incarnation} with token ${token}`;
}

function later(a: Nanoseconds, b: Nanoseconds): Nanoseconds {
  return a > b ? a : b;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function toNs(ms: number): Nanoseconds {
  return BigInt(Math.round(ms * 1e6));
}

function apartMs(from: Nanoseconds, to: Nanoseconds): number {
  return Number(to - from) / 1e6;
}
