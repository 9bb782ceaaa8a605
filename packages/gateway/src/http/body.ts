import type { IncomingMessage } from "node:http";
import { LeaseholdError } from "leasehold/common";
import { HttpRefusal } from "../api/problem.js";

/** The largest body: 64 names of the greatest length, as escapes, and data. */
export const bodyBytesMax = 256 * 1024;

/**
 * The body as JSON; an empty one is an empty object.
 *
 * @throws HttpRefusal 413, 415; LeaseholdError `INVALID_CONFIG`
 */
export async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const type = request.headers["content-type"];
  // A page of another site can send any body with a type that forms have, but none with this type.
  if (type !== undefined && !/^application\/json\s*(?:;|$)/i.test(type))
    throw new HttpRefusal(415, "the body must be application/json");
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > bodyBytesMax)
      throw new HttpRefusal(413, `the body has more than ${bodyBytesMax} bytes`, { connection: "close" });
    parts.push(part);
  }
  if (bytes === 0) return {};
  if (type === undefined)
    throw new HttpRefusal(415, "the body must be application/json: say so in content-type");
  const text = Buffer.concat(parts);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch {
    throw new LeaseholdError("INVALID_CONFIG", "the body is not JSON in UTF-8");
  }
}
