import { isRecord, recordOrEmpty } from "../../common/json.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { KeptView, Membership, View, ViewNote } from "./view.js";
import { stampMax, viewNumberMax, votersOf } from "./view.js";
import { cellSizeMax, membersMax, whyNoMemberId } from "../protocol/settings.js";

/** A view as sent to members and clients, and stored in files: with the addresses of the members. */
export interface PublishedView extends ViewNote {
  readonly addresses: Readonly<Record<string, string>>;
}

/** A view as a member's file stores it. */
export interface FiledView extends KeptView {
  readonly addresses: Readonly<Record<string, string>>;
}

/** Whether a text is `host:port`. */
export type AddressCheck = (text: string) => boolean;

/** Encodes as JSON: maps become lists of pairs. */
export function writePublishedView({ view, barrier, settled, addresses }: PublishedView): object {
  return { view, barrier, settled: [...settled], addresses };
}

/**
 * Reads a view received from another participant.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH` if it isn't a view.
 */
export function readPublishedView(published: unknown, isAddress: AddressCheck): PublishedView {
  if (!isRecord(published)) return misfit();
  const { barrier, settled, addresses } = published;
  const view = readView(published["view"]);
  if (!isNumber(barrier) || !isRecord(addresses)) return misfit();
  const former = new Set(view.before?.members);
  const known = Object.fromEntries(
    votersOf(view).map((id) => {
      const address = addresses[id];
      return typeof address === "string" && isAddress(address) ? [id, address] : misfit();
    }),
  );
  return { view, barrier, settled: readSettled(settled, former), addresses: known };
}

/** The format of a member's file. Files of early builds don't name it. */
const fileFormat = 1;

/** Encodes a view for its member's file, as JSON. */
export function writeFiledView({ votesFrom, ...kept }: FiledView): object {
  return { format: fileFormat, ...writePublishedView({ ...kept, settled: new Map() }), votesFrom };
}

/**
 * Reads a member's file.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH` if it isn't a view; `VERSION_MISMATCH` for a file of a later
 *   version.
 */
export function readFiledView(value: unknown, isAddress: AddressCheck): FiledView {
  const { format = fileFormat } = recordOrEmpty(value);
  if (format !== fileFormat)
    throw new LeaseholdError(
      "VERSION_MISMATCH",
      `its format is ${JSON.stringify(format)}, of a later version of Leasehold; this version reads ${fileFormat}`,
    );
  const { view, barrier, addresses } = readPublishedView(value, isAddress);
  return { view, barrier, addresses, votesFrom: readVotesFrom(value) };
}

/** Keeps entries of former members only; no other entry is useful. */
function readSettled(pairs: unknown, former: ReadonlySet<string>): Map<string, number> {
  if (!Array.isArray(pairs)) return misfit();
  const tops = pairs.map((pair: unknown): [string, number] => {
    const [id, top] = Array.isArray(pair) ? (pair as unknown[]) : [];
    return typeof id === "string" && isNumber(top) ? [id, top] : misfit();
  });
  return new Map(tops.filter(([id]) => former.has(id)));
}

/**
 * A member's offer of its view: the view's number and stamp, and which members have left the previous view.
 */
export function writeViewOffer({ view: { number, stamp }, settled }: ViewNote): object {
  return { number, stamp, settled: [...settled] };
}

/** An offer of a view, as read by a participant in `own`. */
export interface ViewOffer {
  readonly number: number;
  /** Non-empty only if both participants are in the same view. */
  readonly settled: ReadonlyMap<string, number>;
}

/**
 * Decodes an offer; `undefined` for a whole view.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH` for anything else.
 */
export function readViewOffer(offer: unknown, own: View): ViewOffer | undefined {
  if (!isRecord(offer)) return misfit();
  if (offer["view"] !== undefined) return undefined;
  const { number, stamp, settled } = offer;
  if (!isNumber(number) || !isNumber(stamp)) return misfit();
  const former = new Set(stamp === own.stamp ? own.before?.members : []);
  return { number, settled: readSettled(settled, former) };
}

function readView(value: unknown): View {
  if (!isRecord(value)) return misfit();
  const { number, stamp, before } = value;
  if (!isNumber(number) || number > viewNumberMax || !isNumber(stamp)) return misfit();
  // A view that no other member can enter: this member could never leave it.
  if (stamp > stampMax)
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      `an early build wrote view ${number} with the stamp ${stamp}, which no message can carry, when this member began a change: put a member with another id in its place (leasehold member replace)`,
    );
  const former = before === undefined ? undefined : readMembership(before);
  return { number, stamp, ...readMembership(value), before: former };
}

function readMembership(value: unknown): Membership {
  if (!isRecord(value)) return misfit();
  const { members, cellSize } = value;
  if (!Array.isArray(members) || members.length === 0 || members.length > membersMax) return misfit();
  const ids = members.filter((id): id is string => typeof id === "string" && whyNoMemberId(id) === undefined);
  const most = Math.min(members.length, cellSizeMax);
  if (ids.length < members.length || !isNumber(cellSize) || cellSize < 1 || cellSize > most) return misfit();
  return { members: [...new Set(ids)].sort(), cellSize };
}

function readVotesFrom(value: unknown): number | undefined {
  const votesFrom = isRecord(value) ? value["votesFrom"] : undefined;
  return votesFrom === undefined || isNumber(votesFrom) ? votesFrom : misfit();
}

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function misfit(): never {
  throw new LeaseholdError("CONFIG_MISMATCH", "a description of the members cannot be read");
}
