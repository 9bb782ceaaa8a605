import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type WatchCreateRequestSchema,
  WatchRequestSchema,
  type WatchResponse,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import type { ClientRequest, ClientResponse, Credentials } from "../../packages/core/src/replica/types.js";
import { CoreError } from "../../packages/core/src/state/errors.js";
import type { CorePlan } from "../../packages/sim/src/core/world/plan.js";
import type { ReferenceObserver } from "../../packages/sim/src/core/world/reference.js";
import type { SimServer } from "../../packages/sim/src/core/world/server.js";
import { CoreWorld, type Outcome } from "../../packages/sim/src/core/world/world.js";
import { SimRandom } from "../../packages/sim/src/kit/random.js";

/** Nothing goes wrong by itself. */
const quiet: CorePlan = {
  seed: 1,
  servers: 3,
  tickMs: 100,
  electionTicks: 10,
  clusterTimeMs: 0,
  limits: {},
  raftLimits: {},
  latencyMs: 1,
  lossRate: 0,
  duplicateRate: 0,
  writeMs: 1,
  slowDiskFactor: 1,
  clockRateError: 0,
  crashEveryMs: Infinity,
  downMsMax: 0,
  partitionEveryMs: Infinity,
  pauseEveryMs: Infinity,
  pauseMaxMs: 0,
  transferEveryMs: Infinity,
  registerClients: 0,
  keys: 0,
  leaseClients: 0,
  watchClients: 0,
  bulkKeys: 0,
  turnMs: 0,
  turnsAtOnce: Infinity,
  timeoutMs: 5_000,
  thinkMs: 1,
  compactEveryMs: Infinity,
  stableFromMs: Infinity,
  endMs: Infinity,
};

export interface Sent {
  outcome: Outcome | undefined;
}

/** Servers in virtual time that a test steers step by step. */
export class VirtualCluster {
  readonly world: CoreWorld;

  constructor(changed: Partial<CorePlan> = {}, observers: readonly ReferenceObserver[] = []) {
    const plan = { ...quiet, ...changed };
    this.world = new CoreWorld(plan, new SimRandom(plan.seed));
    for (const observer of observers) this.world.reference.attach(observer);
  }

  /** @throws Error with the violation found by a checker */
  run(forMs: number): void {
    this.world.runUntil(this.world.nowMs + forMs);
    const { violation } = this.world;
    if (violation !== undefined) throw new Error(`${violation.invariant}: ${violation.text}`);
  }

  /** The leader, once all follow one. */
  leader(): SimServer {
    for (let tries = 0; tries < 100; tries += 1) {
      this.run(100);
      const leader = this.world.leader();
      const status = leader?.replica!.status();
      if (status !== undefined && status.applied === status.lastIndex && status.cluster !== 0n)
        return leader!;
    }
    throw new Error("nobody leads");
  }

  followers(): SimServer[] {
    return this.world.servers.filter((server) => !server.leads);
  }

  send(server: SimServer, request: ClientRequest, credentials?: Credentials): Sent {
    const sent: Sent = { outcome: undefined };
    this.world.call(server, request, (outcome) => (sent.outcome = outcome), credentials);
    return sent;
  }

  /** Runs until there is an answer. */
  outcome(server: SimServer, request: ClientRequest, credentials?: Credentials): Outcome {
    const sent = this.send(server, request, credentials);
    for (let waitedMs = 0; sent.outcome === undefined && waitedMs < 20_000; waitedMs += 10) this.run(10);
    if (sent.outcome === undefined) throw new Error("no answer");
    return sent.outcome;
  }

  /** The answer of that type; anything else is an error. */
  ask<Type extends ClientResponse["$typeName"]>(
    server: SimServer,
    type: Type,
    request: ClientRequest,
  ): Extract<ClientResponse, { $typeName: Type }> {
    const outcome = this.outcome(server, request);
    if (outcome === "lost" || outcome instanceof CoreError || outcome.$typeName !== type)
      throw new Error(
        `answered ${outcome === "lost" || outcome instanceof CoreError ? outcome : outcome.$typeName}`,
      );
    return outcome as Extract<ClientResponse, { $typeName: Type }>;
  }

  /** The name of the failure. */
  failure(server: SimServer, request: ClientRequest, credentials?: Credentials): string {
    return failureOf(this.outcome(server, request, credentials));
  }

  /** These servers receive messages only from each other. */
  isolate(...servers: SimServer[]): void {
    for (const { id } of servers) this.world.side.set(id, 1);
  }

  heal(): void {
    this.world.side.clear();
  }

  watch(
    server: SimServer,
    request: MessageInitShape<typeof WatchCreateRequestSchema>,
    credentials?: Credentials,
  ) {
    const responses: WatchResponse[] = [];
    const connection = this.world.watch(
      server,
      (response) => responses.push(response),
      () => {},
      credentials,
    )!;
    const send = (union: MessageInitShape<typeof WatchRequestSchema>["requestUnion"]) =>
      connection.send(create(WatchRequestSchema, { requestUnion: union! }));
    send({ case: "createRequest", value: request });
    return { responses, send, close: () => connection.close() };
  }
}

export function failureOf(outcome: Outcome | undefined): string {
  return outcome instanceof CoreError ? outcome.failure : "none";
}
