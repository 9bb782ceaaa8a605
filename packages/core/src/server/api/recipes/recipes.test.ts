import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { VirtualCluster } from "../../../../../../test/core/virtual-cluster.js";
import { effort } from "../../../../../../test/support/effort.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { EventSchema, KeyValueSchema } from "leasehold/etcd/gen/etcd/kv_pb.js";
import {
  KV,
  Lease,
  LeaseGrantRequestSchema,
  RangeRequestSchema,
  RangeResponseSchema,
  ResponseHeaderSchema,
  Watch,
  type WatchRequest,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { Election } from "leasehold/etcd/gen/etcd/v3election_pb.js";
import { Lock } from "leasehold/etcd/gen/etcd/v3lock_pb.js";
import type { ClientRequest } from "../../../replica/types.js";
import { CoreError } from "../../../state/errors.js";
import { Counters } from "../../metrics/counters.js";
import {
  type Handlers,
  type Method,
  type ServerStream,
  statusOf,
  type UnaryHandler,
} from "../../wire/rpc/call.js";
import { electionHandlers } from "../election.js";
import { LocalClient } from "../calls/local.js";
import { lockHandlers } from "../lock.js";
import { methodsOf } from "../calls/methods.js";

const kinds = { Range: "range", DeleteRange: "deleteRange", Txn: "txn" } as const;

const utf8 = (text: string) => new TextEncoder().encode(text);
const caller = { client: "test", metadata: {} };

/** Locks and elections on one server in virtual time. */
class Ground {
  readonly #cluster = new VirtualCluster({ servers: 1 });
  readonly #server: SimServer = this.#cluster.leader();
  readonly client: LocalClient;

  constructor(leases: readonly bigint[]) {
    const methods = new Map<string, Method>();
    this.client = new LocalClient((path) => methods.get(path));
    const entries = Object.entries(kinds).map(([name, kind]) => [name, this.#asked(kind)]);
    const watch = (stream: ServerStream) => {
      const { world } = this.#cluster;
      const connection = world.watch(
        this.#server,
        (response) => void stream.write(response),
        () => stream.end(),
      )!;
      stream.listen(
        (request) => connection.send(request as WatchRequest),
        () => connection.close(),
      );
      stream.whenOver(() => connection.close());
    };
    for (const [service, handlers] of [
      [KV, Object.fromEntries(entries) as Handlers],
      [Lease, { LeaseGrant: this.#asked("leaseGrant") }],
      [Watch, { Watch: watch }],
      [Lock, lockHandlers(this.client)],
      [Election, electionHandlers(this.client)],
    ] as const)
      for (const [name, method] of methodsOf(service, handlers, new Counters()))
        methods.set(`/${service.typeName}/${name}`, method);
    for (const ID of leases) {
      const request = create(LeaseGrantRequestSchema, { ID, TTL: 10_000n });
      this.#cluster.ask(this.#server, "etcdserverpb.LeaseGrantResponse", { kind: "leaseGrant", request });
    }
  }

  #asked(kind: ClientRequest["kind"]): UnaryHandler {
    return ({ request }, callback) =>
      this.#cluster.world.call(this.#server, { kind, request } as ClientRequest, (outcome) => {
        if (outcome === "lost") callback({ code: 14, details: outcome });
        else if (outcome instanceof CoreError) callback(statusOf(outcome));
        else callback(null, outcome);
      });
  }

  async run(forMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < forMs; passedMs += 1) {
      this.#cluster.run(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  lock(lease: bigint, signal?: AbortSignal) {
    return this.client.ask(Lock.method.lock, { name: utf8("m"), lease }, caller, signal);
  }

  unlock(lease: bigint) {
    return this.client.ask(Lock.method.unlock, { key: utf8(`m/${lease.toString(16)}`) }, caller);
  }

  /** The waiters in the lock's queue. */
  get places(): string[] {
    const request = create(RangeRequestSchema, { key: utf8("m/"), rangeEnd: utf8("m0") });
    const { kvs } = this.#cluster.ask(this.#server, "etcdserverpb.RangeResponse", { kind: "range", request });
    return kvs.map(({ key }) => Buffer.from(key).toString());
  }
}

/** Records the outcome of a call. */
function noted(call: Promise<unknown>): { outcome: string } {
  const found = { outcome: "waits" };
  call.then(
    () => (found.outcome = "answered"),
    (error: unknown) => (found.outcome = (error as Error).message),
  );
  return found;
}

let ground: Ground;
beforeEach(() => {
  ground = new Ground([1n, 2n]);
});

test("a holder that requests the lock again and cancels keeps it", async () => {
  const first = noted(ground.lock(1n));
  await ground.run(20);
  expect(first.outcome).toBe("answered");
  for (let afterMs = 0; afterMs < 8; afterMs += 1) {
    const gone = new AbortController();
    noted(ground.lock(1n, gone.signal));
    await ground.run(afterMs);
    gone.abort();
    await ground.run(20);
    expect(ground.places).toEqual(["m/1"]);
  }
});

test("a client that cancels during the acquisition and retries at once holds what its answer says", async () => {
  for (let afterMs = 0; afterMs < 8; afterMs += 1) {
    const gone = new AbortController();
    noted(ground.lock(1n, gone.signal));
    await ground.run(afterMs);
    gone.abort();
    const second = noted(ground.lock(1n));
    await ground.run(20);
    expect([second.outcome, ...ground.places]).toEqual(["answered", "m/1"]);
    noted(ground.unlock(1n));
    await ground.run(20);
  }
});

test("a waiter that gives up leaves no place, at any time", async () => {
  noted(ground.lock(1n));
  await ground.run(20);
  for (let afterMs = 1; afterMs < 8; afterMs += 1) {
    const gone = new AbortController();
    noted(ground.lock(2n, gone.signal));
    await ground.run(afterMs);
    gone.abort();
    await ground.run(20);
    expect(ground.places).toEqual(["m/1"]);
  }
});

test("when clients request, repeat and cancel, at most one was granted the lock, and it holds it", async () => {
  const act = fc.record({
    who: fc.constantFrom(1n, 2n, 3n),
    what: fc.constantFrom("lock", "lock", "lock", "give up", "give up", "unlock"),
    afterMs: fc.constantFrom(0, 1, 2, 3, 5, 8),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 10, maxLength: 25 }), async (acts) => {
      const own = new Ground([1n, 2n, 3n]);
      const holders = new Set<bigint>();
      const asking = new Map<AbortController, bigint>();
      const wrong: string[] = [];
      const look = () => {
        if (holders.size > 1) wrong.push(`${[...holders]} hold`);
        for (const who of holders) if (!own.places.includes(`m/${who}`)) wrong.push(`${who} has lost it`);
      };
      const ask = (who: bigint) => {
        const gone = new AbortController();
        asking.set(gone, who);
        own.lock(who, gone.signal).then(
          () => {
            asking.delete(gone);
            holders.add(who);
          },
          () => asking.delete(gone),
        );
      };
      for (const { afterMs, what, who } of acts) {
        const [gone] = [...asking].find(([, each]) => each === who) ?? [];
        if (what === "lock") ask(who);
        else if (what === "give up") gone?.abort();
        else if (holders.has(who) && gone === undefined) {
          holders.delete(who);
          noted(own.unlock(who));
        }
        await own.run(afterMs);
        look();
      }
      await own.run(40);
      look();
      expect(wrong).toEqual([]);
    }),
    { numRuns: 6 * effort },
  );
});

test("an observer continues from the reported revision, even if the server was ahead of it", async () => {
  const methods = new Map<string, Method>();
  const client = new LocalClient((path) => methods.get(path));
  const asked: bigint[] = [];
  const watch = (stream: ServerStream) =>
    stream.listen(
      (request) => {
        const { requestUnion } = request as WatchRequest;
        if (requestUnion.case === "createRequest") asked.push(requestUnion.value.startRevision);
        const kv = create(KeyValueSchema, { key: utf8("e/a"), createRevision: 3n, modRevision: 3n });
        // The key was deleted within the same turn.
        const header = create(ResponseHeaderSchema, { revision: 4n });
        if (asked.length === 1)
          stream.write(create(WatchResponseSchema, { header, events: [create(EventSchema, { kv })] }));
      },
      () => undefined,
    );
  const range: UnaryHandler = (_, callback) =>
    callback(null, create(RangeResponseSchema, { header: create(ResponseHeaderSchema, { revision: 2n }) }));
  for (const [service, handlers] of [
    [KV, { Range: range }],
    [Watch, { Watch: watch }],
    [Election, electionHandlers(client)],
  ] as const)
    for (const [name, method] of methodsOf(service, handlers, new Counters()))
      methods.set(`/${service.typeName}/${name}`, method);
  const observing = client.open(Election.method.observe, caller);
  observing.send({ name: utf8("e") });
  observing.end();
  const { value: first } = await observing.answers.next();
  expect(first?.header?.revision).toBe(3n);
  const next = observing.answers.next();
  await expect.poll(() => asked).toEqual([2n, 4n]);
  observing.cancel();
  await expect(next).rejects.toThrow("the client is gone");
});
