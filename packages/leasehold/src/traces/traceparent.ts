import type { JsonValue } from "../lease/types.js";
import type { SpanContextLike } from "./types.js";

/** The format of W3C's Trace Context. Versions after 00 may append more fields. */
const form = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;

/** The longest traceparent that is read; ours has 55 characters. */
const charactersMax = 128;

const sampled = 1;

/** A tenure's data with its span; `undefined` for a span that is not sampled. */
export function dataNaming({ traceId, spanId, traceFlags }: SpanContextLike): string | undefined {
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, "0")}`;
  const isShown = (traceFlags & sampled) === sampled && form.test(traceparent);
  return isShown ? JSON.stringify({ traceparent }) : undefined;
}

/** The span in a tenure's data. Anybody may have written it, so it is only used for a link. */
export function spanNamedIn(data: JsonValue | undefined): SpanContextLike | undefined {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return undefined;
  const { traceparent } = data as { readonly [name: string]: JsonValue };
  if (typeof traceparent !== "string" || traceparent.length > charactersMax) return undefined;
  const [, traceId, spanId, flags] = form.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
