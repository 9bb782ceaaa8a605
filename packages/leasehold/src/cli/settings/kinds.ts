import { parseAddress } from "../../runtime/address.js";
import { isRecord } from "../../common/json.js";
import { parseDuration } from "../../lease/duration.js";

/** The greatest exit code. */
export const limitOfCode = 255;

/** The type of a setting's value. */
export type Kind =
  | { readonly type: "text" | "duration" | "fraction" | "flag" | "address" | "addresses" | "list" }
  /** A path is relative to the settings file that contains it. A `file` is read at the start. */
  | { readonly type: "file" | "path" }
  | { readonly type: "count"; readonly min: number; readonly max: number }
  | { readonly type: "choice"; readonly choices: readonly string[] };

/** A clock whose rate is off by half or more is useless. */
const fractionBelow = 0.5;

const addressHint = "host:port, such as 10.0.0.1:7400";

/** A description of the values that a kind allows. */
export function expectation(kind: Kind): string {
  switch (kind.type) {
    case "text":
      return "text";
    case "file":
    case "path":
      return "a path, as text";
    case "duration":
      return 'a duration, such as "500ms", "15s", "1m"';
    case "fraction":
      return `a number from 0 to below ${fractionBelow}`;
    case "flag":
      return "true or false";
    case "address":
      return addressHint;
    case "addresses":
      return `an object of ids, each with its ${addressHint}`;
    case "list":
      return "an address as text, or a list of them";
    case "count":
      return `a whole number from ${kind.min} to ${kind.max}`;
    case "choice":
      return kind.choices.join(" or ");
  }
}

/**
 * A value from a file as texts of a command line; several if the option is repeated.
 *
 * @returns `undefined` if it is of another type.
 */
export function textsOf(kind: Kind, value: unknown): readonly string[] | undefined {
  switch (kind.type) {
    case "flag":
      return typeof value === "boolean" ? [String(value)] : undefined;
    case "count":
    case "fraction":
      return typeof value === "number" ? [String(value)] : undefined;
    case "duration":
      return typeof value === "number" ? [`${value}ms`] : oneText(value);
    case "list":
      return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : oneText(value);
    case "addresses": {
      if (!isRecord(value)) return undefined;
      const entries = Object.entries(value);
      const isText = entries.every(([, each]) => typeof each === "string");
      return isText ? entries.map(([id, each]) => `${id}=${String(each)}`) : undefined;
    }
    default:
      return oneText(value);
  }
}

function oneText(value: unknown): readonly string[] | undefined {
  return typeof value === "string" ? [value] : undefined;
}

/** Why the text is not a value of this kind; `undefined` if it is. */
export function whyNot(kind: Kind, text: string): string | undefined {
  return isAllowed(kind, text) ? undefined : `${JSON.stringify(text)} is not ${expectation(kind)}`;
}

function isAllowed(kind: Kind, text: string): boolean {
  switch (kind.type) {
    case "duration":
      return succeeds(() => parseDuration(text));
    case "address":
      return succeeds(() => parseAddress(text));
    case "addresses": {
      const [, address] = /^[^=]+=(.+)$/.exec(text) ?? [];
      return address !== undefined && succeeds(() => parseAddress(address));
    }
    case "flag":
      return text === "true" || text === "false";
    case "count":
      return /^\d+$/.test(text) && Number(text) >= kind.min && Number(text) <= kind.max;
    case "fraction":
      return text.trim() !== "" && Number(text) >= 0 && Number(text) < fractionBelow;
    case "choice":
      return kind.choices.includes(text);
    default:
      return text !== "";
  }
}

function succeeds(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch {
    return false;
  }
}
