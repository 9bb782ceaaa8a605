import type { JsonValue } from "../lease/types.js";
import type { SpanContextLike } from "./types.js";

/** As in W3C's Trace Context. A later version than 00 may have more at its end. */
const form = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;

/** The length of a traceparent that is read; ours has 55 characters. */
const charactersMax = 128;

const sampled = 1;

/** The data of a tenure that names its span; `undefined` for a span that no trace will show. */
export function dataNaming({ traceId, spanId, traceFlags }: SpanContextLike): string | undefined {
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, "0")}`;
  const isShown = (traceFlags & sampled) === sampled && form.test(traceparent);
  return isShown ? JSON.stringify({ traceparent }) : undefined;
}

/** The span that a tenure's data names. Anybody may have written it: it is good for a link alone. */
export function spanNamedIn(data: JsonValue | undefined): SpanContextLike | undefined {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return undefined;
  const { traceparent } = data as { readonly [name: string]: JsonValue };
  if (typeof traceparent !== "string" || traceparent.length > charactersMax) return undefined;
  const [, traceId, spanId, flags] = form.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
