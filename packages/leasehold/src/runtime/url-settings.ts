import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";

/** The settings in the query of an address. Each is removed by its name; `query` has the rest. */
export class UrlSettings {
  readonly query: URLSearchParams;

  constructor(query: string | undefined) {
    this.query = new URLSearchParams(query);
  }

  /** @throws LeaseholdError `INVALID_URL` if the setting is given more than once. */
  take(name: string): string | undefined {
    const [value, ...others] = this.query.getAll(name);
    if (others.length > 0) throw new LeaseholdError("INVALID_URL", `${name} is given more than once`);
    this.query.delete(name);
    return value;
  }

  /** In milliseconds. @throws LeaseholdError `INVALID_URL`, `INVALID_DURATION` */
  takeDuration(name: string): number | undefined {
    const text = this.take(name);
    return text === undefined ? undefined : parseDuration(text, name);
  }

  /** `NaN` if the value is not a number. @throws LeaseholdError `INVALID_URL` */
  takeNumber(name: string): number | undefined {
    const text = this.take(name);
    return text === undefined ? undefined : Number(text.trim() || "NaN");
  }
}

/**
 * The value that several addresses agree on. Addresses without the setting agree with any value.
 *
 * @throws LeaseholdError `INVALID_URL`
 */
export function agreedOn<T>(name: string, values: readonly (T | undefined)[]): T | undefined {
  const given = new Set(values.filter((value) => value !== undefined));
  if (given.size > 1)
    throw new LeaseholdError("INVALID_URL", `the addresses contradict each other on ${name}`);
  return [...given][0];
}
