import { SideCalls } from "../../flease/side-calls.js";
import { LeaseholdError } from "../../lease/errors.js";
/** A connection to one incarnation of another node, or to itself. */
class Connection {
    node;
    incarnation;
    owner;
    constructor(node) {
        this.node = node;
        this.incarnation = node.incarnation;
        this.owner = node.owner;
    }
    get role() {
        return this.node.isMember ? "member" : "client";
    }
    get isOpen() {
        const { node } = this;
        return node.peer !== undefined && node.incarnation === this.incarnation && node.owner === this.owner;
    }
}
/** Nobody says anything of itself here. */
const noLabels = {
    set: () => true,
    of: () => undefined,
    gone: () => { },
    sweep: () => { },
};
/** What one life of a node asks and answers beside the protocol. */
export class Side {
    calls;
    peer;
    #world;
    #node;
    #timers;
    #connections = [];
    #pending = new Map();
    #lastId = 0;
    #works = false;
    constructor(world, node, timers) {
        this.#world = world;
        this.#node = node;
        this.#timers = timers;
        this.peer = node.peer;
        this.calls = new SideCalls(this, noLabels);
    }
    now() {
        return this.#node.now();
    }
    /** Each step in an event of its own: whatever else happens may happen in between. */
    sideWork() {
        if (this.#works)
            return;
        this.#works = true;
        this.#timers.after(0, () => {
            this.#works = false;
            if (this.calls.work(() => false))
                this.sideWork();
        });
    }
    /** Connections need nobody else here. */
    get transport() {
        return this;
    }
    get loopback() {
        return this.#node.isMember ? this.#connect(this.#node) : undefined;
    }
    get links() {
        const others = this.#world.nodes.filter((other) => other !== this.#node && other.peer !== undefined);
        return others.map((other) => this.#connect(other));
    }
    get provider() {
        return { releaseRequested: (request) => this.#node.waist?.provider.releaseRequested(request) };
    }
    /** As a program's driver asks a member. */
    async ask(member, method, params, timeoutMs) {
        const to = this.#world.nodes[member];
        if (to.peer === undefined)
            throw unreachable(to.name);
        const link = this.#connect(to);
        if (to === this.#node)
            return this.calls.answer(link, method, params);
        return this.call(link, method, params, timeoutMs);
    }
    /** Something has arrived. */
    hear(from, text) {
        const note = JSON.parse(text);
        if (note.method !== undefined)
            void this.#answer(this.#connect(from), note.id, note.method, note.params);
        else
            this.#settle(note);
    }
    /** A node has died or goes on as another owner: connections to what it was are gone. */
    disconnected(node) {
        const link = this.#connections[node.index];
        if (link !== undefined && !link.isOpen)
            this.#drop(link);
    }
    /** Ends all connections: for good, or to go on as another owner. */
    close() {
        this.calls.close();
        this.#connections.length = 0;
        for (const id of this.#pending.keys())
            this.#settle({ id, error: "the connection was closed" });
    }
    #connect(node) {
        const known = this.#connections[node.index];
        if (known?.isOpen === true)
            return known;
        if (known !== undefined)
            this.#drop(known);
        return (this.#connections[node.index] = new Connection(node));
    }
    #drop(link) {
        const { index, name } = link.node;
        this.#connections[index] = undefined;
        this.calls.disconnected(link);
        for (const [id, { link: waiting }] of this.#pending)
            if (waiting === link)
                this.#settle({ id, error: `${name} is gone` });
        this.#world.stir(this.#node);
    }
    call(link, method, params, timeoutMs) {
        const id = (this.#lastId += 1);
        return new Promise((resolve, reject) => {
            const timer = this.#timers.after(timeoutMs, () => this.#settle({ id, error: `no answer within ${timeoutMs} ms` }));
            this.#pending.set(id, { link, timer, resolve, reject });
            this.#post(link, { id, method, params });
        });
    }
    async #answer(link, id, method, params) {
        try {
            this.#post(link, { id, value: await this.calls.answer(link, method, params) });
        }
        catch (error) {
            if (!(error instanceof LeaseholdError))
                throw error;
            this.#post(link, { id, error: error.message });
        }
    }
    #post(link, note) {
        if (link.isOpen && this.#node.side === this)
            this.#node.whisper(link.node.index, link.incarnation, JSON.stringify(note));
    }
    #settle({ id, value, error }) {
        const pending = this.#pending.get(id);
        if (pending === undefined)
            return;
        this.#pending.delete(id);
        pending.timer.cancel();
        if (error === undefined)
            pending.resolve(value);
        else
            pending.reject(unreachable(error));
    }
}
function unreachable(why) {
    return new LeaseholdError("UNREACHABLE", why);
}
