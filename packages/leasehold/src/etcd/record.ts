import { isCount, isRecord } from "../common/json.js";
import { dataIn, withData } from "../lease/tenure-data.js";
import type { Entry } from "./core-client.js";

/** A participant asks the holder for the resource. */
export interface Asked {
  readonly by: string;
  /** The lease must not be renewed. */
  readonly broken: boolean;
}

/**
 * The value of a held resource's key: JSON, so that people can read it with the core's own tools. It includes
 * a request to release, which is deleted with the key, changed by comparison like the rest, and costs nothing
 * while there is none.
 */
export interface HolderRecord {
  /** The holder's name and incarnation. */
  readonly holder: string;
  /** The holder's label. */
  readonly label: string;
  /** Unique for each attempt: the client that finds its own nonce created the key. */
  readonly nonce: string;
  /** The granted TTL in seconds: no renewal exceeds it. */
  readonly seconds: number;
  /** The spread of waiters' attempts after a release, ms (`contention-backoff.ts`). */
  readonly spreadMs: number;
  /** Data of the tenure that others may read, as JSON. */
  readonly data?: string | undefined;
  readonly asked?: Asked | undefined;
  /** The number of handovers by handle since the key was created. Default 0. */
  readonly attached?: number | undefined;
  /** The pass for a detached lease: a process that has it may attach the lease. */
  readonly detached?: string | undefined;
}

/**
 * The fencing token. A handover keeps the create revision and raises the core's revision by at least one, so
 * the token is greater than before, and smaller than that of a key created later.
 */
export function tokenOf(entry: Pick<Entry, "createRevision">, record: HolderRecord | undefined): bigint {
  return entry.createRevision + BigInt(record?.attached ?? 0);
}

export function encodeRecord(record: HolderRecord): string {
  const { data, ...others } = record;
  return withData(JSON.stringify(others), data);
}

/** Returns undefined for values that Leasehold did not write. */
export function decodeRecord(text: string): HolderRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { holder, label, nonce, seconds, spreadMs, data, asked, attached, detached } = value;
  if (typeof holder !== "string" || typeof label !== "string" || typeof nonce !== "string") return undefined;
  if (!isAmount(seconds) || !isAmount(spreadMs)) return undefined;
  const wish = askedOf(asked);
  const told = dataIn(data);
  return {
    holder,
    label,
    nonce,
    seconds,
    spreadMs,
    ...(told !== undefined && { data: told }),
    ...(wish !== undefined && { asked: wish }),
    ...(isCount(attached) && { attached }),
    ...(typeof detached === "string" && { detached }),
  };
}

function askedOf(value: unknown): Asked | undefined {
  if (!isRecord(value)) return undefined;
  const { by, broken } = value;
  return typeof by === "string" ? { by, broken: broken === true } : undefined;
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}
