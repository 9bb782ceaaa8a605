import { type DescMessage, type MessageShape, create, toJson } from "@bufbuild/protobuf";
import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  KV,
  Lease,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  LeaseGrantRequestSchema,
  PutRequestSchema,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "../../src/core/gen/etcd/rpc_pb.js";
import { report } from "../stores/support.js";
import { type Client, bytes } from "./support/client.js";
import { CoreCluster } from "./support/core-cluster.js";
import { type RandomRequest, RandomRequests } from "./support/random-requests.js";

/**
 * The same random requests to a real etcd and to ours: the answers are compared field by field. Not compared: ids of cluster
 * and member and the term (they are each cluster's own), what is left of a lease but by a few seconds, the order of a list of leases
 * or of a lease's keys (etcd's is by expiry, and by chance), and how events are put together to messages.
 */
let ours: CoreCluster;
let etcd: CoreCluster;
beforeEach(async () => {
  [ours, etcd] = await Promise.all([CoreCluster.start(1), CoreCluster.start(1, { program: "etcd" })]);
});
afterEach(() => Promise.all([ours, etcd].map((cluster) => cluster[Symbol.asyncDispose]())));

const requestsPerSeed = 800;
const firstSeed = Number(process.env["LEASEHOLD_SEED"] ?? 1);
const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 4);

test.each(Array.from({ length: seeds }, (_, index) => firstSeed + index))(
  "the random requests of seed %i get the same answers and the same events as from etcd",
  async (seed) => {
    const requests = new RandomRequests(seed);
    const clients = [ours.servers[0]!.client, etcd.servers[0]!.client] as const;
    const watching = clients.map((client) => new Watching(client));
    const refusals = new Set<string>();
    for (let number = 0; number < requestsPerSeed; number++) {
      if (number % 25 === 0) {
        const createRequest = requests.watch();
        for (const watch of watching) watch.create(createRequest);
        await Promise.all(watching.map((watch) => watch.quiet()));
      }
      const asked = requests.next();
      const [our, theirs] = await Promise.all(clients.map((client) => ask(client, asked)));
      expect(our, `request ${number} (revision ${requests.revision}): ${describeRequest(asked)}`).toEqual(
        theirs,
      );
      requests.revision = Math.max(requests.revision, our!.revision);
      if (our!.error !== undefined) refusals.add(our!.error);
    }
    const [ourEvents, theirEvents] = await Promise.all(watching.map((watch) => watch.all()));
    expect(ourEvents).toEqual(theirEvents);
    const events = Object.values(ourEvents!).reduce((sum, lines) => sum + lines.length, 0);
    report(
      `seed ${seed}: ${requestsPerSeed} requests, revision ${requests.revision}, ${events} lines of watches, ${refusals.size} kinds of refusals`,
    );
    expect(events).toBeGreaterThan(200);
    expect(refusals.size).toBeGreaterThan(4);
  },
);

test("grants and keep-alives of leases are answered as etcd answers them", async () => {
  const [our, theirs] = await Promise.all(
    [ours, etcd].map(async ({ servers }) => {
      const { client } = servers[0]!;
      const said: unknown[] = [];
      for (const [ID, TTL] of [
        [77n, 1n],
        [78n, -1n],
        [79n, 0n],
        [-5n, 60n],
      ] as const) {
        const request = create(LeaseGrantRequestSchema, { ID, TTL });
        said.push(await ask(client, { service: "Lease", method: "LeaseGrant", request }));
      }
      const stream = client.stream<unknown, LeaseKeepAliveResponse>("Lease", "LeaseKeepAlive");
      for (const ID of [77n, 999n, 77n]) {
        stream.write(create(LeaseKeepAliveRequestSchema, { ID }));
        const { ID: answered, TTL } = await new Promise<LeaseKeepAliveResponse>((resolve) =>
          stream.once("data", resolve),
        );
        said.push([String(answered), String(TTL)]);
      }
      stream.end();
      const code = await new Promise((resolve) =>
        stream.on("status", (status: { code: number }) => resolve(status.code)),
      );
      return [...said, code];
    }),
  );
  expect(our).toEqual(theirs);
});

test("a request that is too large is refused in etcd's words", async () => {
  const answers = await Promise.all(
    [ours, etcd].map(({ servers }) =>
      ask(servers[0]!.client, {
        service: "KV",
        method: "Put",
        request: create(PutRequestSchema, { key: bytes("big"), value: new Uint8Array(1.6 * 1024 * 1024) }),
      }),
    ),
  );
  expect(answers[0]).toEqual(answers[1]);
  expect(answers[0]!.error).toBe("3 etcdserver: request is too large");
});

interface Compared {
  readonly revision: number;
  readonly error?: string;
  readonly answer?: unknown;
}

async function ask(client: Client, { service, method, request }: RandomRequest): Promise<Compared> {
  try {
    const response = await client.call<{ header?: { revision: bigint } }>(service, method, request);
    const schema = (service === "KV" ? KV : Lease).methods.find(({ name }) => name === method)!.output;
    return {
      revision: Number(response.header?.revision ?? 0n),
      answer: comparable(schema, response as never),
    };
  } catch (error) {
    const { code, details } = error as ServiceError;
    return { revision: 0, error: `${code} ${details}` };
  }
}

function comparable<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): unknown {
  const json = toJson(schema, message) as Record<string, unknown>;
  strip(json);
  if (schema.name === "LeaseTimeToLiveResponse" && json["grantedTTL"] !== undefined)
    json["TTL"] = Number(json["TTL"]) > Number(json["grantedTTL"]) - 60;
  if (Array.isArray(json["leases"]))
    json["leases"] = json["leases"].map((lease) => JSON.stringify(lease)).sort();
  if (Array.isArray(json["keys"])) json["keys"].sort();
  return json;
}

/** What is each cluster's own. */
function strip(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const fields = value as Record<string, unknown>;
  for (const name of ["clusterId", "memberId", "raftTerm"]) delete fields[name];
  for (const inner of Object.values(fields)) strip(inner);
}

function describeRequest({ service, method, request }: RandomRequest): string {
  const schema = (service === "KV" ? KV : Lease).methods.find(({ name }) => name === method)!.input;
  return `${method} ${JSON.stringify(toJson(schema, request as never))}`;
}

/** Nothing has come for so long: all has come that was under way. */
const quietMs = 150;

/** A stream of watches, and what it has told, as lines by watch. */
class Watching {
  readonly #stream: ClientDuplexStream<WatchRequest, WatchResponse>;
  readonly #lines: Record<string, string[]> = {};
  #heardMs = performance.now();

  constructor(client: Client) {
    this.#stream = client.stream("Watch", "Watch");
    this.#stream.on("data", (response: WatchResponse) => this.#take(response));
    this.#stream.on("error", () => undefined);
  }

  create(createRequest: unknown): void {
    this.#heardMs = performance.now();
    this.#stream.write(
      create(WatchRequestSchema, { requestUnion: { case: "createRequest", value: createRequest as never } }),
    );
  }

  async quiet(): Promise<void> {
    while (performance.now() - this.#heardMs < quietMs)
      await new Promise((resolve) => setTimeout(resolve, 10));
  }

  async all(): Promise<Record<string, string[]>> {
    this.#heardMs = performance.now();
    await this.quiet();
    this.#stream.cancel();
    return this.#lines;
  }

  #take(response: WatchResponse): void {
    this.#heardMs = performance.now();
    const { events = [] } = toJson(WatchResponseSchema, response) as { events?: unknown[] };
    const { watchId, created, canceled, compactRevision } = response;
    const lines = (this.#lines[String(watchId)] ??= []);
    // This version of etcd gives no reason.
    if (events.length === 0)
      lines.push(JSON.stringify({ created, canceled, compactRevision: String(compactRevision) }));
    for (const event of events) lines.push(JSON.stringify(event));
  }
}
