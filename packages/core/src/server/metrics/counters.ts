import { Traffic } from "../wire/traffic.js";

/** Buckets in seconds, each twice the one before, as in etcd. */
const doubled = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => Number((first * 2 ** index).toPrecision(5)));
const syncBuckets = doubled(0.001, 14);
const roundTripBuckets = doubled(0.0001, 16);
/** Prometheus' default buckets, which etcd uses for its calls. */
const callBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A histogram of durations. */
export class Histogram {
  readonly #buckets: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;

  /** @param buckets seconds */
  constructor(buckets: readonly number[]) {
    this.#buckets = buckets;
    this.#counts = buckets.map(() => 0);
  }

  observe(seconds: number): void {
    this.#count += 1;
    this.#sum += seconds;
    const bucket = this.#buckets.findIndex((most) => seconds <= most);
    if (bucket !== -1) this.#counts[bucket]! += 1;
  }

  /** @param labels without braces; empty: none */
  lines(name: string, labels = ""): string[] {
    let below = 0;
    const before = labels === "" ? "" : `${labels},`;
    const all = labels === "" ? "" : `{${labels}}`;
    const buckets = this.#buckets.map((most, index) => {
      below += this.#counts[index]!;
      return `${name}_bucket{${before}le="${most}"} ${below}`;
    });
    return [
      ...buckets,
      `${name}_bucket{${before}le="+Inf"} ${this.#count}`,
      `${name}_sum${all} ${this.#sum}`,
      `${name}_count${all} ${this.#count}`,
    ];
  }
}

/** Traffic between this server and another one. */
export class PeerCounts {
  readonly traffic = new Traffic();
  readonly roundTrip = new Histogram(roundTripBuckets);
  /** Number of messages that could not be sent, and of heartbeats among them. */
  failures = 0;
  heartbeatFailures = 0;
  /** Bytes waiting for the server's sockets. */
  queuedBytes: () => number = () => 0;
  #pingedMs: number | undefined;

  /** A ping was sent. Of several unanswered ones, the first counts. */
  pinged(): void {
    this.#pingedMs ??= performance.now();
  }

  answered(): void {
    if (this.#pingedMs !== undefined) this.roundTrip.observe((performance.now() - this.#pingedMs) / 1e3);
    this.#pingedMs = undefined;
  }

  /** A connection begins. Pings on an earlier one will not be answered. */
  begun(): void {
    this.#pingedMs = undefined;
  }
}

/** More would not improve the 99th percentile. */
const recentMax = 1_000;

/** The most recent durations, ms. */
export class RecentTimes {
  readonly #times = new Float64Array(recentMax);
  #count = 0;

  observe(ms: number): void {
    this.#times[this.#count % recentMax] = ms;
    this.#count += 1;
  }

  /** Shortest first. */
  sorted(): Float64Array {
    return this.#times.slice(0, Math.min(this.#count, recentMax)).toSorted();
  }
}

/** gRPC's names for its codes, as in its metrics. */
const codes = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
];

/** The calls of one method. */
export class MethodCounts {
  readonly labels: string;
  started = 0;
  /** Duration from the request to the end of the answer. */
  readonly took = new Histogram(callBuckets);
  readonly #handled = codes.map(() => 0);

  constructor(labels: string) {
    this.labels = labels;
  }

  handled(code: number, tookMs: number): void {
    this.#handled[code]! += 1;
    this.took.observe(tookMs / 1e3);
  }

  handledLines(): string[] {
    return this.#handled.flatMap((count, code) =>
      count === 0 && code !== 0
        ? []
        : [`grpc_server_handled_total{grpc_code="${codes[code]}",${this.labels}} ${count}`],
    );
  }
}

/** Counts since the server began. */
export class Counters {
  readonly #walSyncs = new RecentTimes();
  readonly walSync = new Histogram(syncBuckets);
  readonly snapshotSave = new Histogram(syncBuckets);
  /** Answers to health requests. */
  readonly healthAsked = { healthy: 0, unhealthy: 0 };
  readonly #peers = new Map<bigint, PeerCounts>();
  readonly methods: MethodCounts[] = [];
  leaderChanges = 0;

  /** By member id. */
  get peers(): ReadonlyMap<bigint, PeerCounts> {
    return this.#peers;
  }

  peer(id: bigint): PeerCounts {
    let counts = this.#peers.get(id);
    if (counts === undefined) {
      counts = new PeerCounts();
      this.#peers.set(id, counts);
    }
    return counts;
  }

  /** Drops former members. */
  keepPeers(ids: ReadonlySet<bigint>): void {
    for (const id of this.#peers.keys()) if (!ids.has(id)) this.#peers.delete(id);
  }

  /** A write to the log is on disk. */
  synced(tookMs: number): void {
    this.walSync.observe(tookMs / 1e3);
    this.#walSyncs.observe(tookMs);
  }

  /** The most recent durations, ms, shortest first. */
  get recentSyncs(): Float64Array {
    return this.#walSyncs.sorted();
  }
}
