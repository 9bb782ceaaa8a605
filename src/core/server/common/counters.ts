/** Seconds: etcd's own. */
const syncBuckets = [
  0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192,
];

/** How often something took how long. */
export class Histogram {
  readonly #counts = syncBuckets.map(() => 0);
  #count = 0;
  #sum = 0;

  observe(seconds: number): void {
    this.#count += 1;
    this.#sum += seconds;
    const bucket = syncBuckets.findIndex((most) => seconds <= most);
    if (bucket !== -1) this.#counts[bucket]! += 1;
  }

  lines(name: string): string[] {
    let below = 0;
    const buckets = syncBuckets.map((most, index) => {
      below += this.#counts[index]!;
      return `${name}_bucket{le="${most}"} ${below}`;
    });
    return [
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`,
    ];
  }
}

/** More tell nothing more about the 99th percentile. */
const recentMax = 1_000;

/** How long something took the last times, ms. */
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

/** gRPC's names of its codes, as its metrics have them. */
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
  readonly #handled = codes.map(() => 0);

  constructor(labels: string) {
    this.labels = labels;
  }

  handled(code: number): void {
    this.#handled[code]! += 1;
  }

  handledLines(): string[] {
    return this.#handled.flatMap((count, code) =>
      count === 0 && code !== 0
        ? []
        : [`grpc_server_handled_total{grpc_code="${codes[code]}",${this.labels}} ${count}`],
    );
  }
}

/** What a server has counted since it began. */
export class Counters {
  readonly #walSyncs = new RecentTimes();
  readonly walSync = new Histogram();
  readonly methods: MethodCounts[] = [];
  leaderChanges = 0;

  /** A write of the log is on disk. */
  synced(tookMs: number): void {
    this.walSync.observe(tookMs / 1e3);
    this.#walSyncs.observe(tookMs);
  }

  /** How long the last of them took, ms, shortest first. */
  get recentSyncs(): Float64Array {
    return this.#walSyncs.sorted();
  }
}
