/** What programs see. */

/** The formats that Prometheus reads. */
export type TextFormat = "prometheus" | "openmetrics";

/** What a metric is. */
export interface MetricDefinition {
  readonly kind: "counter" | "gauge" | "histogram";
  /** As Prometheus and OpenTelemetry write it; empty for a number of things. */
  readonly unit: "" | "seconds" | "bytes" | "ratio";
  readonly labels: readonly string[];
  /** One sentence. */
  readonly help: string;
  /** Upper bounds of a histogram, rising. */
  readonly buckets?: readonly number[];
}

/** Metrics by their names, which have no unit and no `_total`: the formats add them. */
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

/** Counts metrics of these names. A metric that nothing has touched is not shown. */
export interface Recorder<All extends MetricDefinitions> {
  /** @param by default 1 */
  add<Name extends keyof All & string>(name: Name, labels: LabelValues<All[Name]>, by?: number): void;
  /** Of a gauge, or of a counter that something else counts. */
  set<Name extends keyof All & string>(name: Name, labels: LabelValues<All[Name]>, value: number): void;
  /**
   * An observation of a histogram.
   *
   * @param resource what was observed, for an exemplar
   */
  observe<Name extends keyof All & string>(
    name: Name,
    labels: LabelValues<All[Name]>,
    value: number,
    resource?: string,
  ): void;
  /** One series, which is looked up once: for what is counted often. */
  series<Name extends keyof All & string>(name: Name, labels: LabelValues<All[Name]>): RecordedSeries;
  /** Removes all series of a metric, so that those that are gone are not shown for ever. */
  clear(name: keyof All & string): void;
  /** Calls `update` before each reading. Returns a function that ends that. */
  beforeRead(update: () => void): () => void;
}

export interface Served {
  /** `host:port`. */
  readonly address: string;
  close(): Promise<void>;
}

/** What is used of `Meter` in `@opentelemetry/api`, which need not be installed. */
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

/** An instrument that is read when the meter asks. */
export type Observable = object;

export type BatchCallback = (result: {
  observe(instrument: Observable, value: number, attributes: Attributes): void;
}) => void;
