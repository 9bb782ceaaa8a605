import { GatewayError } from "./errors.js";

interface KeyedCall<T> {
  /** The request as text, to compare. */
  readonly asked: string;
  readonly value: T;
}

/**
 * Calls by the idempotency keys that their clients gave them: one that is repeated finds what the first has
 * begun.
 */
export class KeyedCalls<T> {
  readonly #calls = new Map<string, KeyedCall<T>>();
  readonly #max: number;

  /** @param max calls beyond it make room by the oldest */
  constructor(max: number) {
    this.#max = max;
  }

  /** @throws GatewayError `KEY_REUSED` when the key came with another request */
  find(key: string | undefined, asked: string): T | undefined {
    const known = key === undefined ? undefined : this.#calls.get(key);
    if (known !== undefined && known.asked !== asked) throw new GatewayError("KEY_REUSED");
    return known?.value;
  }

  /** The same without the request. */
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
