import type { JsonObject } from "@bufbuild/protobuf";
import type { Xorshift } from "../../../src/common/xorshift.js";
import type { Action } from "./action.js";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/**
 * Changes of users, roles and rights, and requests of users. Left out is what differs on purpose (`docs/core.md`):
 * transactions inside, leases of nobody, one key in two permissions of a role.
 */
export class RandomAuthRequests {
  readonly #random: Xorshift;

  constructor(random: Xorshift) {
    this.#random = random;
  }

  next(): Action {
    const user = this.#pick(["root", "u0", "u0", "u1", "u1", "", "wrong"]);
    if (this.#below(100) < 40) return this.#change(this.#below(10) < 8 ? "root" : user);
    const key = this.#key();
    const range = { key, rangeEnd: this.#below(2) === 0 ? "" : this.#end() };
    const put = { key, value: base64(`v${this.#below(3)}`), prevKv: this.#below(3) === 0 };
    const kv = (method: string, request: JsonObject): Action => ({ service: "KV", method, request, user });
    const auth = (method: string, request: JsonObject): Action => ({
      service: "Auth",
      method,
      request,
      user,
    });
    const other = (service: Action["service"], method: string, request: JsonObject): Action => ({
      service,
      method,
      request,
      user,
    });
    return this.#pick([
      () => kv("Put", put),
      () => kv("Put", put),
      () => kv("DeleteRange", { ...range, prevKv: this.#below(2) === 0 }),
      () => kv("Txn", this.#txn()),
      () => kv("Txn", this.#txn()),
      () => auth("UserGet", { name: this.#user() }),
      () => auth("RoleGet", { role: this.#role() }),
      () => auth(this.#pick(["UserList", "RoleList"]), {}),
      () => kv("Range", { ...range, serializable: this.#below(2) === 0, countOnly: this.#below(4) === 0 }),
      () => kv("Range", range),
      () => other("Watch", "create", range),
      () => other("Cluster", "MemberList", {}),
      () => other("Maintenance", this.#pick(["Status", "Hash"]), {}),
    ])();
  }

  #txn(): JsonObject {
    const range = { requestRange: { key: this.#key(), rangeEnd: this.#end() } };
    const put = { requestPut: { key: this.#key(), value: base64("t") } };
    const compare = this.#below(2) === 0 ? [{ key: this.#key(), version: "0" }] : [];
    return { compare, success: this.#below(2) === 0 ? [put] : [range], failure: [range] };
  }

  #change(user: string): Action {
    const [name, role] = [this.#user(), this.#role()];
    const from = this.#below(6);
    // One end for each key: etcd keeps a second permission of one key beside the first, whatever is granted again.
    const [key, rangeEnd] = [base64(`k${from}`), base64(["", "k4", "\0", "l", "", "k9"][from]!)];
    const permType = this.#pick(["READ", "WRITE", "READWRITE"]);
    const of = (method: string, request: JsonObject): Action => ({ service: "Auth", method, request, user });
    return this.#pick([
      () => of("RoleAdd", { name: role }),
      () => of("RoleAdd", { name: role }),
      () => of("RoleDelete", { role }),
      () => of("RoleGrantPermission", { name: role, perm: { key, rangeEnd, permType } }),
      () => of("RoleGrantPermission", { name: role, perm: { key, rangeEnd, permType } }),
      () => of("RoleGrantPermission", { name: role, perm: { key, rangeEnd, permType } }),
      () => of("RoleRevokePermission", { role, key, rangeEnd }),
      () => of("UserGrantRole", { user: name, role }),
      () => of("UserGrantRole", { user: name, role }),
      () => of("UserGrantRole", { user: name, role }),
      () => of("UserRevokeRole", { name, role }),
      // Passwords cost time.
      () => of("UserAdd", { name: this.#pick(["u2", "u2", ""]), options: { noPassword: true } }),
      () => of("UserDelete", { name: "u2" }),
    ])();
  }

  #key(): string {
    return base64(`k${this.#below(7)}`);
  }

  #end(): string {
    // Behind every key: of a range without keys etcd says now that it may be read, now that it may not.
    return base64(this.#pick(["k7", "l", "\0", "z"]));
  }

  #user(): string {
    return this.#pick(["u0", "u1", "u1", "u2"]);
  }

  #role(): string {
    return this.#pick(["r0", "r1", "r2"]);
  }

  #pick<T>(values: readonly T[]): T {
    return values[this.#below(values.length)]!;
  }

  #below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }
}
