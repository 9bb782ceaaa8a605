import { create, toBinary } from "@bufbuild/protobuf";
import { ResponseHeaderSchema } from "../gen/etcd/rpc_pb.js";
import { CommandSchema } from "../gen/leasehold/command_pb.js";
import { nobody } from "../raft/types.js";
/** What the parts of one server share. */
export class Context {
    id;
    raft;
    limits;
    random;
    electionMs;
    /** Hands a message to whom it is for, which may be this server itself. */
    send;
    #cluster;
    state;
    nowMs = 0;
    /** Of the last entry that `state` has. */
    appliedIndex;
    leadership;
    constructor(fields) {
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
    get leads() {
        return this.leadership.role === "leader";
    }
    get knowsLeader() {
        return this.leadership.leader !== nobody;
    }
    get cluster() {
        return this.state.cluster === 0n ? this.#cluster : this.state.cluster;
    }
    header(revision = this.state.revisions.current) {
        return create(ResponseHeaderSchema, {
            clusterId: this.cluster,
            memberId: this.id,
            revision: BigInt(revision),
            raftTerm: BigInt(this.leadership.term),
        });
    }
    /** A command that the leader proposes by itself: nobody waits for an answer. */
    propose(body) {
        return this.raft.propose([toBinary(CommandSchema, create(CommandSchema, { body }))]);
    }
}
