import { create } from "@bufbuild/protobuf";
import { type Member, MemberSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import { MemberChange_Kind as Kind } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type {
  MemberAttributes,
  MemberChange,
  MemberUpdate,
} from "leasehold/etcd/gen/leasehold/command_pb.js";
import { CoreError } from "./errors.js";

/**
 * The oldest version in which this server can communicate; a cluster begins with it. Version 7: answers to
 * heartbeats carry the sender's promise, and transfers are numbered.
 */
export const oldestVersion = 7;

/** Version 8: the log agrees on the cluster's version. */
export const newestVersion = 8;

/** A server of the core, as all servers know it. */
export interface CoreMember {
  readonly id: bigint;
  /** Empty if the server has not started yet. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  /** Receives the log, but has no vote. */
  readonly learner: boolean;
  /** Id of its data directory; 0: not known yet. */
  readonly disk: bigint;
  /** To be promoted to voter as soon as it has started and caught up. */
  readonly joining: boolean;
}

/**
 * Names and addresses of the servers: a part of the replicated state. The log knows the voters independently,
 * since a change counts there before it is committed (`raft/membership.ts`); this list is derived from the
 * same entries.
 */
export class Members {
  /** Ordered by id. */
  #all: readonly CoreMember[] = [];
  /**
   * Ids of former members, which are never reused. Grows by 8 bytes per removal, which is an operator's
   * action.
   */
  readonly removed = new Set<bigint>();

  /** Each change makes a new list. */
  get all(): readonly CoreMember[] {
    return this.#all;
  }

  get(id: bigint): CoreMember | undefined {
    return this.#all.find((member) => member.id === id);
  }

  /** Returns the member other than `except` that already has one of these addresses. */
  at(urls: readonly string[], except = 0n): CoreMember | undefined {
    return this.#all.find(({ id, peerUrls }) => id !== except && peerUrls.some((url) => urls.includes(url)));
  }

  /** Sets the founding members, or those of a snapshot. */
  set(members: readonly CoreMember[]): void {
    this.#all = members.map(plain).sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** Never refuses: the log has already accepted the change. */
  change({ kind, member: id, peerUrls }: MemberChange): void {
    const others = this.#all.filter((member) => member.id !== id);
    const before = this.get(id);
    if (kind === Kind.REMOVE) {
      this.removed.add(id);
      this.set(others);
    } else if (kind === Kind.PROMOTE) {
      if (before !== undefined) this.set([...others, { ...before, learner: false, joining: false }]);
    } else {
      const learner = kind === Kind.ADD_LEARNER;
      this.set([...others, newMember(id, peerUrls, learner)]);
    }
  }

  /** @throws CoreError `memberNotFound`, `peerUrlExists` */
  update({ member: id, peerUrls }: MemberUpdate): void {
    const before = this.get(id);
    if (before === undefined) throw new CoreError("memberNotFound");
    if (this.at(peerUrls, id) !== undefined) throw new CoreError("peerUrlExists");
    this.set([...this.#all.filter((member) => member !== before), { ...before, peerUrls }]);
  }

  /** Has no effect on a former member. */
  describe({ member: id, name, clientUrls, disk }: MemberAttributes): void {
    const before = this.get(id);
    if (before === undefined) return;
    // Promises count with the member's first data directory.
    const first = before.disk === 0n ? disk : before.disk;
    this.set([
      ...this.#all.filter((member) => member !== before),
      { ...before, name, clientUrls, disk: first },
    ]);
  }
}

/** A member as added by an entry of the log. */
export function newMember(id: bigint, peerUrls: readonly string[], learner: boolean): CoreMember {
  return { id, name: "", peerUrls, clientUrls: [], learner, disk: 0n, joining: !learner };
}

function plain({ id, name, peerUrls, clientUrls, learner, disk, joining }: CoreMember): CoreMember {
  return { id, name, peerUrls: [...peerUrls], clientUrls: [...clientUrls], learner, disk, joining };
}

/** A member as clients see it. */
export function memberFields({ id, name, peerUrls, clientUrls, learner }: CoreMember): Member {
  return create(MemberSchema, {
    ID: id,
    name,
    peerURLs: [...peerUrls],
    clientURLs: [...clientUrls],
    isLearner: learner,
  });
}
