/** The public types of metrics. */

/** The formats that Prometheus reads. */
export type TextFormat = "prometheus" | "openmetrics";

/** The definition of a metric. */
export interface MetricDefinition {
  readonly kind: "counter" | "gauge" | "histogram";
  /** As Prometheus and OpenTelemetry write it; empty for a count. */
  readonly unit: "" | "seconds" | "bytes" | "ratio";
  readonly labels: readonly string[];
  /** One sentence. */
  readonly help: string;
  /** The upper bounds of a histogram's buckets, ascending. */
  readonly buckets?: readonly number[];
}

/** Metrics by name. Names have no unit and no `_total`, which the formats add. */
export type MetricDefinitions = Readonly<Record<string, MetricDefinition>>;

type ValuesOf<Labels extends readonly string[]> = { readonly [Index in keyof Labels]: string };
/** One value for each label of the metric. */
export type LabelValues<Definition extends MetricDefinition> = ValuesOf<Definition["labels"]>;

/** One series of a metric. */
export interface RecordedSeries {
  /** @param by default 1 */
  add(by?: number): void;
  /** As {@link Recorder.observe}. */
  observe(value: number, resource?: string): void;
}

/** Records metrics of these names. A metric is not exported until it is first used. */
export interface Recorder<All extends MetricDefinitions> {
  /** @param by default 1 */
  add<Name extends keyof All & string>(name: Name, labels: LabelValues<All[Name]>, by?: number): void;
  /** Sets a gauge, or a counter whose total is counted elsewhere. */
  set<Name extends keyof All & string>(name: Name, labels: LabelValues<All[Name]>, value: number): void;
  /**
   * Adds an observation to a histogram.
   *
   * @param resource what was observed, for an exemplar
   */
  observe<Name extends keyof All & string>(
    name: Name,
    labels: LabelValues<All[Name]>,
    value: number,
    resource?: string,
  ): void;
  /** One series, looked up once: for events that are counted often. */
  series<Name extends keyof All & string>(name: Name, labels: LabelValues<All[Name]>): RecordedSeries;
  /** Removes all series of a metric, so that outdated series are not exported for ever. */
  clear(name: keyof All & string): void;
  /** Calls `update` before each reading. Returns a function that stops it. */
  beforeRead(update: () => void): () => void;
}

export interface Served {
  /** `host:port`. */
  readonly address: string;
  close(): Promise<void>;
}

/** The part of `@opentelemetry/api`'s `Meter` that is used here; the package need not be installed. */
export interface MeterLike {
  createHistogram(
    name: string,
    options: InstrumentOptions,
  ): { record(value: number, attributes: Attributes): void };
  createObservableGauge(name: string, options: InstrumentOptions): Observable;
  createObservableCounter(name: string, options: InstrumentOptions): Observable;
  addBatchObservableCallback(callback: BatchCallback, instruments: Observable[]): void;
  removeBatchObservableCallback(callback: BatchCallback, instruments: Observable[]): void;
}

export type Attributes = Record<string, string>;

interface InstrumentOptions {
  description: string;
  unit: string;
  advice?: { explicitBucketBoundaries: number[] };
}

/** An instrument that is read when the meter collects. */
export type Observable = object;

export type BatchCallback = (result: {
  observe(instrument: Observable, value: number, attributes: Attributes): void;
}) => void;
