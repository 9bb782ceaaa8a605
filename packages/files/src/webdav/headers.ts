import { Refusal } from "./refusal.js";

/** The longest duration of a lock, s. Clients refresh locks that they need for longer. */
export const lockSecondsMax = 600;

export type Depth = "0" | "1" | "infinity";

/** @throws Refusal 400 */
export function depthOf(header: string | undefined, otherwise: Depth): Depth {
  if (header === undefined) return otherwise;
  const depth = header.trim().toLowerCase();
  if (depth === "0" || depth === "1" || depth === "infinity") return depth;
  throw new Refusal(400, `Depth is 0, 1 or infinity, not ${JSON.stringify(header)}`);
}

/** The requested duration of a lock: the first proposal that can be parsed, s. */
export function lockSecondsOf(header: string | undefined): number {
  const seconds = /\bSecond-(\d{1,10})\b/i.exec(header ?? "")?.[1];
  return Math.max(1, Math.min(lockSecondsMax, seconds === undefined ? lockSecondsMax : Number(seconds)));
}

/** The last second that an HTTP date can express: its years have four digits. */
const secondsMax = 253_402_300_799;

/** Parses a time in seconds since 1970, with or without a fraction, to ms. */
export function secondsIn(text: string): number | undefined {
  const seconds = /^\d{1,12}(\.\d{1,9})?$/.test(text.trim()) ? Number(text) : NaN;
  return Math.floor(seconds) <= secondsMax ? Math.floor(seconds * 1_000) : undefined;
}

/**
 * The modification time of an upload, ms.
 * @throws Refusal 400
 */
export function modifiedMsOf(header: string | undefined): number | undefined {
  const ms = header === undefined ? undefined : secondsIn(header);
  if (header === undefined || ms !== undefined) return ms;
  throw new Refusal(400, `X-OC-Mtime is 0 to ${secondsMax} seconds, not ${JSON.stringify(header)}`);
}

/** Bytes from `start` to `end`, inclusive. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/**
 * The requested range of a content of this length. Undefined for all of it, which is also the answer to
 * several ranges and to units other than bytes (RFC 9110, 14.2).
 * @throws Refusal 416
 */
export function rangeOf(header: string | undefined, bytes: number): Range | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  const [first = "", last = ""] = match?.slice(1) ?? [];
  if (match === null || (first === "" && last === "")) return undefined;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const start = first === "" ? Math.max(0, bytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? bytes - 1 : Math.min(bytes - 1, Number(last));
  if (start > end) throw new Refusal(416, `the content has ${bytes} bytes`);
  return { start, end };
}

/** A condition in the header `If`: a lock or content must be present or absent. */
export interface Condition {
  readonly kind: "token" | "etag";
  readonly value: string;
  readonly not: boolean;
}

/**
 * A list of conditions, all of which must hold. `resource` is set if the list is about another resource than
 * the request's.
 */
export interface ConditionList {
  readonly resource: string | undefined;
  readonly conditions: readonly Condition[];
}

/** The longest `If`: a request needs the locks of one or two paths. */
const ifBytesMax = 4_096;

/**
 * The lists in the header `If` (RFC 4918, 10.4). The request may proceed if any of them holds.
 * @throws Refusal 400
 */
export function conditionsOf(header: string | undefined): readonly ConditionList[] {
  if (header === undefined) return [];
  const wrong = new Refusal(400, "the header If is not understood");
  if (header.length > ifBytesMax) throw wrong;
  const lists: ConditionList[] = [];
  let resource: string | undefined;
  let rest = header.trim();
  while (rest !== "") {
    const tag = /^<([^<>]+)>\s*/.exec(rest);
    if (tag !== null) {
      resource = tag[1];
      rest = rest.slice(tag[0].length);
    }
    const list = /^\(((?:[^()"]|"[^"]*")*)\)\s*/.exec(rest);
    if (list === null) throw wrong;
    rest = rest.slice(list[0].length);
    lists.push({ resource, conditions: conditionsIn(list[1]!, wrong) });
  }
  return lists;
}

function conditionsIn(text: string, wrong: Refusal): Condition[] {
  const conditions: Condition[] = [];
  let rest = text.trim();
  while (rest !== "") {
    const match = /^(not\s+)?(?:<([^<>]+)>|\[([^\]]+)\])\s*/i.exec(rest);
    if (match === null) throw wrong;
    const [whole, not, token, etag] = match;
    const value = token ?? etag!.trim();
    conditions.push({ kind: token === undefined ? "etag" : "token", value, not: not !== undefined });
    rest = rest.slice(whole.length);
  }
  if (conditions.length === 0) throw wrong;
  return conditions;
}

/** All lock tokens in the request. They authorize changes to the locked paths. */
export function tokensIn(lists: readonly ConditionList[]): ReadonlySet<string> {
  const all = lists.flatMap(({ conditions }) => conditions);
  return new Set(all.filter(({ kind, not }) => kind === "token" && !not).map(({ value }) => value));
}
