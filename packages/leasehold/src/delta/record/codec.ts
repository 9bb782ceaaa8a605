import { isCount, isRecord } from "../../common/json.js";
import { isResourceName } from "../../lease/resource-name.js";
import { dataIn } from "../../lease/tenure-data.js";
import { bigintOf, isDuration } from "./fields.js";
import { DecodeCache } from "./decode-cache.js";
import { corrupt, encodeEnvelope, openEnvelope } from "./envelope.js";
import type { Asked, DeltaRecord } from "./record.js";

/**
 * The first word of every record. Any other number means another format, which this version does not touch.
 */
export const recordFormat = "leasehold-delta/1";

/** Encodes a record as one line of text. Equal records have equal bytes. */
export function encodeRecord(record: DeltaRecord): Uint8Array {
  return encodeEnvelope(recordFormat, jsonOf(record));
}

/**
 * Concatenated by hand: this runs for every acquisition and renewal, and `JSON.stringify` of a copy takes
 * twice as long.
 */
function jsonOf(record: DeltaRecord): string {
  const { resource, epoch, number, writer, nonce, state, leaseMs, delayMs, label, readers } = record;
  const { asked, detached, data } = record;
  let json = `{"resource":${JSON.stringify(resource)},"epoch":"${epoch}","number":"${number}"`;
  json += `,"writer":${JSON.stringify(writer)},"nonce":${nonce},"state":"${state}"`;
  json += `,"leaseMs":${leaseMs},"delayMs":${delayMs}`;
  if (label !== undefined) json += `,"label":${JSON.stringify(label)}`;
  if (readers !== undefined) json += `,"readers":${JSON.stringify(readers)}`;
  if (asked !== undefined) json += `,"asked":{"by":${JSON.stringify(asked.by)},"broken":${asked.broken}}`;
  if (detached !== undefined) json += `,"detached":${JSON.stringify(detached)}`;
  if (data !== undefined) json += `,"data":${data}`;
  return `${json}}`;
}

const known = new DecodeCache(decodeAnew);

/**
 * Decodes a record. It refuses anything that {@link encodeRecord} would not write in exactly the same bytes.
 *
 * @throws LeaseholdError `STORE_FOREIGN`, `STORE_CORRUPT`.
 */
export function decodeRecord(bytes: Uint8Array): DeltaRecord {
  return known.decode(bytes);
}

function decodeAnew(bytes: Uint8Array): DeltaRecord {
  const { json, value } = openEnvelope(recordFormat, bytes);
  const record = recordOf(value, bytes);
  if (jsonOf(record) !== json) throw corrupt("it is not in canonical form", bytes);
  return record;
}

function recordOf(value: unknown, bytes: Uint8Array): DeltaRecord {
  const wrong = (what: string) => corrupt(`its ${what} is invalid`, bytes);
  if (!isRecord(value)) throw wrong("content");
  const { resource, writer, nonce, state, leaseMs, delayMs, label, readers, asked } = value;
  const { detached, data } = value;
  if (typeof resource !== "string" || !isResourceName(resource)) throw wrong("resource");
  if (typeof writer !== "string" || writer === "") throw wrong("writer");
  if (!isCount(nonce)) throw wrong("nonce");
  if (state !== "held" && state !== "free") throw wrong("state");
  if (!isDuration(leaseMs)) throw wrong("leaseMs");
  if (!isDuration(delayMs)) throw wrong("delayMs");
  if (label !== undefined && typeof label !== "string") throw wrong("label");
  if (readers !== undefined && !isTexts(readers)) throw wrong("readers");
  if (asked !== undefined && !isAsked(asked)) throw wrong("asked");
  if (detached !== undefined && typeof detached !== "string") throw wrong("detached");
  const text = dataIn(data);
  if (data !== undefined && text === undefined) throw wrong("data");
  const [epoch, number] = [bigintOf(value["epoch"]), bigintOf(value["number"])];
  if (epoch === undefined) throw wrong("epoch");
  if (number === undefined) throw wrong("number");
  return {
    resource,
    epoch,
    number,
    writer,
    nonce,
    state,
    leaseMs,
    delayMs,
    ...(label !== undefined && { label }),
    ...(readers !== undefined && { readers }),
    ...(asked !== undefined && { asked }),
    ...(detached !== undefined && { detached }),
    ...(text !== undefined && { data: text }),
  };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isAsked(value: unknown): value is Asked {
  if (!isRecord(value)) return false;
  const { by, broken } = value;
  return typeof by === "string" && typeof broken === "boolean";
}
