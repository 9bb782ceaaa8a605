const majority = 2;
/** Ballots are (clock, id), with the id in the lowest bit. */
const proposersMax = 2;
export class PublishedModel {
    proposers = proposersMax;
    acceptorMoves = [
        {
            name: "ends its recovery wait",
            kind: undefined,
            apply: (acceptor, at) => acceptor.ready || at < acceptor.readyAt ? undefined : { ...acceptor, ready: true, readyAt: 0 },
        },
    ];
    proposerMoves = [
        { name: "acquires", kind: "acquire", apply: (proposer, at) => this.#acquire(proposer, at) },
    ];
    #world;
    constructor(world) {
        this.#world = world;
    }
    startAcceptor(at) {
        return { ...this.readyAcceptor(), ready: false, readyAt: at + this.#world.ttlMax };
    }
    readyAcceptor() {
        return { ready: true, readyAt: 0, read: -1, written: -1, lease: undefined };
    }
    startProposer(index) {
        const nothing = { readLease: undefined, lease: undefined, hold: undefined };
        return { index, ballot: -1, phase: "idle", acks: [], readBallot: -1, token: 0, ...nothing };
    }
    keyOfAcceptor(acceptor) {
        return JSON.stringify(acceptor);
    }
    keyOfProposer(proposer) {
        return JSON.stringify(proposer);
    }
    keyOfRequest(request) {
        return JSON.stringify(request);
    }
    keyOfReply(reply) {
        return JSON.stringify(reply);
    }
    /** Algorithm 1. */
    handle(acceptor, { kind, ballot, lease }) {
        if (!acceptor.ready)
            return { after: acceptor, reply: undefined };
        const { read, written } = acceptor;
        if (kind === "READ") {
            if (written >= ballot || read >= ballot)
                return { after: acceptor, reply: this.#nack(ballot) };
            const reply = { kind: "ackREAD", ballot, written, lease: acceptor.lease };
            return { after: { ...acceptor, read: ballot }, reply };
        }
        if (written > ballot || read > ballot)
            return { after: acceptor, reply: this.#nack(ballot) };
        const after = { ...acceptor, written: ballot, lease };
        return { after, reply: { kind: "ackWRITE", ballot, written: -1, lease: undefined } };
    }
    /** Algorithms 2 to 4: what to do with the acknowledgements of a majority. */
    receive(proposer, from, reply, at) {
        const { index, ballot } = proposer;
        if (!this.matters(proposer, from, reply))
            return unchanged(proposer);
        if (reply.kind === "nack")
            return unchanged({ ...this.#idle(proposer) });
        const acks = [...proposer.acks, from].sort((left, right) => left - right);
        const newer = reply.kind === "ackREAD" && reply.written > proposer.readBallot;
        const heard = newer
            ? { ...proposer, acks, readBallot: reply.written, readLease: reply.lease }
            : { ...proposer, acks };
        if (acks.length < majority)
            return unchanged(heard);
        if (proposer.phase === "writing")
            return this.#decided(heard);
        const known = heard.readLease;
        const { skew, ttlMax } = this.#world;
        // In the safety period of another's lease one waits, and tries again.
        if (known !== undefined && at >= known.until && at < known.until + skew)
            return unchanged(this.#idle(heard));
        const free = known === undefined || at >= known.until + skew;
        const lease = free ? { owner: `p${index}`, until: at + ttlMax } : known;
        const writing = { ...this.#idle(heard), ballot, phase: "writing", lease };
        return { after: writing, sent: [{ kind: "WRITE", from: index, ballot, lease }], began: undefined };
    }
    senderOf(request) {
        return request.from;
    }
    isRefusal(reply) {
        return reply.kind === "nack";
    }
    matters(proposer, from, reply) {
        if (reply.ballot !== proposer.ballot || proposer.acks.includes(from))
            return false;
        if (reply.kind === "nack")
            return proposer.phase !== "idle";
        return proposer.phase === (reply.kind === "ackREAD" ? "reading" : "writing");
    }
    renamed(proposer, order) {
        const acks = proposer.acks.map((from) => order[from]).sort((left, right) => left - right);
        return { ...proposer, acks };
    }
    holdOf({ hold, token, ballot }, at) {
        if (hold === undefined || at >= hold.until)
            return undefined;
        return { owner: hold.owner, until: hold.until, token, number: ballot, sequence: 0 };
    }
    guards() {
        return true;
    }
    gaveBack() {
        return false;
    }
    describeRequest({ kind, from, ballot, lease }) {
        return `p${from}'s ${kind}(${describeBallot(ballot)})${describeLease(lease)}`;
    }
    describeReply({ kind, ballot, lease }) {
        return `${kind}(${describeBallot(ballot)})${describeLease(lease)}`;
    }
    #acquire(proposer, at) {
        if (proposer.phase !== "idle")
            return undefined;
        const ballot = at * proposersMax + proposer.index;
        if (ballot <= proposer.ballot)
            return undefined;
        const after = { ...this.#idle(proposer), ballot, phase: "reading" };
        return {
            after,
            sent: [{ kind: "READ", from: proposer.index, ballot, lease: undefined }],
            began: undefined,
        };
    }
    #decided(proposer) {
        const { lease, index, ballot } = proposer;
        if (lease?.owner !== `p${index}`)
            return unchanged(this.#idle(proposer));
        return { after: { ...this.#idle(proposer), hold: lease, token: ballot }, sent: [], began: ballot };
    }
    #idle(proposer) {
        const { index, ballot, hold, token } = proposer;
        return { ...this.startProposer(index), ballot, hold, token };
    }
    #nack(ballot) {
        return { kind: "nack", ballot, written: -1, lease: undefined };
    }
}
function unchanged(after) {
    return { after, sent: [], began: undefined };
}
function describeBallot(ballot) {
    return `${Math.floor(ballot / proposersMax)}.p${ballot % proposersMax}`;
}
function describeLease(lease) {
    return lease === undefined ? "" : ` ${lease.owner}'s lease until ${lease.until}`;
}
