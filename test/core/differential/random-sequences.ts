import { type DescMessage, type JsonObject, toJson } from "@bufbuild/protobuf";
import { WatchCreateRequestSchema } from "../../../src/core/gen/etcd/rpc_pb.js";
import { Xorshift } from "../../../src/common/xorshift.js";
import { type Action, methodOf, type Sequence } from "./action.js";
import { isKnownToDiffer } from "./known-differences.js";
import { RandomAuthRequests } from "./random-auth-requests.js";
import { RandomRequests } from "./random-requests.js";

/** A request of the length that shows most mistakes; now and then more that meet more history. */
const lengthUsual = 14;
const lengthMost = 60;

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Sequences of requests to all services of etcd's API. What is known to differ is not asked for. */
export class RandomSequences {
  readonly #random: Xorshift;

  constructor(seed: number) {
    this.#random = new Xorshift(seed);
  }

  next(withRights: boolean): Sequence {
    const length = 3 + this.#below(this.#chance(0.05) ? lengthMost : lengthUsual);
    const next = withRights ? this.#withRights() : this.#withoutRights();
    const actions: Action[] = [];
    while (actions.length < length) {
      const action = next(actions.length);
      if (!isKnownToDiffer([...actions, action])) actions.push(action);
    }
    return { withRights, actions };
  }

  #withRights(): () => Action {
    const requests = new RandomAuthRequests(this.#random);
    return () => requests.next();
  }

  /** Some look at one service more than others. */
  #withoutRights(): (number: number) => Action {
    const requests = new RandomRequests(this.#random);
    const aside = this.#pick([0, 0, 0.2, 0.6]);
    const watches = this.#pick([0, 0.08, 0.3]);
    const others = this.#pick([
      () => this.#ofMaintenance(),
      () => this.#ofCluster(),
      (number: number) => this.#ofLock(number),
      (number: number) => this.#ofElection(number),
    ]);
    return (number) => {
      if (this.#chance(aside)) return others(number);
      if (this.#chance(watches)) return this.#ofWatch(requests);
      const { service, method, request } = requests.next();
      if (method === "Put" || method === "Txn" || this.#chance(0.1)) requests.revision += 1;
      return { service, method, request: json(methodOf(service, method).input, request) };
    };
  }

  #ofWatch(requests: RandomRequests): Action {
    const choice = this.#below(10);
    if (choice === 0) return { service: "Watch", method: "progress", request: {} };
    if (choice === 1)
      return { service: "Watch", method: "cancel", request: { watchId: `${1 + this.#below(5)}` } };
    return { service: "Watch", method: "create", request: json(WatchCreateRequestSchema, requests.watch()) };
  }

  #ofMaintenance(): Action {
    const of = (method: string, request: JsonObject = {}): Action => ({
      service: "Maintenance",
      method,
      request,
    });
    const alarm = {
      action: this.#pick(["GET", "ACTIVATE", "DEACTIVATE"]),
      memberID: this.#pick(["0", "@self", "7"]),
      alarm: this.#pick(["NONE", "NOSPACE", "NOSPACE"]),
    };
    return this.#pick([
      () => of("Alarm", alarm),
      () => of("Alarm"),
      () => of("Status"),
      () => of("Hash"),
      () => of("HashKV", this.#chance(0.5) ? {} : { revision: `${this.#below(12) - 3}` }),
      () => of("Defragment"),
      () => of("MoveLeader", { targetID: this.#pick(["@self", "7"]) }),
    ])();
  }

  #ofCluster(): Action {
    const of = (method: string, request: JsonObject): Action => ({ service: "Cluster", method, request });
    const ID = this.#pick(["@added0", "@added0", "@added1", "@self", "9"]);
    const peerURLs = this.#pick([
      ["http://127.0.0.1:1"],
      ["http://127.0.0.1:2"],
      ["http://127.0.0.1:1", "http://127.0.0.1:3"],
      ["x"],
      [],
    ]);
    return this.#pick([
      () => of("MemberList", {}),
      // One that votes would have to run, or a cluster of one stands still.
      () => of("MemberAdd", { peerURLs, isLearner: true }),
      () => of("MemberUpdate", { ID: ID === "@self" ? "9" : ID, peerURLs }),
      () => of("MemberRemove", { ID }),
      () => of("MemberPromote", { ID }),
    ])();
  }

  #ofLock(number: number): Action {
    const lease = `${1 + this.#below(4)}`;
    const name = this.#pick(["a0", "a1"]);
    const key = base64(`${name}/${lease}`);
    const of = (method: string, request: JsonObject, waitsAs?: string): Action => ({
      service: "Lock",
      method,
      request,
      ...(waitsAs !== undefined && { waitsAs }),
    });
    return this.#pick([
      () => of("Lock", { name: base64(name), lease }, `w${number}`),
      () => of("Lock", { name: base64(name), lease }, `w${number}`),
      () => of("Unlock", { key }),
      () => grant(lease),
      () => rangeOf(name),
      () => revoke(lease),
    ])();
  }

  #ofElection(number: number): Action {
    const lease = `${1 + this.#below(4)}`;
    const name = this.#pick(["a0", "a1"]);
    const value = base64(`p${this.#below(3)}`);
    const leader = `@w${this.#below(number + 1)}`;
    const of = (method: string, request: JsonObject, waitsAs?: string): Action => ({
      service: "Election",
      method,
      request,
      ...(waitsAs !== undefined && { waitsAs }),
    });
    return this.#pick([
      () => of("Campaign", { name: base64(name), lease, value }, `w${number}`),
      () => of("Campaign", { name: base64(name), lease, value }, `w${number}`),
      () => of("Proclaim", { leader, value }),
      () => of("Resign", { leader }),
      () => of("Leader", { name: base64(name) }),
      () => grant(lease),
      () => rangeOf(name),
      () => revoke(lease),
    ])();
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  #chance(share: number): boolean {
    return this.#random.next() < share;
  }
}

const grant = (ID: string): Action => ({
  service: "Lease",
  method: "LeaseGrant",
  request: { ID, TTL: "600" },
});
const revoke = (ID: string): Action => ({ service: "Lease", method: "LeaseRevoke", request: { ID } });
const rangeOf = (name: string): Action => ({
  service: "KV",
  method: "Range",
  request: { key: base64(`${name}/`), rangeEnd: base64(`${name}0`) },
});

function json(schema: DescMessage, request: unknown): JsonObject {
  return toJson(schema, request as never) as JsonObject;
}
