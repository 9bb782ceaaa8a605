import { Interner, SetInterner } from "./interner.js";
/** Acceptors of the small world: enough for majorities of two that share one. */
export const acceptors = 3;
/** Numbers of things are below this, times below 64: a key for both fits into 53 bits twice over. */
const idsMax = 2 ** 22;
const timesMax = 64;
function keyFor(first, second, at) {
    return (first * idsMax + second) * timesMax + at;
}
/**
 * All that can happen to one acceptor or one proposer, worked out once by the protocol's own code and then looked up.
 * The world has a hundred times more states than its parts have.
 */
export class Steps {
    model;
    acceptors;
    proposers;
    requests;
    replies;
    sets = new SetInterner();
    #handled = new Map();
    #received = new Map();
    #acceptorMoves = new Map();
    #proposerMoves = new Map();
    #mattering = new Map();
    #renamed = new Map();
    #renamedReplies = new Map();
    #holds = new Map();
    #refusals = [];
    constructor(model) {
        this.model = model;
        this.acceptors = new Interner((acceptor) => model.keyOfAcceptor(acceptor));
        this.proposers = new Interner((proposer) => model.keyOfProposer(proposer));
        this.requests = new Interner((request) => model.keyOfRequest(request));
        this.replies = new Interner((reply) => model.keyOfReply(reply));
    }
    /** `reply` is -1 when there is none. */
    handle(acceptor, request, at) {
        const key = keyFor(acceptor, request, at);
        let result = this.#handled.get(key);
        if (result === undefined) {
            const { model } = this;
            const { after, reply } = model.handle(this.acceptors.at(acceptor), this.requests.at(request), at);
            result = {
                after: this.acceptors.idOf(after),
                reply: reply === undefined ? -1 : this.replies.idOf(reply),
            };
            if (reply !== undefined)
                this.#refusals[result.reply] = model.isRefusal(reply);
            this.#handled.set(key, result);
        }
        return result;
    }
    isRefusal(reply) {
        return this.#refusals[reply];
    }
    receive(proposer, from, reply, at) {
        const key = keyFor(proposer, inFlight(reply, from), at);
        let result = this.#received.get(key);
        if (result === undefined) {
            const stepped = this.model.receive(this.proposers.at(proposer), from, this.replies.at(reply), at);
            result = this.#result(stepped);
            this.#received.set(key, result);
        }
        return result;
    }
    /** The acceptor after the move; -1 when it can't make it. */
    moveAcceptor(move, index, acceptor, at) {
        const key = keyFor(acceptor, index, at);
        let result = this.#acceptorMoves.get(key);
        if (result === undefined) {
            const after = move.apply(this.acceptors.at(acceptor), at);
            result = after === undefined ? -1 : this.acceptors.idOf(after);
            this.#acceptorMoves.set(key, result);
        }
        return result;
    }
    moveProposer(move, index, proposer, at) {
        const key = keyFor(proposer, index, at);
        if (this.#proposerMoves.has(key))
            return this.#proposerMoves.get(key);
        const stepped = move.apply(this.proposers.at(proposer), at);
        const result = stepped && this.#result(stepped);
        this.#proposerMoves.set(key, result);
        return result;
    }
    /** Of the replies on their way to a proposer, those that can still have an effect. */
    mattering(replies, proposer) {
        if (replies === 0)
            return 0;
        const key = proposer * idsMax + replies;
        let result = this.#mattering.get(key);
        if (result === undefined) {
            const to = this.proposers.at(proposer);
            const kept = this.sets
                .members(replies)
                .filter((flight) => this.model.matters(to, senderIn(flight), this.replies.at(replyIn(flight))));
            result = this.sets.idOf(kept);
            this.#mattering.set(key, result);
        }
        return result;
    }
    /** With acceptor `i` called `order[i]`; `index` is the order's number. */
    renamed(proposer, order, index) {
        if (index === 0)
            return proposer;
        const key = proposer * 8 + index;
        let result = this.#renamed.get(key);
        if (result === undefined) {
            result = this.proposers.idOf(this.model.renamed(this.proposers.at(proposer), order));
            this.#renamed.set(key, result);
        }
        return result;
    }
    renamedReplies(replies, order, index) {
        if (index === 0 || replies === 0)
            return replies;
        const key = replies * 8 + index;
        let result = this.#renamedReplies.get(key);
        if (result === undefined) {
            const members = this.sets.members(replies);
            result = this.sets.idOf(members.map((flight) => inFlight(replyIn(flight), order[senderIn(flight)])));
            this.#renamedReplies.set(key, result);
        }
        return result;
    }
    holdOf(proposer, at) {
        const key = proposer * timesMax + at;
        if (this.#holds.has(key))
            return this.#holds.get(key);
        const hold = this.model.holdOf(this.proposers.at(proposer), at);
        this.#holds.set(key, hold);
        return hold;
    }
    #result(stepped) {
        return {
            after: this.proposers.idOf(stepped.after),
            sent: stepped.sent.map((request) => this.requests.idOf(request)),
            began: stepped.began,
        };
    }
}
/** A reply on its way: which, and from which acceptor. */
export function inFlight(reply, from) {
    return reply * acceptors + from;
}
export function senderIn(flight) {
    return flight % acceptors;
}
export function replyIn(flight) {
    return Math.floor(flight / acceptors);
}
