import { GatewayError } from "./errors.js";

interface KeyedCall<T> {
  /** The request as text, for comparison. */
  readonly asked: string;
  readonly value: T;
}

/** Calls by their clients' idempotency keys: a repeated call finds the result of the first. */
export class KeyedCalls<T> {
  readonly #calls = new Map<string, KeyedCall<T>>();
  readonly #max: number;

  /** @param max when there are more calls, the oldest is forgotten */
  constructor(max: number) {
    this.#max = max;
  }

  /** @throws GatewayError `KEY_REUSED` if the key belongs to a different request */
  find(key: string | undefined, asked: string): T | undefined {
    const known = key === undefined ? undefined : this.#calls.get(key);
    if (known !== undefined && known.asked !== asked) throw new GatewayError("KEY_REUSED");
    return known?.value;
  }

  /** As `find`, without comparing requests. */
  get(key: string): T | undefined {
    return this.#calls.get(key)?.value;
  }

  keep(key: string | undefined, asked: string, value: T): void {
    if (key === undefined) return;
    const [oldest] = this.#calls.keys();
    if (this.#calls.size >= this.#max && oldest !== undefined) this.#calls.delete(oldest);
    this.#calls.set(key, { asked, value });
  }

  forget(key: string | undefined): void {
    if (key !== undefined) this.#calls.delete(key);
  }
}
