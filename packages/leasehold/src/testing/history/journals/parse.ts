import { isCount, isRecord } from "../../../common/json.js";
import { historyVersion } from "./format.js";
import type { HistoryEntry, HistoryHeader, TenureId, TenureMode, Nanoseconds } from "./format.js";

/** Creates the error that refuses a line, with the line's position. */
export type Refuse = (problem: string) => Error;

/** Throws the error of `refuse` if the line is not a header of this version. */
export function parseHeader(line: string, refuse: Refuse): HistoryHeader {
  const fields = new Fields(line, refuse);
  if (fields.get("event") !== "history")
    throw refuse('no header: the first line of a journal is {"event":"history",…}');
  const version = fields.get("version");
  if (version !== historyVersion)
    throw refuse(`version ${JSON.stringify(version)} of the format; this build reads ${historyVersion}`);
  const [run, clock, by] = [fields.text("run"), fields.text("clock"), fields.text("by")];
  return { event: "history", version: historyVersion, run, clock, by };
}

/** Throws the error of `refuse` if the line is not an entry. Unknown fields are ignored. */
export function parseEntry(line: string, refuse: Refuse): HistoryEntry {
  const fields = new Fields(line, refuse);
  const event = fields.text("event");
  switch (event) {
    case "sample": {
      const [ok, remainingMs] = [fields.flag("ok"), fields.number("remainingMs")];
      return { event, ...fields.span(), ok, remainingMs, ...fields.tenureId() };
    }
    case "op": {
      const result = fields.oneOf("result", ["accepted", "refused", "unknown"]);
      return { event, ...fields.span(), result, ...fields.tenureId() };
    }
    case "release":
    case "lost":
      return { event, m: fields.digits("m"), ...fields.tenureId() };
    case "accepted":
    case "refused": {
      const [resource, token] = [fields.text("resource"), fields.digits("token")];
      const order = fields.wholeNumber("order");
      return { event, m: fields.digits("m"), resource, token, order, ...fields.mode() };
    }
    case "boot":
    case "ready":
    case "alarm":
    case "killed":
    case "stopped":
    case "continued":
      return { event, m: fields.digits("m"), pid: fields.wholeNumber("pid") };
    case "trouble": {
      const [code, message] = [fields.text("code"), fields.text("message")];
      return { event, m: fields.digits("m"), pid: fields.wholeNumber("pid"), code, message };
    }
    case "fault": {
      const phase = fields.oneOf("phase", ["begin", "end"]);
      const [kind, target] = [fields.text("kind"), fields.text("target")];
      return { event, m: fields.digits("m"), phase, kind, target };
    }
    case "history":
      throw refuse("a second header: each process writes a journal of its own");
    default:
      throw refuse(`no event is called ${JSON.stringify(event)}`);
  }
}

/** The fields of one line, read by name and type. */
class Fields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #refuse: Refuse;

  constructor(line: string, refuse: Refuse) {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw refuse("not a line of JSON");
    }
    if (!isRecord(value)) throw refuse("not an object");
    this.#fields = value;
    this.#refuse = refuse;
  }

  get(name: string): unknown {
    return this.#fields[name];
  }

  text(name: string): string {
    return this.#typed(name, isText, "a text");
  }

  flag(name: string): boolean {
    return this.#typed(name, (value) => typeof value === "boolean", "true or false");
  }

  number(name: string): number {
    const isFinite = (value: unknown): value is number => Number.isFinite(value);
    return this.#typed(name, isFinite, "a number");
  }

  wholeNumber(name: string): number {
    return this.#typed(name, isCount, "a whole number");
  }

  digits(name: string): bigint {
    const isDigits = (value: unknown): value is string => isText(value) && /^\d{1,32}$/.test(value);
    return BigInt(this.#typed(name, isDigits, "a string of digits"));
  }

  oneOf<Word extends string>(name: string, words: readonly Word[]): Word {
    const value = this.#fields[name];
    const word = words.find((one) => one === value);
    if (word === undefined) throw this.#refuse(`${name} is not one of ${words.join(", ")}`);
    return word;
  }

  #typed<Value>(name: string, fits: (value: unknown) => value is Value, what: string): Value {
    const value = this.#fields[name];
    if (!fits(value)) throw this.#refuse(`${name} is not ${what}`);
    return value;
  }

  span(): { m1: Nanoseconds; m2: Nanoseconds } {
    const [m1, m2] = [this.digits("m1"), this.digits("m2")];
    if (m2 < m1) throw this.#refuse("m2 is before m1");
    return { m1, m2 };
  }

  mode(): { readonly mode?: TenureMode } {
    if (this.#fields["mode"] === undefined) return {};
    return { mode: this.oneOf("mode", ["shared", "exclusive"]) };
  }

  #pool(): Pick<TenureId, "pool" | "limit"> {
    if (this.#fields["pool"] === undefined && this.#fields["limit"] === undefined) return {};
    const [pool, limit] = [this.text("pool"), this.wholeNumber("limit")];
    if (limit < 1) throw this.#refuse("limit is below 1");
    return { pool, limit };
  }

  tenureId(): TenureId {
    const [pid, incarnation] = [this.wholeNumber("pid"), this.text("incarnation")];
    const [resource, token] = [this.text("resource"), this.digits("token")];
    return { pid, incarnation, resource, token, ...this.mode(), ...this.#pool() };
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
