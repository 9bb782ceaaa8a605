import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Action, base64 } from "./action.js";
import type { Choices } from "./choices.js";

const keys = ["k0", "k1", "k2", "k3", "k4", "k5"] as const;

const allKeys = { key: base64("k0"), rangeEnd: base64("l") };

/** Ids that clients choose, and one that the server chooses. */
const leaseIds = ["1", "2", "3", "4", "@granted0"] as const;

/** Four of them together need two messages, or two parts of one. */
const largeValue = "@large700000";

/**
 * Requests for keys, leases and watches. There are few keys and leases, so that requests interact, and now
 * and then one must be refused. The generator's idea of the server's state is roughly right, so that most of
 * what it asks for exists.
 */
export class RandomRequests {
  readonly #choices: Choices;
  /** Some sequences have values that fill a message. */
  readonly hasLarge: boolean;
  #revision = 0;
  #compacted = 0;
  readonly #granted = new Set<string>();

  constructor(choices: Choices) {
    this.#choices = choices;
    this.hasLarge = choices.chance(0.03);
  }

  /** Leases and keys for what follows. */
  *beginning(): Generator<Action> {
    for (const _ of this.#choices.several(0, 2, () => 0)) yield this.#grant();
    for (const key of keys)
      if (this.#choices.chance(this.hasLarge ? 0.9 : 0.6)) {
        this.#revision += 1;
        yield this.#kv("Put", {
          key: base64(key),
          value: this.#value(),
          lease: this.#choices.chance(0.3) ? this.#grantedLease() : undefined,
        });
      }
  }

  next(): Action {
    // With previous values, one revision is more than a message of a watch.
    if (this.hasLarge && this.#choices.chance(0.15)) return this.#kv("DeleteRange", this.#counted(allKeys));
    return this.#choices.weighted([
      [28, () => this.#kv("Put", this.#counted(this.#put()))],
      [25, () => this.#kv("Range", this.#range())],
      [8, () => this.#kv("DeleteRange", this.#counted(this.#deletion()))],
      [19, () => this.#kv("Txn", this.#counted(this.#txn(0)))],
      [4, () => this.#kv("Compact", this.#compaction())],
      [16, () => this.#lease()],
    ]);
  }

  watch(): Action {
    const { chance } = bound(this.#choices);
    if (this.hasLarge && chance(0.5)) {
      const startRevision = chance(0.3) ? this.#pastRevision() : undefined;
      const request = given({ ...allKeys, startRevision, prevKv: true, fragment: chance(0.7) });
      return { service: "Watch", method: "create", request };
    }
    const filters = this.#choices.pick([[], [], [], ["NOPUT"], ["NODELETE"], ["NOPUT", "NODELETE"]]);
    const request = given({
      ...(chance(0.5) ? allKeys : this.#keys()),
      startRevision: chance(0.4) ? undefined : this.#pastRevision(),
      watchId: chance(0.1) ? `${this.#choices.below(4)}` : undefined,
      prevKv: chance(0.5),
      filters: filters.length > 0 ? filters : undefined,
      fragment: chance(0.3),
    });
    return { service: "Watch", method: "create", request };
  }

  #kv(method: string, request: Fields): Action {
    return { service: "KV", method, request: given(request) };
  }

  #counted(request: Fields): Fields {
    if (this.#choices.chance(0.7)) this.#revision += 1;
    return request;
  }

  #lease(): Action {
    const of = (method: string, request: Fields): Action => ({
      service: "Lease",
      method,
      request: given(request),
    });
    return this.#choices.weighted([
      [6, () => this.#grant()],
      [3, () => this.#revocation()],
      [4, () => of("LeaseTimeToLive", { ID: this.#leaseId(), keys: this.#choices.chance(0.7) })],
      [3, () => of("LeaseKeepAlive", { ID: this.#leaseId() })],
      [2, () => of("LeaseLeases", {})],
    ]);
  }

  #grant(): Action {
    const ID = this.#choices.pick(leaseIds);
    const TTL = this.#choices.pick(["600", "600", "600", "600", "1000", "9000000001"]);
    if (TTL !== "9000000001") this.#granted.add(ID);
    // The server chooses an id, and the first one's name is known.
    const asked = ID.startsWith("@") ? undefined : ID;
    return { service: "Lease", method: "LeaseGrant", request: given({ ID: asked, TTL }) };
  }

  #revocation(): Action {
    const ID = this.#leaseId();
    this.#granted.delete(ID);
    return { service: "Lease", method: "LeaseRevoke", request: { ID } };
  }

  /** A lease that is granted for a moment, with keys attached: all of that is gone when the action ends. */
  runOut(): Action {
    const request = { ID: "5", TTL: "1", keys: this.#choices.several(1, 3, () => this.#key()) };
    this.#revision += 2;
    return { service: "Lease", method: "runOut", request };
  }

  #put(): Fields {
    const { chance } = bound(this.#choices);
    const ignoreValue = chance(0.1);
    const ignoreLease = chance(0.1);
    const isOdd = chance(0.1);
    return {
      key: this.#key(),
      value: ignoreValue !== isOdd ? undefined : this.#value(),
      lease: chance(0.3) && ignoreLease === isOdd ? this.#leaseId() : undefined,
      prevKv: chance(0.3),
      ignoreValue,
      ignoreLease,
    };
  }

  #value(): string {
    if (this.hasLarge && this.#choices.chance(0.6)) return largeValue;
    return base64(`v${this.#choices.below(5)}`);
  }

  #range(): Fields {
    const { chance, pick } = bound(this.#choices);
    // Some requests list all keys, so that there is something to sort and to limit.
    const isList = chance(0.3);
    return {
      ...(isList ? allKeys : this.#keys()),
      limit: chance(isList ? 0.6 : 0.3) ? `${this.#choices.below(4)}` : undefined,
      revision: chance(0.3) ? this.#someRevision() : undefined,
      sortOrder: chance(0.5) ? pick(["ASCEND", "DESCEND"]) : undefined,
      sortTarget: chance(0.5) ? pick(["VERSION", "CREATE", "MOD", "VALUE"]) : undefined,
      serializable: chance(0.2),
      keysOnly: chance(0.2),
      countOnly: chance(0.1),
      ...this.#bounds(),
    };
  }

  #bounds(): Fields {
    const bounds = ["minModRevision", "maxModRevision", "minCreateRevision", "maxCreateRevision"];
    const chosen = bounds.filter(() => this.#choices.chance(0.1));
    return Object.fromEntries(chosen.map((name) => [name, this.#pastRevision()]));
  }

  #deletion(): Fields {
    return { ...this.#keys(), prevKv: this.#choices.chance(0.5) };
  }

  #compaction(): Fields {
    const physical = this.#choices.chance(0.5);
    if (this.#choices.chance(0.3)) return { revision: this.#someRevision(), physical };
    this.#compacted += this.#choices.below(this.#revision - this.#compacted + 1);
    return { revision: `${this.#compacted}`, physical };
  }

  #txn(depth: number): Fields {
    // Mostly each write of a transaction has its own key: otherwise the transaction is refused.
    const first = this.#choices.chance(0.8) ? this.#choices.below(keys.length) : undefined;
    const keyAt = (at: number) => (first === undefined ? undefined : keys[(first + at) % keys.length]);
    const operations = (least: number) =>
      this.#choices.several(least, 3, (at) => this.#operation(depth, keyAt(at)));
    return {
      compare: this.#choices.several(0, 2, () => this.#comparison()),
      success: operations(1),
      failure: operations(0),
    };
  }

  #operation(depth: number, key: string | undefined): JsonObject {
    const own = key === undefined ? {} : { key: base64(key) };
    const point = key === undefined ? {} : { ...own, rangeEnd: undefined };
    return this.#choices.weighted<JsonObject>([
      [38, () => ({ requestPut: given({ ...this.#put(), ...own }) })],
      [28, () => ({ requestRange: given(this.#range()) })],
      [16, () => ({ requestDeleteRange: given({ ...this.#deletion(), ...point }) })],
      [depth > 1 ? 0 : 18, () => ({ requestTxn: given(this.#txn(depth + 1)) })],
    ]);
  }

  #comparison(): JsonObject {
    const { pick } = bound(this.#choices);
    const key = this.#key();
    const number = `${this.#choices.below(4)}`;
    const [target, field, value] = pick([
      ["VERSION", "version", number],
      ["CREATE", "createRevision", this.#pastRevision()],
      ["MOD", "modRevision", this.#pastRevision()],
      ["VALUE", "value", base64(`v${number}`)],
      ["LEASE", "lease", pick(leaseIds)],
    ]);
    const rangeEnd = this.#choices.chance(0.2) ? this.#end(key) : undefined;
    const result = pick(["EQUAL", "GREATER", "LESS", "NOT_EQUAL"]);
    return given({ key, rangeEnd, target, result, [field!]: value });
  }

  #keys(): Fields {
    const key = this.#key();
    return { key, rangeEnd: this.#choices.chance(0.45) ? undefined : this.#end(key) };
  }

  #end(key: string): string {
    return this.#choices.weighted([
      [3, () => base64("\0")],
      [4, () => base64("l")],
      [3, () => this.#key()],
      [1, () => Buffer.concat([Buffer.from(key, "base64"), Buffer.of(255)]).toString("base64")],
    ]);
  }

  #key(): string {
    return this.#choices.chance(0.01) ? "" : base64(this.#choices.pick(keys));
  }

  #leaseId(): string {
    return this.#choices.chance(0.8) ? (this.#grantedLease() ?? "1") : this.#choices.pick(leaseIds);
  }

  #grantedLease(): string | undefined {
    return this.#granted.size === 0 ? undefined : this.#choices.pick([...this.#granted]);
  }

  /** Now and then a revision that was compacted, or a future one. */
  #someRevision(): string {
    return this.#choices.weighted([
      [1, () => `${this.#revision + 1 + this.#choices.below(2)}`],
      [9, () => this.#pastRevision()],
    ]);
  }

  #pastRevision(): string {
    if (this.#choices.chance(0.1)) return `${this.#choices.below(this.#revision + 4) - 3}`;
    return `${Math.max(this.#compacted - 1, this.#revision - this.#choices.below(6))}`;
  }
}

type Fields = Readonly<Record<string, JsonValue | undefined>>;

/** Without what is as if it were not there. */
export function given(fields: Fields): JsonObject {
  const isThere = (value: JsonValue | undefined) =>
    value !== undefined && value !== false && value !== "" && value !== "0";
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isThere(value))) as JsonObject;
}

function bound(choices: Choices) {
  return {
    chance: (share: number) => choices.chance(share),
    pick: <T>(values: readonly T[]) => choices.pick(values),
  };
}
