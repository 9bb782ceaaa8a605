import type { JsonObject } from "@bufbuild/protobuf";
import { type Action, base64 } from "./action.js";
import type { Choices } from "./choices.js";

/** Requests to the services that do not concern keys. */
export interface RandomOthers {
  beginning?(): Iterable<Action>;
  /** @param number how many came before, by which what waits is called */
  next(number: number): Action;
}

export class RandomMaintenance implements RandomOthers {
  readonly #choices: Choices;
  /** If both are set, etcd 3.4 forgets one of them. */
  readonly #alarm: string;

  constructor(choices: Choices) {
    this.#choices = choices;
    this.#alarm = choices.pick(["NOSPACE", "NOSPACE", "NOSPACE", "CORRUPT"]);
  }

  next(): Action {
    const of = (method: string, request: JsonObject = {}): Action => ({
      service: "Maintenance",
      method,
      request,
    });
    const choices = this.#choices;
    const alarm = () => ({
      action: choices.pick(["GET", "ACTIVATE", "DEACTIVATE"]),
      memberID: choices.pick(["0", "@self", "7"]),
      alarm: choices.pick(["NONE", this.#alarm, this.#alarm]),
    });
    return choices.weighted([
      [3, () => of("Alarm", alarm())],
      [1, () => of("Alarm")],
      [2, () => of("Status")],
      [1, () => of("Hash")],
      [2, () => of("HashKV", choices.chance(0.5) ? {} : { revision: `${choices.below(12) - 3}` })],
      [1, () => of("Defragment")],
      [1, () => of("MoveLeader", { targetID: choices.pick(["@self", "7"]) })],
    ]);
  }
}

export class RandomCluster implements RandomOthers {
  readonly #choices: Choices;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  next(): Action {
    const of = (method: string, request: JsonObject): Action => ({ service: "Cluster", method, request });
    const choices = this.#choices;
    const ID = choices.pick(["@added0", "@added0", "@added1", "@self", "9"]);
    const peerURLs = choices.pick([
      ["http://127.0.0.1:1"],
      ["http://127.0.0.1:2"],
      ["http://127.0.0.1:1", "http://127.0.0.1:3"],
      ["x"],
      [],
    ]);
    return choices.weighted([
      [2, () => of("MemberList", {})],
      // A voting member would have to run, or a cluster of one would come to a stop.
      [4, () => of("MemberAdd", { peerURLs, isLearner: true })],
      [2, () => of("MemberUpdate", { ID, peerURLs })],
      [3, () => of("MemberRemove", { ID })],
      [2, () => of("MemberPromote", { ID })],
    ]);
  }
}

/** Only a few names and leases, most of which exist. */
abstract class Waiting implements RandomOthers {
  protected readonly choices: Choices;

  constructor(choices: Choices) {
    this.choices = choices;
  }

  *beginning(): Generator<Action> {
    for (const lease of leases) if (this.choices.chance(0.8)) yield grant(lease);
  }

  next(number: number): Action {
    const [name, lease] = [this.choices.pick(["a0", "a0", "a1"]), this.choices.pick(leases)];
    return this.choices.weighted([
      [6, () => this.asked(name, lease, number)],
      [1, () => grant(lease)],
      [1, () => ({ service: "Lease", method: "LeaseRevoke", request: { ID: lease } })],
      [1, () => kv("Range", { key: base64(`${name}/`), rangeEnd: base64(`${name}0`) })],
      [1, () => kv("DeleteRange", { key: base64(`${name}/${lease}`) })],
    ]);
  }

  protected abstract asked(name: string, lease: string, number: number): Action;
}

export class RandomLocks extends Waiting {
  protected override asked(name: string, lease: string, number: number): Action {
    const of = (method: string, request: JsonObject): Action => ({ service: "Lock", method, request });
    return this.choices.weighted([
      [3, () => ({ ...of("Lock", { name: base64(name), lease }), waitsAs: `w${number}` })],
      [1, () => of("giveUp", { name: base64(name), lease })],
      [2, () => of("Unlock", { key: base64(`${name}/${lease}`) })],
    ]);
  }
}

export class RandomElections extends Waiting {
  readonly #candidates: string[] = [];

  protected override asked(name: string, lease: string, number: number): Action {
    const value = base64(`p${this.choices.below(3)}`);
    const leader = `@${this.#candidates.length === 0 ? "w0" : this.choices.pick(this.#candidates)}`;
    const of = (method: string, request: JsonObject): Action => ({ service: "Election", method, request });
    const campaign = (waitsAs: string): Action => {
      this.#candidates.push(waitsAs);
      return { ...of("Campaign", { name: base64(name), lease, value }), waitsAs };
    };
    return this.choices.weighted([
      [4, () => campaign(`w${number}`)],
      [2, () => of("Proclaim", { leader, value })],
      [3, () => of("Resign", { leader })],
      [2, () => of("Leader", { name: base64(name) })],
      [1, () => of("Observe", { name: base64(name) })],
    ]);
  }
}

const leases = ["1", "2", "3"] as const;
const grant = (ID: string): Action => ({
  service: "Lease",
  method: "LeaseGrant",
  request: { ID, TTL: "600" },
});
const kv = (method: string, request: JsonObject): Action => ({ service: "KV", method, request });
