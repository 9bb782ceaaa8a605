import { CoreError } from "../state/errors.js";
import { Turns } from "./turns.js";
/**
 * Drives a server's logic: what happens in one turn of the event loop goes in together, and what is to be done comes out
 * once, so that many requests make one write to disk and one message to each follower. Nothing here waits for the disk. What takes
 * longer than a turn goes on in the next one.
 */
export class CoreHost {
    #options;
    #answers = new Map();
    #watches = new Map();
    #ticking;
    /** Writes that are not on disk yet, and the last of them. */
    #writing = 0;
    #lastWrite = Promise.resolve();
    /** Snapshots that have come in this turn. */
    #received = [];
    #lastId = 0;
    #isScheduled = false;
    #isStopped = false;
    constructor(options) {
        this.#options = options;
        this.#ticking = setInterval(() => this.step({ kind: "tick" }), options.tickMs);
    }
    status() {
        return this.#options.server.status();
    }
    step(input) {
        if (this.#isStopped)
            return;
        try {
            this.#options.server.step(input, performance.now());
        }
        catch (error) {
            this.#fail(error);
        }
        this.#schedule();
    }
    #schedule() {
        if (this.#isScheduled)
            return;
        this.#isScheduled = true;
        setImmediate(this.#turn);
    }
    /**
     * Asks something for a client.
     *
     * @param settle called once, unless the request is cancelled before
     * @returns the number to cancel it by
     */
    request(request, deadlineMs, settle) {
        const id = ++this.#lastId;
        if (this.#isStopped) {
            settle(new CoreError("stopped"));
            return id;
        }
        this.#answers.set(id, settle);
        this.step({ kind: "request", id, request, deadlineMs });
        return id;
    }
    /** The client is gone. */
    cancel(id) {
        if (this.#answers.delete(id))
            this.step({ kind: "cancel", id });
    }
    /** Begins a stream of watches, and answers its number. */
    openWatches(deliver) {
        const stream = ++this.#lastId;
        this.#watches.set(stream, deliver);
        return stream;
    }
    watch(stream, request) {
        if (this.#watches.has(stream))
            this.step({ kind: "watch", stream, request });
    }
    watchSent(stream, responses) {
        if (this.#watches.has(stream))
            this.step({ kind: "watch-sent", stream, responses });
    }
    closeWatches(stream) {
        if (this.#watches.delete(stream))
            this.step({ kind: "watch-closed", stream });
    }
    /** A snapshot has arrived as a whole; `state` was restored from it. */
    receiveSnapshot(message, pieces, state) {
        this.#received.push({ meta: message.meta, pieces });
        this.step({ kind: "snapshot-received", message, state });
    }
    /** What is under way is answered with `server stopped`; resolves when nothing is written any more. */
    async stop() {
        if (this.#isStopped)
            return;
        this.#isStopped = true;
        clearInterval(this.#ticking);
        for (const settle of this.#answers.values())
            settle(new CoreError("stopped"));
        this.#answers.clear();
        await this.#lastWrite;
    }
    #turn = () => {
        this.#isScheduled = false;
        const turns = new Turns();
        try {
            for (let effects = this.#take(); effects !== undefined; effects = this.#take()) {
                this.#carryOut(effects);
                if (!turns.isOver)
                    continue;
                this.#schedule();
                break;
            }
        }
        catch (error) {
            this.#fail(error);
        }
        // A snapshot that was not taken at once was not wanted.
        this.#received = [];
    };
    #take() {
        return this.#isStopped ? undefined : this.#options.server.take();
    }
    #carryOut({ early, persist, messages, answers, watches, snapshot, leadership }) {
        const { send } = this.#options;
        for (const message of early)
            send(message);
        if (persist !== undefined)
            this.#persist(persist, messages);
        else if (this.#writing > 0)
            this.#afterWrites(messages);
        else
            for (const message of messages)
                send(message);
        for (const { id, result } of answers) {
            const settle = this.#answers.get(id);
            this.#answers.delete(id);
            if (settle !== undefined)
                this.#hand(settle, result);
        }
        for (const { stream, response } of watches) {
            const deliver = this.#watches.get(stream);
            if (deliver !== undefined)
                this.#hand(deliver, response);
        }
        if (snapshot !== undefined)
            void this.#save(snapshot);
        if (leadership !== undefined)
            this.#options.leadership(leadership);
    }
    /** What goes wrong at one client's edge is not this server's end. */
    #hand(take, content) {
        if (content instanceof CoreError && content.failure === "internal")
            this.#mistake(content.cause);
        try {
            take(content);
        }
        catch (error) {
            this.#mistake(error);
        }
    }
    #mistake(error) {
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        this.#options.trouble(`a client's request has failed inside the server: ${text}`);
    }
    /** Persist before send. */
    #persist(persist, messages) {
        this.#writing += 1;
        const received = this.#received.find(({ meta }) => meta.index === persist.snapshot?.index);
        this.#lastWrite = this.#options.disk.persist(persist, received).then(() => {
            this.#writing -= 1;
            if (this.#isStopped)
                return;
            for (const message of messages)
                this.#options.send(message);
            this.step({ kind: "persisted", sequence: persist.sequence });
        }, (error) => this.#fail(error));
    }
    #afterWrites(messages) {
        if (messages.length === 0)
            return;
        this.#lastWrite = this.#lastWrite.then(() => {
            if (!this.#isStopped)
                for (const message of messages)
                    this.#options.send(message);
        });
    }
    async #save(snapshot) {
        try {
            await this.#options.disk.saveSnapshot(snapshot);
            this.step({ kind: "snapshot-written", meta: snapshot.meta });
        }
        catch (error) {
            // The log has everything: another is tried later. If the log cannot be written either, that stops the server.
            this.#options.trouble(`no snapshot was taken: ${error.message}`);
            this.step({ kind: "snapshot-failed" });
        }
    }
    #fail(error) {
        if (this.#isStopped)
            return;
        void this.stop();
        this.#options.failed(error);
    }
}
