import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Random } from "leasehold/common";
import { type ResponseHeader, ResponseHeaderSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { Proposed, ReplicatedLog } from "../raft/api.js";
import { type MemberId, nobody, type Ready } from "../raft/types.js";
import type { CoreState } from "../state/state.js";
import type { ReplicaLimits } from "./options.js";
import type { CopyMessage } from "../copies/copies.js";
import type { LeaderMessage } from "./proposals/leader-messages.js";

export type CommandBody = NonNullable<MessageInitShape<typeof CommandSchema>["body"]>;

/** The context shared by the parts of one server. */
export class Context {
  readonly id: MemberId;
  readonly raft: ReplicatedLog;
  readonly limits: ReplicaLimits;
  readonly random: Random;
  readonly electionMs: number;
  /** Sends a message to its receiver, which may be this server itself. */
  readonly send: (message: LeaderMessage | CopyMessage) => void;
  readonly #cluster: bigint;
  state: CoreState;
  nowMs = 0;
  /** Index of the last entry in `state`. */
  appliedIndex: number;
  leadership: NonNullable<Ready["leadership"]>;

  constructor(
    fields: Pick<Context, "id" | "cluster" | "raft" | "state" | "limits" | "random" | "electionMs" | "send">,
  ) {
    this.id = fields.id;
    this.raft = fields.raft;
    this.limits = fields.limits;
    this.random = fields.random;
    this.electionMs = fields.electionMs;
    this.send = fields.send;
    this.#cluster = fields.cluster;
    this.state = fields.state;
    const { applied, role, leader, term } = fields.raft.status();
    this.appliedIndex = applied;
    this.leadership = { role, leader, term };
  }

  get leads(): boolean {
    return this.leadership.role === "leader";
  }

  get knowsLeader(): boolean {
    return this.leadership.leader !== nobody;
  }

  /** Whether this server is a learner, which answers only what needs no vote. */
  get isLearner(): boolean {
    return this.state.members.get(this.id)?.learner === true;
  }

  get cluster(): bigint {
    return this.state.cluster === 0n ? this.#cluster : this.state.cluster;
  }

  header(revision = this.state.revisions.current): ResponseHeader {
    return create(ResponseHeaderSchema, {
      clusterId: this.cluster,
      memberId: this.id,
      revision: BigInt(revision),
      raftTerm: BigInt(this.leadership.term),
    });
  }

  /**
   * Proposes a command of the leader's own, which gets no answer. Clients' commands have a number by which
   * they are answered, and go directly from `ClientRequests` to `raft`.
   */
  propose(body: CommandBody): Proposed {
    return this.raft.propose([toBinary(CommandSchema, create(CommandSchema, { body }))]);
  }

  /** The same on any server; the command may be lost. */
  proposeAnywhere(body: CommandBody): void {
    if (this.leads) {
      this.propose(body);
      return;
    }
    const { term, leader: to } = this.leadership;
    const command = toBinary(CommandSchema, create(CommandSchema, { body }));
    const once = { number: 0, life: 0, settled: 0, again: false };
    this.send({ kind: "propose", from: this.id, to, term, ...once, command });
  }
}
