import {
  RangeRequest_SortOrder as Order,
  RangeRequest_SortTarget as Target,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ClientRequest } from "@leasehold/core/inner/replica/types.js";
import { CoreError } from "@leasehold/core/inner/state/errors.js";
import type { Ranges } from "../checkers/ranges.js";
import type { CoreWorld, Outcome } from "../world/world.js";
import { bytes, range, removeAll, txn } from "../world/requests.js";

/** etcd's limit on the operations in a transaction. */
const putsPerRequest = 128;

const putsBeside = 24;

/** The prefix of all its keys. */
export const bulkPrefix = "b/";
const rangeEnd = bytes("b0");

/** Writes, reads and deletes many keys at a time. The server interleaves other requests between its turns. */
export class BulkClient {
  readonly #world: CoreWorld;
  readonly #ranges: Ranges;
  /** The next key to write. If it is past the last, all keys exist. */
  #next = 0;
  #count = 0;

  constructor(world: CoreWorld, ranges: Ranges) {
    this.#world = world;
    this.#ranges = ranges;
  }

  begin(): void {
    const { plan, random } = this.#world;
    if (this.#world.nowMs > plan.stableFromMs) return;
    const isFull = this.#next >= plan.bulkKeys;
    this.#world.after(isFull ? random.exponential(plan.thinkMs) : 0, () => this.#go(isFull));
  }

  #go(isFull: boolean): void {
    const { random } = this.#world;
    if (!isFull) this.#ask(this.#fill(), () => undefined);
    else if (random.chance(0.15)) {
      this.#next = 0;
      this.#ask(removeAll(bulkPrefix, rangeEnd), () => undefined);
    } else this.#read();
  }

  #fill(): ClientRequest {
    const first = this.#next;
    this.#next += putsPerRequest;
    return putAll(Array.from({ length: putsPerRequest }, (_, index) => nameOf(first + index)));
  }

  /** Reads during writes to existing and new keys of the range. */
  #read(): void {
    const { counters, plan, random, servers } = this.#world;
    const more = random.pick([
      {},
      { limit: 10n },
      { countOnly: true },
      { sortOrder: Order.DESCEND, sortTarget: Target.MOD },
      { serializable: true, keysOnly: true },
    ]);
    const request = range(bulkPrefix, { rangeEnd, ...more });
    if (random.chance(0.7)) {
      this.#count += 1;
      const names = Array.from({ length: putsBeside }, (_, index) => {
        const name = nameOf(random.below(plan.bulkKeys));
        return index % 4 === 0 ? `${name}+` : `${name}.${this.#count}.${index}`;
      });
      this.#world.call(random.pick(servers), putAll(new Set(names)), () => undefined);
    }
    this.#ask(request, (outcome) => {
      if (request.kind !== "range" || outcome === "lost" || outcome instanceof CoreError) return;
      if (outcome.$typeName !== "etcdserverpb.RangeResponse") return;
      counters.ranges += 1;
      this.#ranges.heard(request.request, outcome);
    });
  }

  #ask(request: ClientRequest, done: (outcome: Outcome) => void): void {
    const { random, servers } = this.#world;
    this.#world.call(random.pick(servers), request, (outcome) => {
      done(outcome);
      this.begin();
    });
  }
}

function nameOf(number: number): string {
  return `${bulkPrefix}${String(number).padStart(5, "0")}`;
}

function putAll(names: Iterable<string>): ClientRequest {
  const success = Array.from(names, (name) => {
    const value = { key: bytes(name), value: bytes("x") };
    return { request: { case: "requestPut" as const, value } };
  });
  return txn({ success });
}
