import type { Detachment } from "./provider.js";
import { LeaseholdError } from "./errors.js";
import { isResourceName, resourceNameBytesMax } from "./resource-name.js";
import type { Guarantees } from "./types.js";

/** The first word of every handle: the format and its version. */
const format = "lh1";

/**
 * The length limit of a handle: each byte of a name takes at most three characters, and everything else is
 * bounded.
 */
const handleCharactersMax = 3 * resourceNameBytesMax + 128;

const shape = /^lh1\.([a-z]{1,16})\.(\d{1,30})\.(\d{1,16})\.([0-9a-f]{16})\.([\w.%~-]+)$/;

/** The content of a handle. */
export interface Handle extends Detachment {
  readonly ground: Guarantees["ground"];
  readonly resource: string;
  /** The end of the detached lease, by the system clock of the program that held it. */
  readonly endsWallMs: number;
}

/**
 * The handle as one word of letters, digits and `._~%-`: it needs no quotes in a shell, an environment
 * variable, JSON or a URL.
 */
export function handleText({ ground, token, endsWallMs, pass, resource }: Handle): string {
  const name = encodeURIComponent(resource).replace(/[!'()*]/g, escaped);
  return `${format}.${ground}.${token}.${Math.floor(endsWallMs)}.${pass}.${name}`;
}

/**
 * Parses a handle. Refuses any text that {@link handleText} would not produce.
 *
 * @throws LeaseholdError `INVALID_HANDLE`
 */
export function handleOf(text: string, ground: Guarantees["ground"]): Handle {
  const parts = typeof text === "string" && text.length <= handleCharactersMax ? shape.exec(text) : null;
  if (parts === null) throw new LeaseholdError("INVALID_HANDLE");
  const resource = decoded(parts[5]!);
  if (resource === undefined || !isResourceName(resource)) throw new LeaseholdError("INVALID_HANDLE");
  if (parts[1] !== ground) {
    const other = `the handle is of a lease on the ground "${parts[1]}", and these leases are on "${ground}"`;
    throw new LeaseholdError("INVALID_HANDLE", other);
  }
  const [token, endsWallMs, pass] = [BigInt(parts[2]!), Number(parts[3]), parts[4]!];
  const handle = { ground, token, endsWallMs, pass, resource };
  if (handleText(handle) !== text) throw new LeaseholdError("INVALID_HANDLE");
  return handle;
}

/** @throws LeaseholdError `UNSUPPORTED` if the ground has no handles */
export function assertAttachable(guarantees: Guarantees): void {
  if (guarantees.attach) return;
  throw new LeaseholdError("UNSUPPORTED", "on this ground a detached lease cannot be attached");
}

/** The error for a handle that can no longer be attached. */
export function spent(resource: string, why: string): LeaseholdError {
  return new LeaseholdError(
    "HANDLE_SPENT",
    `the detached lease on ${JSON.stringify(resource)} cannot be attached: ${why}`,
  );
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
