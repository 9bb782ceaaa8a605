/** What programs see. */

/** The formats that Prometheus reads. */
export type TextFormat = "prometheus" | "openmetrics";

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
