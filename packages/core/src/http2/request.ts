import type { Field } from "./static-table.js";

/** The head of a request. Requests with equal heads share the fields object. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  /** By name, without pseudo-header fields. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  /** Approximate memory, bytes. */
  readonly bytes: number;
}

/** Overhead of a field in addition to its name and value, as in HPACK (RFC 7541, section 4.1). */
const fieldBytes = 32;

const pseudoFields: ReadonlySet<string> = new Set([":method", ":scheme", ":path", ":authority"]);

/** RFC 9113, section 8.2.2: fields that are specific to an HTTP/1.1 connection. */
const hopFields: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Validates a request's fields (sections 8.2 and 8.3). `:authority` is not validated: clients of etcd 3.4 in
 * Go send a whole address there, and nothing reads it.
 *
 * @returns undefined if the fields are malformed
 */
export function requestHead(fields: readonly Field[]): RequestHead | undefined {
  const pseudo = new Map<string, string>();
  const others = new Map<string, string[]>();
  let bytes = 0;
  for (const [name, value] of fields) {
    bytes += name.length + value.length + fieldBytes;
    if (name.startsWith(":")) {
      if (others.size > 0 || pseudo.has(name) || !pseudoFields.has(name)) return undefined;
      pseudo.set(name, value);
      continue;
    }
    if (!isPlain(name, value)) return undefined;
    const before = others.get(name);
    if (before === undefined) others.set(name, [value]);
    else before.push(value);
  }
  const method = pseudo.get(":method");
  const path = pseudo.get(":path");
  if (method === undefined || path === undefined || path === "" || !pseudo.has(":scheme")) return undefined;
  return { method, path, fields: others, bytes };
}

/** Whether these fields may be sent as trailers. */
export function areTrailers(fields: readonly Field[]): boolean {
  return fields.every(([name, value]) => !name.startsWith(":") && isPlain(name, value));
}

function isPlain(name: string, value: string): boolean {
  if (name === "" || name !== name.toLowerCase() || hopFields.has(name)) return false;
  if (name === "te" && value !== "trailers") return false;
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code === 0 || code === 10 || code === 13) return false;
  }
  return true;
}
