import { CoreError } from "../../state/errors.js";
/**
 * How long a request may take when its client has set no deadline, beside two election timeouts: etcd's figures. A leader can be
 * lost and found once in it.
 */
const requestMs = 5_000;
/** On the clock that requests are judged by. */
export function deadlineOf(call, electionMs) {
    const deadline = call.getDeadline();
    const leftMs = (deadline instanceof Date ? deadline.getTime() : deadline) - Date.now();
    return performance.now() + Math.min(leftMs, requestMs + 2 * electionMs);
}
/** A client may ask to be refused by a server that knows no leader, instead of waiting. */
export function asksForLeader(call) {
    return call.metadata.get("hasleader").includes("true");
}
/** What grpc-js makes a status of. */
export function grpcError(error) {
    return { code: error.code, details: error.message };
}
/** How many election timeouts a stream outlives its server's leader, if its client has asked for one: etcd's figure. */
const leaderlessFactor = 3;
/** The streams that are open, which a stop ends. */
export class Streams {
    #host;
    #electionMs;
    #open = new Map();
    #looking;
    #ledMs = performance.now();
    /** More are refused: each costs memory for as long as its client likes. */
    static max = 16_384;
    constructor(host, electionMs) {
        this.#host = host;
        this.#electionMs = electionMs;
        this.#looking = setInterval(() => this.#look(), electionMs / 2);
    }
    /** False: it has been refused. */
    admit(stream) {
        const wantsLeader = asksForLeader(stream);
        if (this.#open.size >= Streams.max) {
            fail(stream, new CoreError("tooManyRequests"));
            return false;
        }
        if (wantsLeader && this.#host.status().leader === 0n) {
            fail(stream, new CoreError("noLeader"));
            return false;
        }
        this.#open.set(stream, wantsLeader);
        const gone = () => this.#open.delete(stream);
        stream.once("cancelled", gone).once("close", gone);
        return true;
    }
    stop() {
        clearInterval(this.#looking);
        for (const stream of this.#open.keys())
            fail(stream, new CoreError("stopped"));
    }
    #look() {
        const nowMs = performance.now();
        if (this.#host.status().leader !== 0n)
            this.#ledMs = nowMs;
        if (nowMs - this.#ledMs < leaderlessFactor * this.#electionMs)
            return;
        for (const [stream, wantsLeader] of this.#open)
            if (wantsLeader)
                fail(stream, new CoreError("noLeader"));
    }
}
/** Ends a stream with an error. */
export function fail(stream, error) {
    stream.emit("error", grpcError(error));
}
