import { readBothClocks } from "../common/both-clocks.js";
import type { Clock } from "../common/ports.js";
import { catalogue, type Definition, type LabelValues, type MetricName } from "./catalogue.js";

/** Series of one metric. Label values beyond them are counted together, under `other`. */
export const seriesMax = 200;

/** Observations of a bucket for each exemplar. */
const exemplarEvery = 16;

/** What a histogram has counted. */
export interface Distribution {
  /** One for each bucket, and one for what is above them all; not cumulative. */
  readonly counts: number[];
  sum: number;
  /** A recent observation of each bucket that came with a resource. */
  readonly exemplars: (Exemplar | undefined)[];
}

export interface Exemplar {
  readonly resource: string;
  readonly value: number;
  readonly atMs: number;
}

export interface Series {
  readonly labels: readonly string[];
  value: number;
  readonly distribution: Distribution | undefined;
}

/** Hears each observation of a histogram, for a system that keeps distributions of its own. */
export type Sink = (name: MetricName, labels: readonly string[], value: number) => void;

/** The numbers of one process, all in memory. A metric that nothing has touched has no series. */
export class Registry {
  readonly #series = new Map<MetricName, Map<string, Series>>();
  readonly #sinks = new Set<Sink>();
  readonly #beforeRead = new Set<() => void>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add<Name extends MetricName>(name: Name, labels: LabelValues<Name>, by = 1): void {
    this.#seriesOf(name, labels).value += by;
  }

  /** Of a gauge, or of a counter that something else counts. */
  set<Name extends MetricName>(name: Name, labels: LabelValues<Name>, value: number): void {
    this.#seriesOf(name, labels).value = value;
  }

  /** @param resource what was observed, for an exemplar */
  observe<Name extends MetricName>(
    name: Name,
    labels: LabelValues<Name>,
    value: number,
    resource?: string,
  ): void {
    const { distribution } = this.#seriesOf(name, labels);
    if (distribution === undefined) return;
    const { buckets = [] }: Definition = catalogue[name];
    let at = 0;
    while (at < buckets.length && value > buckets[at]!) at += 1;
    const count = (distribution.counts[at]! += 1);
    distribution.sum += value;
    // A new one for each would cost more than the count.
    if (resource !== undefined && count % exemplarEvery === 1)
      distribution.exemplars[at] = { resource, value, atMs: readBothClocks(this.#clock).wallMs };
    for (const sink of this.#sinks) sink(name, labels, value);
  }

  /** Removes a gauge's series, so that those that are gone are not shown for ever. */
  clear(name: MetricName): void {
    this.#series.delete(name);
  }

  /** Calls `update` before each reading. Returns a function that ends that. */
  beforeRead(update: () => void): () => void {
    this.#beforeRead.add(update);
    return () => void this.#beforeRead.delete(update);
  }

  attach(sink: Sink): () => void {
    this.#sinks.add(sink);
    return () => void this.#sinks.delete(sink);
  }

  /** All series of now, in the order of the catalogue. */
  read(): Map<MetricName, readonly Series[]> {
    for (const update of this.#beforeRead) update();
    const names = Object.keys(catalogue) as MetricName[];
    return new Map(
      names.flatMap((name) => {
        const series = this.#series.get(name);
        return series === undefined ? [] : [[name, [...series.values()]] as const];
      }),
    );
  }

  #seriesOf(name: MetricName, labels: readonly string[]): Series {
    let all = this.#series.get(name);
    if (all === undefined) this.#series.set(name, (all = new Map()));
    const key = labels.length === 1 ? labels[0]! : labels.join("\0");
    const known = all.get(key);
    if (known !== undefined) return known;
    if (all.size >= seriesMax && labels.some((label) => label !== "other"))
      return this.#seriesOf(
        name,
        labels.map(() => "other"),
      );
    const made = { labels: [...labels], value: 0, distribution: distributionOf(catalogue[name]) };
    all.set(key, made);
    return made;
  }
}

function distributionOf({ kind, buckets = [] }: Definition): Distribution | undefined {
  if (kind !== "histogram") return undefined;
  return { counts: Array<number>(buckets.length + 1).fill(0), sum: 0, exemplars: [] };
}
