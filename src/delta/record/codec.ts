import { isCount, isRecord } from "../../common/json.js";
import { isResourceName } from "../../lease/resource-name.js";
import { bigintOf, isDuration } from "./fields.js";
import { corrupt, decodeEnvelope, encodeEnvelope, sameBytes } from "./envelope.js";
import type { Asked, DeltaRecord } from "./record.js";

/** The first word of every record. Another number is another format, which this version leaves alone. */
export const recordFormat = "leasehold-delta/1";

/** The record as the one line of text that stands for it. The same record is always the same bytes. */
export function encodeRecord(record: DeltaRecord): Uint8Array {
  const { resource, epoch, number, writer, nonce, state, leaseMs, delayMs, label, readers, asked } = record;
  return encodeEnvelope(
    recordFormat,
    JSON.stringify({
      resource,
      epoch: epoch.toString(),
      number: number.toString(),
      writer,
      nonce,
      state,
      leaseMs,
      delayMs,
      label,
      readers,
      asked: asked && { by: asked.by, broken: asked.broken },
    }),
  );
}

/**
 * The record that these bytes stand for. Never guesses: what is not exactly as {@link encodeRecord} writes it is refused.
 *
 * @throws LeaseholdError `STORE_FOREIGN`, `STORE_CORRUPT`.
 */
export function decodeRecord(bytes: Uint8Array): DeltaRecord {
  const record = recordOf(decodeEnvelope(recordFormat, bytes), bytes);
  if (!sameBytes(encodeRecord(record), bytes)) throw corrupt("it is not written as it should be", bytes);
  return record;
}

function recordOf(value: unknown, bytes: Uint8Array): DeltaRecord {
  const wrong = (what: string) => corrupt(`its ${what} makes no sense`, bytes);
  if (!isRecord(value)) throw wrong("content");
  const { resource, writer, nonce, state, leaseMs, delayMs, label, readers, asked } = value;
  if (typeof resource !== "string" || !isResourceName(resource)) throw wrong("resource");
  if (typeof writer !== "string" || writer === "") throw wrong("writer");
  if (!isCount(nonce)) throw wrong("nonce");
  if (state !== "held" && state !== "free") throw wrong("state");
  if (!isDuration(leaseMs)) throw wrong("leaseMs");
  if (!isDuration(delayMs)) throw wrong("delayMs");
  if (label !== undefined && typeof label !== "string") throw wrong("label");
  if (readers !== undefined && !isTexts(readers)) throw wrong("readers");
  if (asked !== undefined && !isAsked(asked)) throw wrong("asked");
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
