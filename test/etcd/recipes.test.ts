import {
  type Client as GrpcClient,
  credentials,
  makeClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import { type DescService, type JsonValue, create, toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Health } from "../../packages/leasehold/src/etcd/gen/etcd/health_pb.js";
import { Election } from "../../packages/leasehold/src/etcd/gen/etcd/v3election_pb.js";
import { Lock } from "../../packages/leasehold/src/etcd/gen/etcd/v3lock_pb.js";
import { KV, Lease } from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { serviceDefinition } from "../support/grpc-services.js";
import { bytes, text } from "../core/support/client.js";
import { CoreCluster, type Program } from "../core/support/core-cluster.js";

/** The services Lock, Election and Health, of ours and of a real etcd: equal calls get equal answers. */

const services = { Election, Health, KV, Lease, Lock } as const;
type ServiceName = keyof typeof services;

class Services {
  readonly #endpoint: string;
  readonly #open: GrpcClient[] = [];

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  client(name: ServiceName): GrpcClient {
    const Constructor = makeClientConstructor(serviceDefinition(services[name]), name);
    const client = new Constructor(this.#endpoint, credentials.createInsecure());
    this.#open.push(client);
    return client;
  }

  /** The answer as JSON, or the error's code and text. */
  ask(
    service: ServiceName,
    method: string,
    request: Record<string, unknown>,
    timeoutMs = 10_000,
  ): Promise<JsonValue> {
    const { input, output } = methodOf(services[service], method);
    const client = this.client(service) as unknown as Record<
      string,
      (request: unknown, options: object, done: (error: ServiceError | null, answer: unknown) => void) => void
    >;
    return new Promise((resolve) => {
      client[method]!(create(input, request), { deadline: Date.now() + timeoutMs }, (error, answer) => {
        if (error !== null) resolve({ code: error.code, details: error.details });
        else resolve(plain(toJson(output, answer as never)));
      });
    });
  }

  stream(service: ServiceName, method: string, request: Record<string, unknown>): JsonValue[] {
    const { input, output } = methodOf(services[service], method);
    const found: JsonValue[] = [];
    const client = this.client(service) as unknown as Record<
      string,
      (request: unknown) => NodeJS.EventEmitter
    >;
    client[method]!(create(input, request))
      .on("data", (answer) => found.push(plain(toJson(output, answer as never))))
      .on("error", () => undefined);
    return found;
  }

  close(): void {
    for (const client of this.#open) client.close();
  }
}

function methodOf(service: DescService, name: string) {
  return service.methods.find((method) => method.name === name)!;
}

/** Replaces ids and terms, which differ between runs. */
function plain(answer: JsonValue): JsonValue {
  return JSON.parse(
    JSON.stringify(answer, (key, value) => (/^(clusterId|memberId|raftTerm)$/.test(key) ? undefined : value)),
  ) as JsonValue;
}

let clusters: CoreCluster[];
let both: Services[];
beforeAll(async () => {
  const programs: Program[] = ["leasehold", "etcd"];
  clusters = await Promise.all(programs.map((program) => CoreCluster.start(1, { program })));
  both = clusters.map(({ endpoints }) => new Services(endpoints));
});
afterAll(async () => {
  for (const services of both) services.close();
  await Promise.all(clusters.map((cluster) => cluster[Symbol.asyncDispose]()));
});

/** Runs the calls on both, expects equal results, and returns the result. */
async function same<Result>(run: (services: Services) => Promise<Result>): Promise<Result> {
  const [ours, etcds] = await Promise.all(both.map(run));
  expect(ours).toEqual(etcds);
  return ours!;
}

const tick = (ms = 150) => new Promise((resolve) => setTimeout(resolve, ms));
const key = (name: string) => Buffer.from(name).toString("base64");

describe("Lock", () => {
  test("is acquired, waited for in order, and released", async () => {
    const answers = await same(async (services) => {
      for (const ID of [11n, 12n, 13n]) await services.ask("Lease", "LeaseGrant", { TTL: 60n, ID });
      const taken: bigint[] = [];
      const lock = async (lease: bigint) => {
        const answer = await services.ask("Lock", "Lock", { name: bytes("l"), lease });
        taken.push(lease);
        return answer;
      };
      const log: JsonValue[] = [await lock(11n)];
      const second = lock(12n);
      await tick();
      const third = lock(13n);
      await tick();
      expect(taken).toEqual([11n]);
      log.push(await services.ask("Lock", "Unlock", { key: bytes("l/b") }), await second);
      expect(taken).toEqual([11n, 12n]);
      log.push(await services.ask("Lease", "LeaseRevoke", { ID: 12n }), await third);
      log.push(await services.ask("Lock", "Unlock", { key: bytes("l/d") }));
      log.push(await services.ask("KV", "Range", { key: bytes("l/"), rangeEnd: bytes("l0") }));
      return log;
    });
    expect(answers).toHaveLength(7);
  });

  test("is granted again to its holder, and refuses unknown leases and empty keys", async () => {
    const answers = await same(async (services) => {
      await services.ask("Lease", "LeaseGrant", { TTL: 60n, ID: 21n });
      return [
        await services.ask("Lock", "Lock", { name: bytes("m"), lease: 21n }),
        await services.ask("Lock", "Lock", { name: bytes("m"), lease: 21n }),
        await services.ask("Lock", "Lock", { name: bytes("m"), lease: 999n }),
        await services.ask("Lock", "Unlock", {}),
        await services.ask("Lock", "Unlock", { key: bytes("never") }),
        await services.ask("Lock", "Lock", { name: bytes(""), lease: 21n }),
      ];
    });
    expect(answers[2]).toEqual({ code: 2, details: "etcdserver: requested lease not found" });
  });

  test("creates a lease of one minute if none is given", async () => {
    await same(async (services) => {
      const { key: taken } = (await services.ask("Lock", "Lock", { name: bytes("n") })) as { key: string };
      const name = text(Buffer.from(taken, "base64"));
      expect(name).toMatch(/^n\/[0-9a-f]+$/);
      const ID = BigInt(`0x${name.slice(2)}`);
      return services.ask("Lease", "LeaseTimeToLive", { ID, keys: false }).then((left) => {
        const { grantedTTL } = left as { grantedTTL: string };
        return grantedTTL;
      });
    });
  });
});

describe("Election", () => {
  test("candidates lead in order, proclaim, are observed, and resign", async () => {
    const answers = await same(async (services) => {
      for (const ID of [41n, 42n]) await services.ask("Lease", "LeaseGrant", { TTL: 60n, ID });
      const name = bytes("e");
      const log: JsonValue[] = [await services.ask("Election", "Leader", { name })];
      const seen = services.stream("Election", "Observe", { name });
      await tick();
      log.push(await services.ask("Election", "Campaign", { name, lease: 41n, value: bytes("one") }));
      log.push(await services.ask("Election", "Campaign", { name, lease: 41n, value: bytes("uno") }));
      const { leader } = log.at(-1) as { leader: { rev: string } };
      const first = { name, key: bytes("e/29"), rev: BigInt(leader.rev), lease: 41n };
      const second = services.ask("Election", "Campaign", { name, lease: 42n, value: bytes("two") });
      await tick();
      log.push(await services.ask("Election", "Leader", { name }));
      log.push(await services.ask("Election", "Proclaim", { leader: first, value: bytes("eins") }));
      await tick();
      log.push(await services.ask("Election", "Resign", { leader: first }), await second);
      await tick();
      log.push(await services.ask("Election", "Proclaim", { leader: first, value: bytes("late") }));
      log.push(await services.ask("Election", "Resign", { leader: first }));
      log.push(await services.ask("Election", "Leader", { name }));
      await services.ask("Lease", "LeaseRevoke", { ID: 42n });
      await tick();
      return [...log, await services.ask("Election", "Leader", { name }), seen];
    });
    const values = (answers.at(-1) as { kv: { value: string } }[]).map(({ kv }) => kv.value);
    expect(values).toEqual([key("one"), key("uno"), key("eins"), key("two")]);
  });

  test("a request without its leader is refused", async () => {
    const answers = await same(async (services) => [
      await services.ask("Election", "Proclaim", { value: bytes("x") }),
      await services.ask("Election", "Resign", {}),
      await services.ask("Election", "Campaign", { name: bytes("f"), lease: 998n }),
    ]);
    expect(answers).toHaveLength(3);
  });
});

describe("Health", () => {
  test("the server serves, and no other service is known", async () => {
    await same(async (services) => {
      const seen = services.stream("Health", "Watch", { service: "" });
      const answers = [
        await services.ask("Health", "Check", { service: "" }),
        await services.ask("Health", "Check", { service: "nobody" }),
      ];
      await expect.poll(() => seen.length).toBe(1);
      return [...answers, seen];
    });
  });
});

/** These tests come last, since the ones above compare the revisions of both. */
describe("ours", () => {
  test("a waiter whose call ends leaves no key, and one whose lease ends gets an error at once", async () => {
    const [ours] = both;
    for (const ID of [31n, 32n, 33n]) await ours!.ask("Lease", "LeaseGrant", { TTL: 60n, ID });
    await ours!.ask("Lock", "Lock", { name: bytes("o"), lease: 31n });
    expect(await ours!.ask("Lock", "Lock", { name: bytes("o"), lease: 32n }, 300)).toMatchObject({ code: 4 });
    const left = { key: bytes("o/"), rangeEnd: bytes("o0"), keysOnly: true };
    await expect
      .poll(async () => ((await ours!.ask("KV", "Range", left)) as { count: string }).count)
      .toBe("1");
    const waiting = ours!.ask("Lock", "Lock", { name: bytes("o"), lease: 33n });
    await tick();
    await ours!.ask("Lease", "LeaseRevoke", { ID: 33n });
    expect(await waiting).toEqual({ code: 2, details: "mutex: session is expired" });
  });

  test("a candidate whose lease ends does not lead", async () => {
    const [ours] = both;
    for (const ID of [51n, 52n]) await ours!.ask("Lease", "LeaseGrant", { TTL: 60n, ID });
    await ours!.ask("Election", "Campaign", { name: bytes("g"), lease: 51n });
    const waiting = ours!.ask("Election", "Campaign", { name: bytes("g"), lease: 52n });
    await tick();
    await ours!.ask("Lease", "LeaseRevoke", { ID: 52n });
    expect(await waiting).toEqual({ code: 2, details: "election: not leader" });
  });
});
