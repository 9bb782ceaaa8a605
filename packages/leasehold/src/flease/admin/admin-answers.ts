import { LeaseholdError } from "../../lease/errors.js";
import { isRecord, recordOrEmpty, textOrEmpty } from "../../common/json.js";
import { dataBytesMax } from "../../lease/tenure-data.js";
import type { MemberView } from "../../lease/types.js";
import type { Acceptor } from "../protocol/acceptor.js";
import type { Entry } from "../protocol/entries/entry.js";
import type { Reading } from "../protocol/clock.js";
import type { LeaseState } from "../protocol/message.js";
import { leftMs } from "./hints.js";
import type { ListedLease, ListPage } from "./listing.js";
import type { FeedPage } from "./watch-feed.js";

/**
 * Members' answers to admin RPCs, encoded and decoded. The decoder checks every field: a member may run
 * another version, and an invalid answer must harm nothing but itself.
 */

export type AdminParams = ReturnType<typeof adminParamsOf>;

/** Parameters of a call, untrusted: empty where missing. */
export function adminParamsOf(given: unknown) {
  const { resource, owner, prefix, by, to, session, page, view, broken, label, token, data } =
    recordOrEmpty(given);
  return {
    resource: textOrEmpty(resource),
    owner: textOrEmpty(owner),
    prefix: textOrEmpty(prefix),
    by: textOrEmpty(by),
    to: textOrEmpty(to),
    session: Number(session),
    page: Number(page),
    view: Number(view),
    broken: broken === true,
    token: Number(token),
    label,
    data,
  } as const;
}

/** A member's view of one resource, as JSON on the wire. */
export interface ResourceAnswer {
  readonly state: MemberView["state"];
  readonly readyInMs: number;
  readonly promised: number;
  readonly owner: string;
  readonly token: number;
  readonly until: number;
  /** State of the lease: `none`, `live`, `over`, `released`. */
  readonly lease: keyof typeof LeaseState;
  readonly barred: string;
  readonly waiting: number;
  readonly label?: string;
  readonly data?: string;
}

/** An acceptor's view of a resource, without facts that only the participant running it knows. */
export function answerOn(acceptor: Acceptor, resource: string, now: Reading): ResourceAnswer {
  const readyInMs = Math.ceil(acceptor.recoveryWaitLeftMs(now));
  const unknown = { owner: "", token: 0, until: 0, lease: "none", barred: "", waiting: 0 } as const;
  // A recovering acceptor knows too little to report (I15).
  if (readyInMs > 0 || !acceptor.ready) return { ...unknown, state: "recovering", readyInMs, promised: 0 };
  const entry = acceptor.entry(resource);
  const isLive = entry !== undefined && stateName(acceptor, entry, now) === "live";
  const behindMs = Math.ceil(acceptor.behindMs(resource, now));
  // No participant can acquire it, so it is not free either; its holder can keep renewing.
  if (behindMs > 0 && !isLive) return { ...unknown, state: "recovering", readyInMs: behindMs, promised: 0 };
  if (entry === undefined) return { ...unknown, state: "ready", readyInMs: 0, promised: acceptor.floor };
  return {
    state: "ready",
    readyInMs: 0,
    promised: entry.promisedNumber,
    owner: entry.leaseOwner,
    token: entry.token,
    until: entry.leaseExpiresWallMs,
    lease: stateName(acceptor, entry, now),
    barred: entry.barredOwner,
    waiting: 0,
  };
}

function stateName(acceptor: Acceptor, entry: Readonly<Entry>, now: Reading): ResourceAnswer["lease"] {
  if (entry.leaseOwner === "") return "none";
  if (entry.released) return "released";
  return acceptor.isOver(entry, now) ? "over" : "live";
}

/** An answer to `explain` in its public form, or the reason why there is none. */
export function memberAnswerFrom(
  id: string,
  address: string,
  value: unknown,
  error: unknown,
  { wall, ttlMaxMs }: { readonly wall: number; readonly ttlMaxMs: number },
): { view: MemberView; label: string | undefined; data: string | undefined } {
  const told = error === undefined && isRecord(value) ? value : undefined;
  if (told === undefined) {
    const reason = error instanceof Error ? error.message : "its answer cannot be understood";
    return { view: { id, address, state: "unreachable", reason }, label: undefined, data: undefined };
  }
  const state = told["state"] === "ready" || told["state"] === "clock-fault" ? told["state"] : "recovering";
  const holder = textOrEmpty(told["owner"]);
  const lease = told["lease"];
  const barred = textOrEmpty(told["barred"]);
  const view: MemberView = {
    id,
    address,
    state,
    ...(state === "recovering" && { readyInMs: number(told["readyInMs"]) }),
    ...(state === "ready" && { promised: whole(told["promised"]), waiting: number(told["waiting"]) }),
    ...(barred !== "" && { barred }),
    ...((lease === "live" || lease === "over" || lease === "released") && {
      lease: {
        holder,
        token: whole(told["token"]),
        state: lease,
        remainingMs: lease === "live" ? leftMs(number(told["until"]), wall, ttlMaxMs) : 0,
      },
    }),
  };
  return { view, label: textIn(told["label"]), data: dataTextIn(told["data"]) };
}

/** @throws LeaseholdError for an invalid list. */
export function listFrom(value: unknown): ListPage {
  const page = recordOrEmpty(value);
  if (!Array.isArray(page["held"]))
    throw new LeaseholdError("UNREACHABLE", "a member that recovers lists nothing");
  return { held: page["held"].map(leaseFrom), more: page["more"] === true };
}

/** @throws LeaseholdError for an invalid page. */
export function pageFrom(value: unknown): FeedPage {
  const page = recordOrEmpty(value);
  if (!Array.isArray(page["held"]) || !Array.isArray(page["free"]))
    throw new LeaseholdError("UNREACHABLE", "a recovering member does not answer this");
  const { held, more } = listFrom(page);
  return { held, free: page["free"].map(textOrEmpty), more, anew: page["anew"] === true };
}

function leaseFrom(value: unknown): ListedLease {
  const lease = recordOrEmpty(value);
  const label = textIn(lease["label"]);
  const data = dataTextIn(lease["data"]);
  return {
    resource: textOrEmpty(lease["resource"]),
    owner: textOrEmpty(lease["owner"]),
    number: number(lease["number"]),
    sequence: number(lease["sequence"]),
    until: number(lease["until"]),
    token: Number(whole(lease["token"])),
    ...(label !== undefined && { label }),
    ...(data !== undefined && { data }),
  };
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Oversized text is dropped; the reader parses its content. */
function dataTextIn(value: unknown): string | undefined {
  return typeof value === "string" && value.length <= dataBytesMax ? value : undefined;
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function whole(value: unknown): bigint {
  return Number.isSafeInteger(value) ? BigInt(value as number) : 0n;
}
