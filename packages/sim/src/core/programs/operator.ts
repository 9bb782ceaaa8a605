import { create } from "@bufbuild/protobuf";
import {
  MemberAddRequestSchema,
  MemberPromoteRequestSchema,
  MemberRemoveRequestSchema,
} from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { ClientRequest } from "@leasehold/core/inner/replica/types.js";
import { CoreError } from "@leasehold/core/inner/state/errors.js";
import type { CoreMember } from "@leasehold/core/inner/state/members.js";
import { SimRandom } from "../../kit/random.js";
import type { CoreWorld } from "../world/world.js";

/** The operators' own random stream, so that the other draws of a run stay the same. */
const operatorStream = 2 ** 51;

const membersMost = 5;
const membersLeast = 2;

/**
 * Adds servers, promotes learners and removes servers while other faults occur. A removed server keeps
 * running, like a process that has not noticed: it must not disturb the others.
 */
export class Operator {
  readonly #world: CoreWorld;
  readonly #random: SimRandom;
  #added = 0;

  constructor(world: CoreWorld) {
    this.#world = world;
    this.#random = new SimRandom(world.plan.seed + operatorStream);
  }

  begin(): void {
    const { membershipEveryMs = Infinity, stableFromMs } = this.#world.plan;
    const inMs = this.#random.exponential(membershipEveryMs);
    if (this.#world.nowMs + inMs > stableFromMs) {
      // The member added last gets its server, and catches up.
      this.#world.at(stableFromMs, () => this.#startAdded());
      return;
    }
    this.#world.after(inMs, () => this.#go());
  }

  #go(): void {
    this.#startAdded();
    const { reference, servers } = this.#world;
    const { all } = reference.state.members;
    const up = servers.filter((server) => server.isUp);
    // Before the start, or when no server is up.
    if (all.length === 0 || up.length === 0) {
      this.begin();
      return;
    }
    this.#world.counters.memberChanges += 1;
    this.#world.call(this.#random.pick(up), this.#choose(all), (outcome) => {
      const text = outcome === "lost" ? outcome : outcome instanceof CoreError ? outcome.failure : "done";
      this.#world.log(`a change of the membership: ${text}`);
      if (text === "done") this.#world.counters.memberChangesDone += 1;
      this.begin();
    });
  }

  #choose(all: readonly CoreMember[]): ClientRequest {
    const learner = all.find((member) => member.learner);
    if (learner !== undefined && this.#random.chance(0.7))
      return { kind: "memberPromote", request: create(MemberPromoteRequestSchema, { ID: learner.id }) };
    const grows = all.length <= membersLeast || (all.length < membersMost && this.#random.chance(0.5));
    if (!grows) {
      const ID = this.#random.pick(all).id;
      return { kind: "memberRemove", request: create(MemberRemoveRequestSchema, { ID }) };
    }
    this.#added += 1;
    const peerURLs = [`http://added-${this.#added}:1`];
    const isLearner = this.#random.chance(0.5);
    return { kind: "memberAdd", request: create(MemberAddRequestSchema, { peerURLs, isLearner }) };
  }

  /** Starts added members, even those whose addition got no answer. */
  #startAdded(): void {
    const { reference, servers } = this.#world;
    for (const { id } of reference.state.members.all)
      if (!servers.some((server) => server.id === id)) this.#world.join(id);
  }
}
