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
 * The oldest version that this server speaks with others; a cluster begins with it. 7: answers to heartbeats say how
 * long their senders vote for nobody else, and transfers are numbered.
 */
export const oldestVersion = 7;

/** 8: the log agrees on the cluster's version. */
export const newestVersion = 8;

/** A server of the core, as all know it. */
export interface CoreMember {
  readonly id: bigint;
  /** Empty: it has not started yet. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  /** It gets the log and has no vote. */
  readonly learner: boolean;
  /** Its data directory; 0: not known yet. */
  readonly disk: bigint;
  /** It is to vote, and gets its vote as soon as it has started and caught up. */
  readonly joining: boolean;
}

/**
 * Names and addresses of the servers: a part of the replicated state. Who votes, the log knows for itself, as
 * a change counts there before it is committed (`raft/membership.ts`); what stands here follows from the same
 * entries.
 */
export class Members {
  /** In the order of their ids. */
  #all: readonly CoreMember[] = [];
  /**
   * Ids of former members: none is used again. It grows by 8 bytes at each removal, which is an operator's
   * work.
   */
  readonly removed = new Set<bigint>();

  /** Another list after each change. */
  get all(): readonly CoreMember[] {
    return this.#all;
  }

  get(id: bigint): CoreMember | undefined {
    return this.#all.find((member) => member.id === id);
  }

  /** Whoever already has one of these addresses, beside `except`. */
  at(urls: readonly string[], except = 0n): CoreMember | undefined {
    return this.#all.find(({ id, peerUrls }) => id !== except && peerUrls.some((url) => urls.includes(url)));
  }

  /** The first members, or all of a snapshot. */
  set(members: readonly CoreMember[]): void {
    this.#all = members.map(plain).sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  /** What the log has taken already: it is not refused here. */
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

  /** Of a server that is no member any more it is nothing. */
  describe({ member: id, name, clientUrls, disk }: MemberAttributes): void {
    const before = this.get(id);
    if (before === undefined) return;
    // Its first data directory is the one that it promises by.
    const first = before.disk === 0n ? disk : before.disk;
    this.set([
      ...this.#all.filter((member) => member !== before),
      { ...before, name, clientUrls, disk: first },
    ]);
  }
}

/** As an entry of the log adds it. */
export function newMember(id: bigint, peerUrls: readonly string[], learner: boolean): CoreMember {
  return { id, name: "", peerUrls, clientUrls: [], learner, disk: 0n, joining: !learner };
}

function plain({ id, name, peerUrls, clientUrls, learner, disk, joining }: CoreMember): CoreMember {
  return { id, name, peerUrls: [...peerUrls], clientUrls: [...clientUrls], learner, disk, joining };
}

/** As clients see them. */
export function memberFields({ id, name, peerUrls, clientUrls, learner }: CoreMember): Member {
  return create(MemberSchema, {
    ID: id,
    name,
    peerURLs: [...peerUrls],
    clientURLs: [...clientUrls],
    isLearner: learner,
  });
}
