import { Lane, Operation } from "./lane.js";
/**
 * Runs algorithms over stores and clocks. The same driver serves the real world and virtual time: it knows both only as
 * ports. Answers that come after an algorithm has stopped waiting for them change nothing but what it says itself (`Ask.late`).
 */
export class Driver {
    world;
    #lanes;
    #runs = new Set();
    constructor(stores, world) {
        this.world = world;
        this.#lanes = stores.map((store) => new Lane(store));
    }
    /** A fresh look at both clocks. */
    now() {
        const { clock } = this.world;
        return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    }
    /** Resolves with what the algorithm returns, and rejects with what it throws. */
    run(protocol, options = {}) {
        return new Promise((resolve, reject) => {
            const run = new Run(this, this.#lanes, protocol, options);
            this.#runs.add(run);
            run.onEnd = () => this.#runs.delete(run);
            run.onResult = (result) => resolve(result);
            run.onError = reject;
            run.start();
        });
    }
    /** Ends what is under way as if it had been cancelled, and closes the stores. */
    async close() {
        await Promise.all(this.#lanes.map((lane) => lane.close()));
        for (const run of this.#runs)
            run.cancel();
    }
}
/** One algorithm on its way. */
class Run {
    onEnd = () => undefined;
    onResult = () => undefined;
    onError = () => undefined;
    #driver;
    #lanes;
    #protocol;
    #gate;
    #cancellation;
    #isCancelled = false;
    /** Ends the present wait if a cancellation may. */
    #interrupt;
    constructor(driver, lanes, protocol, options) {
        this.#driver = driver;
        this.#lanes = lanes;
        this.#protocol = protocol;
        this.#gate = options.gate;
        this.#cancellation = options.cancellation;
    }
    start() {
        if (this.#cancellation !== undefined) {
            this.#isCancelled = this.#cancellation.cancelled;
            this.#cancellation.onCancel = () => this.cancel();
        }
        // A generator's first `next` only brings it to its first effect: what it is given there nobody reads.
        this.resume([]);
    }
    cancel() {
        this.#isCancelled = true;
        this.#interrupt?.();
    }
    /** Hands the algorithm what came of its last effect, and starts the next. */
    resume(answers) {
        this.#interrupt = undefined;
        let step;
        try {
            step = this.#protocol.next({ now: this.#driver.now(), cancelled: this.#isCancelled, answers });
        }
        catch (error) {
            this.#end();
            this.onError(error);
            return;
        }
        if (step.done === true) {
            this.#end();
            this.onResult(step.value);
        }
        else if (step.value.kind === "delay") {
            this.#delay(step.value.delayMs);
        }
        else {
            this.#ask(step.value);
        }
    }
    #end() {
        this.onEnd();
        if (this.#cancellation !== undefined)
            this.#cancellation.onCancel = undefined;
    }
    #delay(delayMs) {
        if (delayMs === 0) {
            this.resume([]);
            return;
        }
        // With a timer even if it is over at once: a loop of cancelled delays must not starve the process.
        const end = () => {
            timer.cancel();
            this.resume([]);
        };
        const timer = this.#driver.world.timers.after(this.#isCancelled ? 0 : delayMs, end);
        if (!this.#isCancelled)
            this.#interrupt = end;
    }
    #ask(ask) {
        const wait = new Wait(ask, this.#driver, this.#gate, (answers) => this.resume(answers));
        wait.begin(this.#lanes);
        const isRead = ask.requests.every((request) => request?.op !== "replace" && request?.op !== "put");
        if (!isRead)
            return;
        this.#interrupt = () => wait.end();
        if (this.#isCancelled)
            wait.end();
    }
}
/** One question to several stores: ends once, with enough answers, all, or at its time. */
class Wait {
    #ask;
    #driver;
    #gate;
    #onEnd;
    #answers;
    #operations = [];
    #controller = new AbortController();
    #pending = 0;
    #timer;
    #hasBegun = false;
    #hasEnded = false;
    constructor(ask, driver, gate, onEnd) {
        this.#ask = ask;
        this.#driver = driver;
        this.#gate = gate;
        this.#onEnd = onEnd;
        this.#answers = ask.requests.map(() => undefined);
    }
    begin(lanes) {
        this.#pending = this.#ask.requests.filter((request) => request !== undefined).length;
        this.#timer = this.#driver.world.timers.after(this.#ask.timeoutMs, () => this.#giveUp());
        const now = this.#driver.now();
        this.#ask.requests.forEach((request, store) => {
            if (request === undefined)
                return;
            const refusal = this.#gate?.refusal(store, now);
            if (refusal === undefined)
                this.#send(lanes[store], request, store);
            else
                this.#take(store, refusal);
        });
        this.#hasBegun = true;
        // Not from within this call: an algorithm whose every question is refused must not recurse.
        if (this.#isOver())
            void Promise.resolve().then(() => this.end());
    }
    /** Stops waiting; what is under way goes on. */
    end() {
        if (this.#hasEnded)
            return;
        this.#hasEnded = true;
        this.#onEnd(this.#answers.slice());
    }
    #send(lane, request, store) {
        const operation = new Operation(request, this.#controller.signal, (answer) => this.#take(store, this.#gate?.admit(store, answer) ?? answer));
        this.#operations.push({ lane, operation });
        lane.send(operation);
    }
    #take(store, answer) {
        this.#pending--;
        if (this.#pending === 0)
            this.#timer?.cancel();
        if (this.#hasEnded) {
            this.#ask.late?.(store, answer, this.#driver.now());
            return;
        }
        this.#answers[store] = answer;
        if (this.#hasBegun && this.#isOver())
            this.end();
    }
    #isOver() {
        return this.#pending === 0 || this.#ask.enough(this.#answers);
    }
    /** The time is up: asks the stores to give up, too, and sends nothing that still waits. */
    #giveUp() {
        for (const { lane, operation } of this.#operations)
            lane.drop(operation);
        this.#controller.abort();
        this.end();
    }
}
