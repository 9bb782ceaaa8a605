import { Deadlines } from "../../lease/deadlines.js";
import { CoreError } from "../state/errors.js";
/** Clients' requests that are not answered. Each has a deadline, and there are so many at most. */
export class Requests {
    #limits;
    #byId = new Map();
    #deadlines = new Deadlines();
    #bytes = 0;
    #answers = [];
    constructor(limits) {
        this.#limits = limits;
    }
    get size() {
        return this.#byId.size;
    }
    get hasAnswers() {
        return this.#answers.length > 0;
    }
    takeAnswers() {
        const answers = this.#answers;
        this.#answers = [];
        return answers;
    }
    /** @throws CoreError `tooManyRequests` */
    admit(id, request, deadlineMs, number, command) {
        if (this.#byId.has(id))
            throw new RangeError(`the request ${id} is not answered yet`);
        const bytes = this.#bytes + (command?.length ?? 0);
        if (this.size >= this.#limits.requestsMax || bytes > this.#limits.requestBytesTotalMax)
            throw new CoreError("tooManyRequests");
        const pending = {
            id,
            request,
            number,
            command,
            stage: "waiting",
            term: 0,
            isOpen: true,
            dueMs: 0,
            heapIndex: -1,
            heapSequence: 0,
        };
        this.#bytes = bytes;
        this.#byId.set(id, pending);
        this.#deadlines.schedule(pending, deadlineMs);
        return pending;
    }
    /** What never became pending. */
    answerAtOnce(id, result) {
        this.#answers.push({ id, result });
    }
    answer(pending, result) {
        if (this.#close(pending))
            this.#answers.push({ id: pending.id, result });
    }
    cancel(id) {
        const pending = this.#byId.get(id);
        if (pending !== undefined)
            this.#close(pending);
        return pending;
    }
    /** Taken out: nothing more can be answered. */
    popDue(nowMs) {
        return this.#deadlines.popDue(nowMs);
    }
    #close(pending) {
        if (!pending.isOpen)
            return false;
        pending.isOpen = false;
        this.#byId.delete(pending.id);
        this.#deadlines.cancel(pending);
        this.#bytes -= pending.command?.length ?? 0;
        return true;
    }
}
