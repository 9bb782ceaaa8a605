import { create, type DescMessage, toJson } from "@bufbuild/protobuf";
import { makeClientConstructor, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterEach, expect, test } from "vitest";
import { Auth } from "../../src/core/gen/etcd/auth_pb.js";
import { KV, Lease } from "../../src/core/gen/etcd/rpc_pb.js";
import { Xorshift } from "../../src/common/xorshift.js";
import { serviceDefinition } from "../support/grpc-services.js";
import { report } from "../stores/support.js";
import { bytes } from "./support/client.js";
import { CoreCluster } from "./support/core-cluster.js";

/**
 * The same random changes of users, roles and rights, and the same requests of users, to a real etcd and to ours. Left out is what
 * differs on purpose (docs/core.md): transactions inside, leases of nobody, one key in two permissions of a role.
 */
const services = { Auth, KV, Lease };
type Service = keyof typeof services;

let clusters: CoreCluster[] = [];
afterEach(() => Promise.all(clusters.map((cluster) => cluster[Symbol.asyncDispose]())));

type Unary = (
  request: unknown,
  metadata: Metadata,
  callback: (error: ServiceError | null, response: unknown) => void,
) => void;

/** Says what a server answers, without what is each cluster's own. */
class Asker {
  readonly #clients: Record<string, Record<string, Unary>>;
  readonly tokens = new Map<string, string>();

  constructor(endpoint: string) {
    const entries = Object.entries(services).map(([name, service]) => {
      const Constructor = makeClientConstructor(serviceDefinition(service), name);
      return [name, new Constructor(endpoint, credentials.createInsecure())];
    });
    this.#clients = Object.fromEntries(entries) as never;
  }

  ask(service: Service, method: string, fields: Record<string, unknown>, user = ""): Promise<unknown> {
    const { input, output } = services[service].methods.find(({ name }) => name === method)!;
    const metadata = new Metadata();
    const token = this.tokens.get(user);
    if (token !== undefined) metadata.set("token", token);
    return new Promise((resolve) => {
      const request = create(input as DescMessage, fields);
      this.#clients[service]![method]!(request, metadata, (error, response) =>
        resolve(
          error === null
            ? stripped(toJson(output as DescMessage, response as never))
            : `${error.code} ${error.details}`,
        ),
      );
    });
  }

  async logIn(name: string): Promise<void> {
    const answer = await this.ask("Auth", "Authenticate", { name, password: name });
    this.tokens.set(name, (answer as { token: string }).token);
  }
}

function stripped(json: unknown): unknown {
  const fields = json as { header?: Record<string, unknown> };
  for (const name of ["clusterId", "memberId", "raftTerm"]) delete fields.header?.[name];
  return fields;
}

const requestsPerSeed = 400;
const firstSeed = Number(process.env["LEASEHOLD_SEED"] ?? 1);
const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 2);

test.each(Array.from({ length: seeds }, (_, index) => firstSeed + index))(
  "users, roles and rights of seed %i are answered as etcd answers them",
  async (seed) => {
    clusters = await Promise.all([CoreCluster.start(1), CoreCluster.start(1, { program: "etcd" })]);
    const askers = clusters.map(({ servers }) => new Asker(servers[0]!.endpoint));
    const both = async (service: Service, method: string, fields: Record<string, unknown>, user?: string) => {
      const [our, their] = await Promise.all(askers.map((asker) => asker.ask(service, method, fields, user)));
      return { our, their };
    };
    for (const name of ["root", "u0", "u1"]) await both("Auth", "UserAdd", { name, password: name });
    await both("Auth", "UserGrantRole", { user: "root", role: "root" });
    await both("KV", "Put", { key: bytes("k0"), value: bytes("v") });
    await both("Lease", "LeaseGrant", { ID: 1n, TTL: 600n });
    await both("Auth", "AuthEnable", {});
    for (const asker of askers) {
      for (const name of ["root", "u0", "u1"]) await asker.logIn(name);
      asker.tokens.set("wrong", "wrong.1");
    }
    const requests = new Requests(seed);
    const kinds = new Map<string, number>();
    for (let number = 0; number < requestsPerSeed; number += 1) {
      const [service, method, fields, user] = requests.next();
      const { our, their } = await both(service, method, fields, user);
      const shown = JSON.stringify(fields, (_, value: unknown) =>
        typeof value === "bigint" ? `${value}` : value,
      );
      expect(our, `request ${number}: ${user} ${method} ${shown}`).toEqual(their);
      const kind = typeof our === "string" ? our : "answered";
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    report(`seed ${seed}: ${[...kinds].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
    expect(kinds.size).toBeGreaterThan(5);
  },
);

class Requests {
  readonly #random: Xorshift;

  constructor(seed: number) {
    this.#random = new Xorshift(seed);
  }

  next(): [Service, string, Record<string, unknown>, string] {
    const user = this.#pick(["root", "u0", "u0", "u1", "u1", "", "wrong"]);
    if (this.#below(100) < 35) return this.#change(this.#below(10) < 8 ? "root" : user);
    const key = this.#key();
    const range = { key, rangeEnd: this.#below(2) === 0 ? bytes("") : this.#end() };
    const put = { key, value: bytes(`v${this.#below(3)}`), prevKv: this.#below(3) === 0 };
    switch (this.#below(7)) {
      case 0:
        return ["KV", "Put", { ...put, lease: this.#below(3) === 0 ? 1n : 0n }, user];
      case 1:
        return ["KV", "DeleteRange", { ...range, prevKv: this.#below(2) === 0 }, user];
      case 2:
        return ["KV", "Txn", this.#txn(), user];
      case 3:
        return ["Auth", "UserGet", { name: this.#user() }, user];
      case 4:
        return ["Auth", "RoleGet", { role: this.#role() }, user];
      case 5:
        return ["Auth", this.#pick(["UserList", "RoleList"]), {}, user];
      default:
        return [
          "KV",
          "Range",
          { ...range, serializable: this.#below(2) === 0, countOnly: this.#below(4) === 0 },
          user,
        ];
    }
  }

  #txn(): Record<string, unknown> {
    const key = this.#key();
    const range = { request: { case: "requestRange", value: { key: this.#key(), rangeEnd: this.#end() } } };
    const put = { request: { case: "requestPut", value: { key: this.#key(), value: bytes("t") } } };
    const compare = this.#below(2) === 0 ? [{ key, targetUnion: { case: "version", value: 0n } }] : [];
    return { compare, success: this.#below(2) === 0 ? [put] : [range], failure: [range] };
  }

  #change(user: string): [Service, string, Record<string, unknown>, string] {
    const [name, role] = [this.#user(), this.#role()];
    const from = this.#below(6);
    // One end for each key: etcd keeps a second permission of one key beside the first, whatever is granted again.
    const [key, rangeEnd] = [bytes(`k${from}`), bytes(["", "k4", "\0", "l", "", "k9"][from]!)];
    switch (this.#below(8)) {
      case 0:
        return ["Auth", "RoleAdd", { name: role }, user];
      case 1:
        return ["Auth", "RoleDelete", { role }, user];
      case 2:
      case 3:
        return [
          "Auth",
          "RoleGrantPermission",
          { name: role, perm: { key, rangeEnd, permType: this.#below(3) } },
          user,
        ];
      case 4:
        return ["Auth", "RoleRevokePermission", { role, key, rangeEnd }, user];
      case 5:
      case 6:
        return ["Auth", "UserGrantRole", { user: name, role }, user];
      default:
        return ["Auth", "UserRevokeRole", { name, role }, user];
    }
  }

  #key(): Uint8Array {
    return bytes(`k${this.#below(7)}`);
  }

  #end(): Uint8Array {
    // Behind every key: of a range without keys etcd says now that it may be read, now that it may not.
    return bytes(this.#pick(["k7", "l", "\0", "z"]));
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
