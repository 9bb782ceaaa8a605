/** The state of one server of a core, or the reason why it does not answer. */
export type ServerReport = AnsweringServer | SilentServer;

export interface SilentServer {
  readonly address: string;
  readonly reachable: false;
  readonly reason: string;
  /** As known to the other servers: id (hexadecimal), name, and whether it votes. */
  readonly id?: string;
  readonly name?: string;
  readonly isLearner?: boolean;
}

export interface AnsweringServer {
  readonly address: string;
  readonly reachable: true;
  /** Hexadecimal, as etcd's tools show it. */
  readonly id: string;
  readonly name: string;
  /** Version of etcd's API. */
  readonly version: string;
  readonly isLeader: boolean;
  /** The server receives the log, but does not vote. */
  readonly isLearner: boolean;
  /** The leader known to the server; empty if it knows none. */
  readonly leader: string;
  readonly term: bigint;
  /** The last entry of its log, and the last one applied. */
  readonly logIndex: bigint;
  readonly appliedIndex: bigint;
  /** Number of committed entries, as far as the servers know, that this one has not applied. */
  readonly lag: bigint;
  /** The size on disk, bytes. */
  readonly dataBytes: bigint;
  /** Active alarms as printed by etcd: `memberID:1 alarm:NOSPACE`. */
  readonly alarms: readonly string[];
  readonly roundTripMs: number;
  /** Absent for an etcd. */
  readonly own?: OwnReport;
}

/** State that only servers of Leasehold report. */
export interface OwnReport {
  readonly leaseholdVersion: string;
  readonly uptimeMs: number;
  readonly commitIndex: bigint;
  /** Memory of keys, values, history and leases, and its limit, bytes. */
  readonly stateBytes: bigint;
  readonly quotaBytes: bigint;
  readonly heartbeatMs: number;
  readonly electionMs: number;
  /** Durations of the last syncs of the log. */
  readonly syncs: SyncTimes;
  /** The other servers as seen by the leader; empty for a server that does not lead. */
  readonly followers: readonly KnownFollower[];
  readonly certificates: readonly CertificateReport[];
}

export interface SyncTimes {
  readonly samples: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly longestMs: number;
}

export interface KnownFollower {
  readonly id: string;
  /** The leader has heard from it within an election timeout. */
  readonly heard: boolean;
  /** Absent if the leader has never heard from it. */
  readonly silentMs?: number;
  readonly getsSnapshot: boolean;
  readonly matchIndex: bigint;
}

export interface CertificateReport {
  /**
   * The peers that see the certificate, or whose certificates the authority signs: `clients` or `servers`.
   */
  readonly towards: string;
  readonly file: string;
  /** System time, ms since 1970. */
  readonly expiresMs: number;
  readonly authority: boolean;
}

/** A reading of a server's steady clock between two readings of our clock; all in ms. */
export interface ClockReading {
  readonly thereMs: number;
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** The servers of one core. */
export interface CoreReport {
  /** The servers that were asked for, in order, followed by servers that they named. */
  readonly servers: readonly ServerReport[];
  /** The number of voters, as reported by one server; without answers, the number of servers asked for. */
  readonly size: number;
  /** By server id; empty for an etcd. */
  readonly clocks: ReadonlyMap<string, ClockReading>;
}

/** Bounds of the rate of a server's steady clock relative to ours; 1 means equal. */
export interface ClockRate {
  readonly id: string;
  readonly least: number;
  readonly most: number;
}

/** Returns the rates of servers that answered both times and were not restarted in between. */
export function clockRates(before: CoreReport, after: CoreReport): ClockRate[] {
  const rates: ClockRate[] = [];
  for (const [id, to] of after.clocks) {
    const from = before.clocks.get(id);
    if (from === undefined || to.askedMs <= from.answeredMs || wasRestarted(id, before, after)) continue;
    const thereMs = to.thereMs - from.thereMs;
    const least = thereMs / (to.answeredMs - from.askedMs);
    rates.push({ id, least, most: thereMs / (to.askedMs - from.answeredMs) });
  }
  return rates;
}

/** A restart may reset the steady clock. */
function wasRestarted(id: string, before: CoreReport, after: CoreReport): boolean {
  const uptimeIn = ({ servers }: CoreReport) =>
    servers.find((each): each is AnsweringServer => each.reachable && each.id === id)?.own?.uptimeMs ?? 0;
  return uptimeIn(after) < uptimeIn(before);
}
