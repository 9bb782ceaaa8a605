import type { Protocol } from "../../delta/effects.js";
import { encodeEnvelope, sameBytes } from "../../delta/record/envelope.js";
import type { FleaseSettings } from "../protocol/settings.js";
import { LeaseholdError } from "../../lease/errors.js";
import { settingsRegister } from "./registers.js";
import { ask, cellsIn } from "./ask.js";

const settingsFormat = "leasehold-flease-settings/1";

const decoder = new TextDecoder();

/**
 * Ensures that all users of a farm have equal settings (repair F18). Peers compare settings when they
 * connect. On stores the first user writes its settings into each store, once, and the others read them
 * before anything else. A store with other settings is refused.
 */
export class Agreement {
  readonly #stores: number;
  readonly #timeoutMs: number;
  readonly #envelope: Uint8Array;
  /** The marker under which each store's settings were verified. */
  readonly #agreed: (string | undefined)[] = [];

  constructor(settings: FleaseSettings, stores: number) {
    const { maxClockSkewMs, ttlMaxMs, clockRateError, rpcTimeoutMs } = settings;
    this.#stores = stores;
    this.#timeoutMs = rpcTimeoutMs;
    this.#envelope = encodeEnvelope(
      settingsFormat,
      JSON.stringify({ maxClockSkewMs, ttlMaxMs, clockRateError, stores }),
    );
  }

  /** Why the store with this marker must not be used; `undefined` if it may be. */
  *at(store: number, id: string): Protocol<LeaseholdError | undefined> {
    if (this.#agreed[store] === id) return undefined;
    const at = { stores: this.#stores, timeoutMs: this.#timeoutMs };
    const register = settingsRegister;
    let cells = cellsIn(yield* ask(at, store, { op: "read", register }));
    if (cells instanceof LeaseholdError) return cells;
    if (cells.length === 0) {
      const replace = { op: "replace", register, id, expected: undefined, next: this.#envelope } as const;
      const answer = yield* ask(at, store, replace);
      cells = answer?.kind === "written" ? [this.#envelope] : cellsIn(answer);
      if (cells instanceof LeaseholdError) return cells;
    }
    if (cells.length !== 1 || !sameBytes(cells[0]!, this.#envelope)) {
      const found = cells.map((cell) => decoder.decode(cell)).join(" ");
      return new LeaseholdError(
        "CONFIG_MISMATCH",
        `a store is used with other settings: it says ${found}, and here they are ${decoder.decode(this.#envelope)}`,
      );
    }
    this.#agreed[store] = id;
    return undefined;
  }
}
