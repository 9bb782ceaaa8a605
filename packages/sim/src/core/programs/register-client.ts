import {
  Compare_CompareResult as Result,
  Compare_CompareTarget as Target,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ClientRequest } from "@leasehold/core/inner/replica/types.js";
import { CoreError } from "@leasehold/core/inner/state/errors.js";
import { isDeletion } from "@leasehold/core/inner/state/revisions.js";
import type { CoreState } from "@leasehold/core/inner/state/state.js";
import { bytesOfValue } from "@leasehold/core/inner/state/values.js";
import type { KeyInput, KeyOutput, Linearizability } from "../checkers/linearizability.js";
import type { CoreWorld, Outcome } from "../world/world.js";
import { bytes, put, range, remove, text, txn } from "../world/requests.js";

/** At the end, time for the slowest disk to finish. */
const quietMs = 20_000;

/** Reads and writes a few keys through any server. A checker judges its history. */
export class RegisterClient {
  readonly #world: CoreWorld;
  readonly #judge: Linearizability;
  readonly #name: string;
  #count = 0;

  constructor(world: CoreWorld, judge: Linearizability, name: string) {
    this.#world = world;
    this.#judge = judge;
    this.#name = name;
  }

  begin(): void {
    const { plan, random } = this.#world;
    this.#world.after(random.exponential(plan.thinkMs), () => this.#next());
  }

  #next(): void {
    const { plan, random, servers } = this.#world;
    if (this.#world.nowMs > plan.endMs - quietMs) return;
    this.#count += 1;
    const key = `k${random.below(plan.keys)}`;
    const input = this.#draw(key);
    const calledAt = this.#world.nowMs;
    this.#world.counters.operations += 1;
    this.#world.call(random.pick(servers), requestOf(input), (outcome) => {
      this.#record(input, calledAt, outcome);
      this.begin();
    });
  }

  #draw(key: string): KeyInput {
    const { random } = this.#world;
    const value = `${this.#name}.${this.#count}`;
    const dice = random.next();
    if (dice < 0.4) return { kind: "read", key };
    if (dice < 0.7) return { kind: "put", key, value };
    if (dice < 0.9) return { kind: "swap", key, from: this.#judge.lastSeen(key), value };
    return { kind: "delete", key };
  }

  #record(input: KeyInput, calledAt: number, outcome: Outcome): void {
    const { counters, nowMs } = this.#world;
    if (outcome instanceof CoreError) {
      // If an error says that nothing was proposed, that must be true: clients repeat the request.
      if (outcome.failure !== "timeout") return;
    } else if (outcome !== "lost") {
      this.#judge.record({ input, output: outputOf(outcome), calledAt, returnedAt: nowMs });
      return;
    }
    counters.unknownOutcomes += 1;
    if (input.kind !== "read") this.#judge.record({ input, calledAt });
  }
}

/** The values of such clients' keys. */
export function registersIn({ revisions }: CoreState): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const history of revisions.histories()) {
    const newest = history.at(-1)!;
    if (isDeletion(newest) || !/^k\d/.test(newest.key)) continue;
    found.set(newest.key, text(bytesOfValue(newest.value)));
  }
  return found;
}

function requestOf(input: KeyInput): ClientRequest {
  const { key } = input;
  if (input.kind === "read") return range(key);
  if (input.kind === "put") return put(key, input.value, 0n, true);
  if (input.kind === "delete") return remove(key);
  const { from, value } = input;
  const compare =
    from === undefined
      ? {
          key: bytes(key),
          target: Target.VERSION,
          result: Result.EQUAL,
          targetUnion: { case: "version" as const, value: 0n },
        }
      : {
          key: bytes(key),
          target: Target.VALUE,
          result: Result.EQUAL,
          targetUnion: { case: "value" as const, value: bytes(from) },
        };
  return txn({
    compare: [compare],
    success: [{ request: { case: "requestPut", value: { key: bytes(key), value: bytes(value) } } }],
  });
}

function outputOf(outcome: Exclude<Outcome, CoreError | "lost">): KeyOutput {
  switch (outcome.$typeName) {
    case "etcdserverpb.RangeResponse":
      return { value: outcome.kvs[0] && text(outcome.kvs[0].value) };
    case "etcdserverpb.PutResponse":
      return { value: outcome.prevKv && text(outcome.prevKv.value) };
    case "etcdserverpb.DeleteRangeResponse":
      return { did: outcome.deleted > 0n };
    case "etcdserverpb.TxnResponse":
      return { did: outcome.succeeded };
    default:
      throw new Error(`an answer of another kind: ${outcome.$typeName}`);
  }
}
