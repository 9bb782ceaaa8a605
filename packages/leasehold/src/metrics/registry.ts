import { readBothClocks } from "../common/both-clocks.js";
import type { Clock } from "../common/ports.js";
import { catalogue } from "./catalogue.js";
import type { MetricDefinition, MetricDefinitions, RecordedSeries, Recorder } from "./types.js";

/** The maximum number of series of one metric. Further label values are counted together under `other`. */
export const seriesMax = 200;

/** A bucket's exemplar is replaced once in this many observations. */
const exemplarEvery = 64;

/** What a histogram has counted. */
export interface Distribution {
  readonly buckets: readonly number[];
  /** One count for each bucket, and one for values above all buckets; not cumulative. */
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

/** Receives each observation of a histogram, for a system that computes its own distributions. */
export type Sink = (name: string, labels: readonly string[], value: number) => void;

/** The metrics of one process, all in memory. A metric has no series until it is first used. */
export class Registry implements Recorder<typeof catalogue> {
  readonly #definitions = new Map<string, MetricDefinition>(Object.entries(catalogue));
  readonly #series = new Map<string, Map<string, Series>>();
  #sinks: readonly Sink[] = [];
  readonly #beforeRead = new Set<() => void>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** All metrics that may have series, in the order in which they are shown. */
  get definitions(): ReadonlyMap<string, MetricDefinition> {
    return this.#definitions;
  }

  define<All extends MetricDefinitions>(definitions: All): Recorder<All> {
    for (const [name, definition] of Object.entries(definitions)) this.#definitions.set(name, definition);
    return this;
  }

  add(name: string, labels: readonly string[], by = 1): void {
    this.#seriesOf(name, labels).value += by;
  }

  set(name: string, labels: readonly string[], value: number): void {
    this.#seriesOf(name, labels).value = value;
  }

  observe(name: string, labels: readonly string[], value: number, resource?: string): void {
    this.#observe(name, this.#seriesOf(name, labels), value, resource);
  }

  series(name: string, labels: readonly string[]): RecordedSeries {
    // Created at first use: unused metrics are not exported.
    let found: Series | undefined;
    return {
      add: (by = 1) => void ((found ??= this.#seriesOf(name, labels)).value += by),
      observe: (value, resource) =>
        this.#observe(name, (found ??= this.#seriesOf(name, labels)), value, resource),
    };
  }

  #observe(name: string, { distribution, labels }: Series, value: number, resource?: string): void {
    if (distribution === undefined) return;
    const { buckets, counts } = distribution;
    let at = 0;
    while (at < buckets.length && value > buckets[at]!) at += 1;
    const count = (counts[at]! += 1);
    distribution.sum += value;
    // Reused: creating one for each count would cost more than counting.
    if (resource !== undefined && count % exemplarEvery === 1)
      distribution.exemplars[at] = { resource, value, atMs: readBothClocks(this.#clock).wallMs };
    for (const sink of this.#sinks) sink(name, labels, value);
  }

  clear(name: string): void {
    this.#series.delete(name);
  }

  beforeRead(update: () => void): () => void {
    this.#beforeRead.add(update);
    return () => void this.#beforeRead.delete(update);
  }

  attach(sink: Sink): () => void {
    this.#sinks = [...this.#sinks, sink];
    return () => void (this.#sinks = this.#sinks.filter((each) => each !== sink));
  }

  /** All present series, in the order of the definitions. */
  read(): Map<string, readonly Series[]> {
    for (const update of this.#beforeRead) update();
    return new Map(
      [...this.#definitions.keys()].flatMap((name) => {
        const series = this.#series.get(name);
        return series === undefined ? [] : [[name, [...series.values()]] as const];
      }),
    );
  }

  #seriesOf(name: string, labels: readonly string[]): Series {
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
    const made = { labels: [...labels], value: 0, distribution: distributionOf(this.#definitions.get(name)) };
    all.set(key, made);
    return made;
  }
}

function distributionOf(definition: MetricDefinition | undefined): Distribution | undefined {
  if (definition?.kind !== "histogram") return undefined;
  const { buckets = [] } = definition;
  return { buckets, counts: Array<number>(buckets.length + 1).fill(0), sum: 0, exemplars: [] };
}
