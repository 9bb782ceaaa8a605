import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { SimRandom } from "@leasehold/sim/inner/kit/random.js";
import type { SimServer } from "@leasehold/sim/inner/core/world/server.js";
import { type Sent, VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { seedOf } from "../../../../test/support/seed.js";
import {
  type Member,
  MemberAddRequestSchema,
  MemberListRequestSchema,
  MemberPromoteRequestSchema,
  MemberRemoveRequestSchema,
  MemberUpdateRequestSchema,
} from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { CoreError } from "../state/errors.js";
import type { ClientRequest } from "./types.js";

/**
 * Several operators change the members concurrently, on any servers, while leaders change and servers stop.
 */

const operators = 4;
const steps = 60;
/** Only a few, so that operators often compete for one. */
const addresses = 5;
const membersMost = 5;

interface Asked {
  readonly request: ClientRequest;
  readonly sent: Sent;
}

class Search {
  readonly #random: SimRandom;
  readonly #cluster: VirtualCluster;
  readonly #asked: Asked[] = [];
  done = 0;

  constructor(seed: number) {
    this.#random = new SimRandom(seed);
    const faults = { latencyMs: 8, lossRate: 0.02, duplicateRate: 0.05, writeMs: 20 };
    this.#cluster = new VirtualCluster({ seed, membershipEveryMs: Infinity, ...faults });
    this.#cluster.leader();
    this.#cluster.run(3_000);
  }

  /** @throws Error if an answer or the final membership is impossible */
  run(): void {
    for (let step = 0; step < steps; step += 1) {
      this.#disturb();
      this.#startAdded();
      for (let missing = operators - this.#asked.length; missing > 0; missing -= 1) this.#ask();
      this.#cluster.run(this.#random.exponential(60));
      this.#takeAnswers();
    }
    for (const server of this.#members) if (!server.isUp) this.#cluster.world.start(server);
    this.#cluster.run(8_000);
    this.#takeAnswers();
    this.#startAdded();
    this.#cluster.run(8_000);
    this.#compareLists();
  }

  get #members(): SimServer[] {
    return this.#cluster.world.members();
  }

  #ask(): void {
    // Until added servers have started, all members may be down.
    const up = this.#members.filter((server) => server.isUp);
    if (up.length === 0) return;
    const request = this.#choose();
    this.#asked.push({ request, sent: this.#cluster.send(this.#random.pick(up), request) });
  }

  #choose(): ClientRequest {
    const { all } = this.#cluster.world.reference.state.members;
    const { id: ID } = this.#random.pick([...all]);
    const peerURLs = [`http://a${Math.floor(this.#random.between(0, addresses))}:1`];
    const learner = all.find((member) => member.learner);
    if (learner !== undefined && this.#random.chance(0.2))
      return { kind: "memberPromote", request: create(MemberPromoteRequestSchema, { ID: learner.id }) };
    if (this.#random.chance(0.5))
      return { kind: "memberUpdate", request: create(MemberUpdateRequestSchema, { ID, peerURLs }) };
    if (all.length >= membersMost || (all.length > 2 && this.#random.chance(0.4)))
      return { kind: "memberRemove", request: create(MemberRemoveRequestSchema, { ID }) };
    const isLearner = this.#random.chance(0.3);
    return { kind: "memberAdd", request: create(MemberAddRequestSchema, { peerURLs, isLearner }) };
  }

  #disturb(): void {
    const { world } = this.#cluster;
    const [server] = [this.#random.pick(this.#members)];
    if (this.#random.chance(0.1)) world.leader()?.step({ kind: "transfer", to: server!.id });
    const down = this.#members.filter(({ isUp }) => !isUp);
    if (down.length > 0 && this.#random.chance(0.5)) world.start(down[0]!);
    else if (down.length === 0 && this.#random.chance(0.05)) world.crash(server!);
  }

  #startAdded(): void {
    const { world } = this.#cluster;
    for (const { id } of world.reference.state.members.all)
      if (!world.servers.some((server) => server.id === id)) world.join(id);
  }

  #takeAnswers(): void {
    for (const { request, sent } of this.#asked.splice(0)) {
      const { outcome } = sent;
      if (outcome === undefined) this.#asked.push({ request, sent });
      else if (outcome !== "lost" && !(outcome instanceof CoreError)) {
        this.done += 1;
        checkAnswer(request, (outcome as unknown as { members: Member[] }).members);
      }
    }
  }

  #compareLists(): void {
    const list = create(MemberListRequestSchema, { linearizable: true });
    const lists = this.#members
      .filter(({ id }) => this.#cluster.world.reference.state.members.get(id)?.learner === false)
      .map((server) =>
        this.#cluster.ask(server, "etcdserverpb.MemberListResponse", { kind: "memberList", request: list }),
      )
      .map(({ members }) => members.map(({ ID, peerURLs }) => `${ID} ${peerURLs.join()}`).join("\n"));
    if (new Set(lists).size > 1) throw new Error(`servers have different members: ${lists.join(" / ")}`);
  }
}

function checkAnswer(request: ClientRequest, members: readonly Member[]): void {
  const places = members.flatMap(({ peerURLs }) => peerURLs);
  if (new Set(places).size < places.length)
    throw new Error(`two members are at one address: ${places.join()}`);
  if (!isDone(request, members)) throw new Error(`${request.kind} is said to be done, and is not`);
}

function isDone(request: ClientRequest, members: readonly Member[]): boolean {
  switch (request.kind) {
    case "memberUpdate": {
      const found = members.find(({ ID }) => ID === request.request.ID);
      return found?.peerURLs.join() === request.request.peerURLs.join();
    }
    case "memberRemove":
      return !members.some(({ ID }) => ID === request.request.ID);
    case "memberPromote":
      return members.some(({ ID, isLearner }) => ID === request.request.ID && !isLearner);
    case "memberAdd":
      return members.some(({ peerURLs }) => peerURLs.join() === request.request.peerURLs.join());
    default:
      return false;
  }
}

describe("concurrent membership changes", () => {
  const first = seedOf();
  const seeds = Array.from(
    { length: Number(process.env["LEASEHOLD_SEEDS"] ?? 2) },
    (_, index) => first + index,
  );

  test("are each carried out or refused, and all servers agree on the outcome", () => {
    let done = 0;
    for (const seed of seeds) {
      const search = new Search(seed);
      search.run();
      done += search.done;
    }
    expect(done).toBeGreaterThan(10 * seeds.length);
  });

  test.each([
    ["secondChangeAtOnce", /membership|at one address/],
    ["addressTwice", /two members are at one address/],
  ] as const)("planted: %s", (mistake, found) => {
    withFaults({ [mistake]: true }, () => {
      expect(() => {
        for (const seed of seeds) new Search(seed).run();
      }).toThrow(found);
    });
  });
});
