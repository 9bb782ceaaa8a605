import type { JsonObject } from "@bufbuild/protobuf";
import { type Action, base64 } from "./action.js";
import type { Choices } from "./choices.js";
import { given } from "./random-requests.js";

/** A key's number: rights begin and end between the requested keys. */
const keysMost = 6;

/**
 * Changes of users, roles and rights, and requests of users. Each key has one end in all permissions: etcd keeps a
 * second permission of one key beside the first, whatever is granted again.
 */
export class RandomAuthRequests {
  readonly #choices: Choices;
  readonly #ends: readonly string[];

  constructor(choices: Choices) {
    this.#choices = choices;
    this.#ends = choices.several(keysMost, keysMost, (from) => this.#end(from));
  }

  /** Users with a few rights, and keys for them to access. */
  *beginning(): Generator<Action> {
    const { chance } = { chance: (share: number) => this.#choices.chance(share) };
    const kv = (method: string, request: JsonObject): Action => ({
      service: "KV",
      method,
      request,
      user: "root",
    });
    if (chance(0.5)) yield lease("LeaseGrant", { ID: "1", TTL: "600" }, "root");
    for (let key = 0; key < keysMost; key += 1)
      if (chance(0.4))
        yield kv("Put", given({ key: keyOf(key), value: base64("v"), lease: chance(0.2) ? "1" : undefined }));
    for (const [at, user] of ["u0", "u1"].entries()) {
      if (chance(0.1)) continue;
      const role = `r${at}`;
      yield auth("RoleAdd", { name: role }, "root");
      for (const _ of this.#choices.several(1, 2, () => 0)) yield this.#grant(role, "root");
      yield auth("UserGrantRole", { user, role }, "root");
    }
    if (!chance(0.2)) return;
    yield auth("UserAdd", { name: "u2", password: "u2" }, "root");
    yield auth("UserGrantRole", { user: "u2", role: "r0" }, "root");
    yield auth("Authenticate", { name: "u2", password: "u2" }, "");
  }

  next(): Action {
    const user = this.#choices.pick(["root", "u0", "u0", "u0", "u1", "u1", "u1", "u2", "", "wrong"]);
    if (this.#choices.chance(0.3)) return this.#change(this.#choices.chance(0.8) ? "root" : user);
    return this.#choices.chance(0.75) ? this.#ofKeys(user) : this.#other(user);
  }

  #ofKeys(user: string): Action {
    const kv = (method: string, request: JsonObject): Action => ({ service: "KV", method, request, user });
    return this.#choices.weighted([
      [3, () => kv("Put", this.#put(user))],
      [2, () => kv("DeleteRange", given({ ...this.#range(), prevKv: this.#choices.chance(0.5) }))],
      [4, () => kv("Txn", this.#txn(user, 0))],
      [4, () => kv("Range", this.#read())],
      [2, () => ({ service: "Watch", method: "create", request: given(this.#range()), user })],
      [1, () => kv("Compact", { revision: `${this.#choices.below(12)}` })],
    ]);
  }

  #other(user: string): Action {
    const ID = this.#choices.pick(["1", "1", "2"]);
    const maintenance = (method: string): Action => ({ service: "Maintenance", method, request: {}, user });
    return this.#choices.weighted([
      [2, () => auth("UserGet", { name: this.#user() }, user)],
      [2, () => auth("RoleGet", { role: this.#role() }, user)],
      [1, () => auth("UserList", {}, user)],
      [1, () => auth("RoleList", {}, user)],
      [1, () => lease("LeaseGrant", { ID, TTL: "600" }, user)],
      [2, () => lease("LeaseRevoke", { ID }, user)],
      [1, () => lease("LeaseKeepAlive", { ID }, user)],
      [1, () => lease("LeaseTimeToLive", given({ ID, keys: this.#choices.chance(0.5) }), user)],
      [1, () => lease("LeaseLeases", {}, user)],
      [1, () => ({ service: "Cluster", method: "MemberList", request: {}, user })],
      [1, () => maintenance("Status")],
      [1, () => maintenance("Hash")],
    ]);
  }

  #put(user: string): JsonObject {
    return given({
      key: this.#key(),
      value: base64(`v${this.#choices.below(3)}`),
      lease: user !== "" && this.#choices.chance(0.25) ? "1" : undefined,
      prevKv: this.#choices.chance(0.3),
    });
  }

  #read(): JsonObject {
    return given({
      ...this.#range(),
      serializable: this.#choices.chance(0.3),
      countOnly: this.#choices.chance(0.2),
      limit: this.#choices.chance(0.2) ? "1" : undefined,
    });
  }

  #txn(user: string, depth: number): JsonObject {
    const deletion = () => given({ ...this.#range(), prevKv: this.#choices.chance(0.4) });
    const operation = () =>
      this.#choices.weighted<JsonObject>([
        [4, () => ({ requestRange: this.#read() })],
        [4, () => ({ requestPut: this.#put(user) })],
        [2, () => ({ requestDeleteRange: deletion() })],
        [depth > 1 ? 0 : 2, () => ({ requestTxn: this.#txn(user, depth + 1) })],
      ]);
    const comparison = () => given({ ...this.#range(), target: "VERSION", version: "1" });
    return {
      compare: this.#choices.several(0, 1, comparison),
      success: this.#choices.several(0, 2, operation),
      failure: this.#choices.several(0, 2, operation),
    };
  }

  #change(user: string): Action {
    const [name, role] = [this.#user(), this.#role()];
    const from = this.#choices.below(keysMost);
    const own = this.#choices.pick(["u2", "u2", ""]);
    return this.#choices.weighted([
      [2, () => auth("RoleAdd", { name: role }, user)],
      [1, () => auth("RoleDelete", { role }, user)],
      [4, () => this.#grant(role, user)],
      [
        2,
        () =>
          auth("RoleRevokePermission", given({ role, key: keyOf(from), rangeEnd: this.#ends[from]! }), user),
      ],
      [4, () => auth("UserGrantRole", { user: name, role }, user)],
      [2, () => auth("UserRevokeRole", { name, role }, user)],
      // Passwords take time, so those of root, u0 and u1 stay, with their tokens.
      [1, () => auth("UserAdd", { name: own, options: { noPassword: true } }, user)],
      [1, () => auth("UserAdd", { name: own, password: "u2" }, user)],
      [1, () => auth("UserDelete", { name: "u2" }, user)],
      [1, () => auth("UserChangePassword", { name: "u2", password: this.#choices.pick(["u2", "x"]) }, user)],
      [1, () => auth("Authenticate", { name: "u2", password: this.#choices.pick(["u2", "x"]) }, "")],
      [1, () => auth("AuthEnable", {}, user)],
      // Not by root, so that rights stay enabled.
      [1, () => auth("AuthDisable", {}, this.#choices.pick(["u0", "u1", "", "wrong"]))],
    ]);
  }

  #grant(role: string, user: string): Action {
    const from = this.#choices.below(keysMost);
    const permType = this.#choices.pick(["READ", "WRITE", "READWRITE", "READWRITE"]);
    const perm = given({ key: keyOf(from), rangeEnd: this.#ends[from]!, permType });
    return auth("RoleGrantPermission", { name: role, perm }, user);
  }

  #key(): string {
    return keyOf(this.#choices.below(keysMost + 1));
  }

  #range(): { key: string; rangeEnd: string } {
    const from = this.#choices.below(keysMost + 1);
    return { key: keyOf(from), rangeEnd: this.#end(from) };
  }

  /** Behind the key: of a range without keys etcd says now that it may be read, now that it may not. */
  #end(from: number): string {
    return this.#choices.weighted([
      [4, () => ""],
      [4, () => keyOf(from + 1 + this.#choices.below(3))],
      [1, () => base64("l")],
      [1, () => base64("\0")],
    ]);
  }

  #user(): string {
    return this.#choices.pick(["u0", "u1", "u1", "u2", "root", "nobody"]);
  }

  #role(): string {
    return this.#choices.pick(["r0", "r0", "r1", "r1", "r2"]);
  }
}

const keyOf = (number: number): string => base64(`k${number}`);
const auth = (method: string, request: JsonObject, user: string): Action => ({
  service: "Auth",
  method,
  request,
  user,
});
const lease = (method: string, request: JsonObject, user: string): Action => ({
  service: "Lease",
  method,
  request,
  user,
});
