import { LeaseholdError } from "./errors.js";
import type { Duration } from "./types.js";

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

type Unit = keyof typeof unitMs;

const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;

/** Caches the last parsed text, as most programs pass the same one in every call. */
let last: { readonly text: string; readonly ms: number } = { text: "0ms", ms: 0 };

/**
 * About 285,000 years. Sums of longer durations would not be exact, and a longer duration is certainly a
 * mistake.
 */
export const durationMsMax = Number.MAX_SAFE_INTEGER;

const tooLong = `the longest is ${durationMsMax}ms`;

/** The maximum number of characters of a rejected input that an error message quotes. */
const quotedCharactersMax = 60;

/**
 * Milliseconds of a duration: a number of milliseconds, or one number and one unit (`ms`, `s`, `m`, `h`).
 *
 * @param what names the setting in the error message.
 * @param bounds `infinity: true` permits the number `Infinity`, which is otherwise refused.
 * @throws LeaseholdError `INVALID_DURATION` for anything else: NaN, negative numbers, unknown units, no unit
 * in text, and more than {@link durationMsMax}.
 * @example parseDuration("1.5s") // 1500
 */
export function parseDuration(
  input: Duration,
  what = "duration",
  bounds: { readonly infinity?: boolean } = {},
): number {
  if (typeof input === "number") {
    if (input >= 0 && (input <= durationMsMax || (input === Infinity && bounds.infinity === true)))
      return input;
    throw invalid(String(input), what, input < Infinity && input > 0 ? tooLong : undefined);
  }
  if (input === last.text) return last.ms;
  const match = typeof input === "string" ? pattern.exec(input) : null;
  if (match === null) {
    // Text without a unit, from a command line, a URL or a file, is ambiguous and therefore refused.
    const unitless = typeof input === "string" && /^\d+(?:\.\d+)?$/.test(input);
    throw invalid(
      quote(input),
      what,
      unitless ? `it has no unit; write "${input}ms" or "${input}s"` : undefined,
    );
  }
  // Rounded to a nanosecond: 1.001 * 1000 is 1000.9999999999999.
  const ms = Math.round(Number(match[1]) * unitMs[match[2] as Unit] * 1e6) / 1e6;
  if (ms > durationMsMax) throw invalid(quote(input), what, tooLong);
  last = { text: input, ms };
  return ms;
}

/**
 * Checks the argument of `assertHeld`: the milliseconds that must remain. It allocates nothing, since it runs
 * on every check of a lease.
 *
 * @throws LeaseholdError `INVALID_DURATION` for anything but a number of 0 or more
 */
export function checkLeastMs(atLeastMs: number): void {
  if (typeof atLeastMs === "number" && atLeastMs >= 0) return;
  throw invalid(quote(atLeastMs), "assertHeld", "give a number of milliseconds, 0 or more");
}

/** A duration in the largest unit that keeps it short: `"15s"`, `"1.5s"`, `"2h"`. For messages. */
export function formatDuration(ms: number): string {
  if (ms === Infinity) return "forever";
  if (ms < 1_000) return `${round(ms)}ms`;
  for (const unit of ["h", "m"] as const) {
    if (ms % unitMs[unit] === 0) return `${ms / unitMs[unit]}${unit}`;
  }
  return `${round(ms / 1_000)}s`;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

function invalid(
  quoted: string,
  what: string,
  why = 'give a number of milliseconds or text such as "500ms", "15s", "1m", "2h"',
): LeaseholdError {
  return new LeaseholdError("INVALID_DURATION", `${what}: ${quoted} is not a duration; ${why}`);
}

function quote(input: unknown): string {
  const text = typeof input === "string" ? JSON.stringify(input) : String(input);
  return text.length > quotedCharactersMax ? `${text.slice(0, quotedCharactersMax)}…` : text;
}
