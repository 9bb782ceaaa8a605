/** What waits in the world's queue. Events run in the order of (time, scheduling). */
export class SimEvent {
    dueMs = 0;
    heapIndex = -1;
    heapSequence = 0;
}
/** Something to be done at a time; it can be scheduled again and again. */
export class Task extends SimEvent {
    code;
    #body;
    constructor(code, body) {
        super();
        this.code = code;
        this.#body = body;
    }
    run() {
        this.#body();
    }
}
/** Codes of events in the trace hash. */
export const EventCode = {
    chaos: 1,
    wake: 2,
    maintain: 3,
    agent: 4,
    start: 5,
    packet: 6,
    timer: 7,
    noticed: 8,
};
