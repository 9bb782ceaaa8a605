import { setImmediate as nextTurn } from "node:timers/promises";
/**
 * How long one piece of work may keep the event loop at a time, ms. A few go on beside each other, and then it is somebody else's turn:
 * heartbeats are sent and answered in time, however much there is to do.
 */
export const turnMs = 4;
/** What keeps the event loop at most for a turn at a time. */
export class Turns {
    #endMs = performance.now() + turnMs;
    get isOver() {
        return performance.now() >= this.#endMs;
    }
    /** Resolves when all that waits for the event loop has had its turn. */
    async next() {
        await nextTurn();
        this.#endMs = performance.now() + turnMs;
    }
}
export async function* inTurns(items) {
    const turns = new Turns();
    for (const item of items) {
        if (turns.isOver)
            await turns.next();
        yield item;
    }
}
export async function finishInTurns(steps) {
    const turns = new Turns();
    for (;;) {
        const step = steps.next();
        if (step.done === true)
            return step.value;
        if (turns.isOver)
            await turns.next();
    }
}
