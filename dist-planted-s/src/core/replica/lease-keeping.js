import { faults } from "#core-faults";
import { create } from "@bufbuild/protobuf";
import { CommandSchema } from "../gen/leasehold/command_pb.js";
import { LeaderTracker, untracked } from "./lease-tracker.js";
/**
 * The leader's care for leases: it finds those that have run out and proposes their end, and now and then has written down
 * what is left of the others. Nothing ends here: a lease and its keys go when that is committed and applied.
 */
export class LeaseKeeping {
    #context;
    #clusterTimeMs;
    tracker = untracked;
    /** Of the last proposal that ends leases. The next one waits for it, so that they cannot crowd out everything else. */
    #endingIndex = 0;
    #nextWriteMs = 0;
    #ledFromMs = 0;
    constructor(context, clusterTimeMs) {
        this.#context = context;
        this.#clusterTimeMs = clusterTimeMs;
    }
    get isTracking() {
        return this.tracker !== untracked;
    }
    /** This server leads, and has applied the first entry of its term: all that was ever answered is in its state. */
    begin() {
        const { electionMs, nowMs, state } = this.#context;
        this.tracker = new LeaderTracker(state.leases.all(), nowMs, electionMs);
        this.#endingIndex = 0;
        this.#ledFromMs = nowMs - state.clusterMs;
        this.#nextWriteMs = nowMs + this.#clusterTimeMs;
    }
    end() {
        this.tracker = untracked;
    }
    applied({ granted, ended }) {
        const { nowMs, state } = this.#context;
        for (const id of ended)
            this.tracker.ended(id);
        for (const id of granted)
            this.tracker.granted(state.leases.get(id), nowMs);
    }
    tick() {
        if (!this.isTracking)
            return;
        this.#proposeEnds();
        if (this.#clusterTimeMs > 0)
            this.#writeTime();
    }
    #proposeEnds() {
        const { appliedIndex, leadership, leads, limits, nowMs, state } = this.#context;
        if (appliedIndex < this.#endingIndex && !faults.endsUnbounded)
            return;
        const ids = this.tracker.takeDue(nowMs, faults.endsUnbounded ? Infinity : limits.leasesPerBatch);
        if (ids.length === 0)
            return;
        const value = { ids, term: BigInt(leadership.term), apart: !faults.endTogether };
        const proposed = this.#context.propose({ case: "leaseExpire", value });
        // Else nobody would ever find these again (etcd 10686).
        if (proposed.accepted)
            this.#endingIndex = proposed.index;
        else if (!faults.endForgotten)
            this.tracker.putBack(ids, nowMs);
        if (faults.removedBeforeCommitted || (faults.followersEndLeases && !leads))
            state.apply(create(CommandSchema, { body: { case: "leaseExpire", value } }), leadership.term);
    }
    /** The cluster's clock, which outlives its leaders (LogCabin's ClusterTime; etcd's lease checkpoints, 9395). */
    #writeTime() {
        const { limits, nowMs } = this.#context;
        if (nowMs < this.#nextWriteMs)
            return;
        const left = this.tracker.shorter(nowMs, this.#clusterTimeMs, limits.leasesPerBatch);
        // A full batch has successors at the next ticks.
        if (left.length < limits.leasesPerBatch)
            this.#nextWriteMs = nowMs + this.#clusterTimeMs;
        if (left.length === 0)
            return;
        // If it is refused, or lost with this leader, what stands there is longer: that errs on the safe side.
        const index = this.#proposeTime(left);
        if (index !== undefined)
            this.tracker.wroteShort(left, index);
    }
    /**
     * A refresh that is acknowledged must outlive this leader: what stands written of the lease must not be less than its
     * whole time by then. The index at which that is so; undefined if it cannot be proposed now.
     */
    writeWhole(ids) {
        const { state } = this.#context;
        const left = ids.flatMap((id) => {
            const lease = state.leases.get(id);
            return lease === undefined ? [] : [{ id, leftMs: lease.ttlSeconds * 1_000 }];
        });
        return this.#proposeTime(left);
    }
    #proposeTime(left) {
        const milliseconds = BigInt(Math.max(0, Math.floor(this.#context.nowMs - this.#ledFromMs)));
        const value = {
            milliseconds,
            left: left.map(({ id, leftMs }) => ({ id, milliseconds: BigInt(leftMs) })),
        };
        const proposed = this.#context.propose({ case: "clusterTime", value });
        return proposed.accepted ? proposed.index : undefined;
    }
}
