/** The part of `@opentelemetry/api` that is used here; the package need not be installed. */

/** The part of `Tracer` that is used here. */
export interface TracerLike {
  startSpan(name: string, options: SpanOptionsLike): SpanLike;
  startActiveSpan<T>(name: string, options: SpanOptionsLike, run: (span: SpanLike) => T): T;
}

export interface SpanLike {
  spanContext(): SpanContextLike;
  isRecording(): boolean;
  setAttribute(name: string, value: string | number): unknown;
  addEvent(name: string, attributes: Record<string, string>): unknown;
  addLink(link: LinkLike): unknown;
  setStatus(status: { code: 2; message?: string }): unknown;
  end(): void;
}

export interface SpanContextLike {
  traceId: string;
  spanId: string;
  traceFlags: number;
  isRemote?: boolean;
}

export interface SpanOptionsLike {
  attributes: Record<string, string | number>;
  links?: LinkLike[];
}

export interface LinkLike {
  context: SpanContextLike;
}
