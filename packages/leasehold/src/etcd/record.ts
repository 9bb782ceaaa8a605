import { isCount, isRecord } from "../common/json.js";
import { dataIn, withData } from "../lease/tenure-data.js";
import type { Entry } from "./core-client.js";

/** Somebody wants the resource from its holder. */
export interface Asked {
  readonly by: string;
  /** It is not to be renewed any more. */
  readonly broken: boolean;
}

/**
 * What stands in the key of a resource that is held: JSON, so that people can read it with the core's own
 * tools. A wish that the holder give the resource back stands there, too: it goes with the key, is changed by
 * comparison like everything else, and costs nothing until there is one.
 */
export interface HolderRecord {
  /** Name and incarnation. */
  readonly holder: string;
  /** What the holder says of itself. */
  readonly label: string;
  /** Differs between any two attempts: a client that finds its own nonce has made the key. */
  readonly nonce: string;
  /** What the core granted, seconds: nobody renews for longer. */
  readonly seconds: number;
  /**
   * Over how long waiters spread their attempts when the resource is released, ms (`contention-backoff.ts`).
   */
  readonly spreadMs: number;
  /** What others are to read of the tenure, as JSON. */
  readonly data?: string | undefined;
  readonly asked?: Asked | undefined;
  /** How often the key was handed on by a handle since it was created. Default 0. */
  readonly attached?: number | undefined;
  /** Its holder has stopped and detached the lease: who has this pass may go on with it. */
  readonly detached?: string | undefined;
}

/**
 * The fencing token. A key that is handed on keeps the revision of its creation, and each time the core's
 * revision rises by one at least: so this is greater than the token before, and smaller than that of a key
 * created later.
 */
export function tokenOf(entry: Pick<Entry, "createRevision">, record: HolderRecord | undefined): bigint {
  return entry.createRevision + BigInt(record?.attached ?? 0);
}

export function encodeRecord(record: HolderRecord): string {
  const { data, ...others } = record;
  return withData(JSON.stringify(others), data);
}

/** Undefined for what Leasehold did not write. */
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
