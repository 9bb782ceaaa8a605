import { corrupt, decodeEnvelope, encodeEnvelope, sameBytes } from "../../delta/record/envelope.js";
import { isCount, isRecord } from "../../common/json.js";
import { isResourceName } from "../../lease/resource-name.js";
import { dataIn, withData } from "../../lease/tenure-data.js";
import type { EntryRecord, Request } from "./record.js";

/** The first word of every record. Any other number means another format, which this version refuses. */
export const entryFormat = "leasehold-flease/1";

/**
 * Upper bound of a record's size: the longest names and labels, with every second byte escaped, and the data
 * of a tenure.
 */
export const recordBytesMax = 4_096;

/** Encodes a record as one line of text. Equal records have equal bytes. */
export function encodeEntry({ resource, entry, label, asked, data }: EntryRecord): Uint8Array {
  const hasLease = entry.leaseOwner !== "";
  return encodeEnvelope(
    entryFormat,
    withData(
      JSON.stringify({
        resource,
        promised: { number: entry.promisedNumber, owner: entry.promisedOwner },
        lease: hasLease
          ? {
              owner: entry.leaseOwner,
              number: entry.leaseNumber,
              sequence: entry.leaseSequence,
              until: entry.leaseExpiresWallMs,
              released: entry.released,
              token: entry.token,
            }
          : undefined,
        barred: entry.barredOwner === "" ? undefined : entry.barredOwner,
        label,
        asked: asked && { by: asked.by, broken: asked.broken, heard: asked.heard },
      }),
      data,
    ),
  );
}

/**
 * Decodes a record strictly: it refuses anything that {@link encodeEntry} would not write.
 *
 * @throws LeaseholdError `STORE_FOREIGN`, `STORE_CORRUPT`.
 */
export function decodeEntry(bytes: Uint8Array): EntryRecord {
  const record = recordOf(decodeEnvelope(entryFormat, bytes), bytes);
  if (!sameBytes(encodeEntry(record), bytes)) throw corrupt("it is not written as it should be", bytes);
  return record;
}

function recordOf(value: unknown, bytes: Uint8Array): EntryRecord {
  const wrong = (what: string) => corrupt(`its ${what} makes no sense`, bytes);
  if (!isRecord(value)) throw wrong("content");
  const { resource, promised, lease, barred, label, asked, data } = value;
  if (typeof resource !== "string" || !isResourceName(resource)) throw wrong("resource");
  if (!isRecord(promised)) throw wrong("promise");
  const { number, owner } = promised;
  if (!isCount(number) || typeof owner !== "string") throw wrong("promise");
  if (barred !== undefined && !isText(barred)) throw wrong("bar");
  if (label !== undefined && typeof label !== "string") throw wrong("label");
  if (asked !== undefined && !isRequest(asked)) throw wrong("request");
  const text = dataIn(data);
  if (data !== undefined && text === undefined) throw wrong("data");
  const held = lease === undefined ? noLease : leaseOf(lease);
  if (held === undefined) throw wrong("lease");
  const entry = { promisedNumber: number, promisedOwner: owner, ...held, barredOwner: barred ?? "" };
  return {
    resource,
    entry,
    ...(label !== undefined && { label }),
    ...(asked !== undefined && { asked }),
    ...(text !== undefined && { data: text }),
  };
}

type LeaseFields = Omit<EntryRecord["entry"], "promisedNumber" | "promisedOwner" | "barredOwner">;

const noLease: LeaseFields = {
  leaseOwner: "",
  leaseNumber: 0,
  leaseSequence: 0,
  leaseExpiresWallMs: 0,
  released: false,
  token: 0,
};

function leaseOf(value: unknown): LeaseFields | undefined {
  if (!isRecord(value)) return undefined;
  const { owner, number, sequence, until, released, token } = value;
  if (!isText(owner) || !isCount(number) || !isCount(sequence) || !isCount(token)) return undefined;
  if (typeof until !== "number" || until < 0 || typeof released !== "boolean") return undefined;
  return {
    leaseOwner: owner,
    leaseNumber: number,
    leaseSequence: sequence,
    leaseExpiresWallMs: until,
    released,
    token,
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isRequest(value: unknown): value is Request {
  if (!isRecord(value)) return false;
  const { by, broken, heard } = value;
  return typeof by === "string" && typeof broken === "boolean" && typeof heard === "boolean";
}
