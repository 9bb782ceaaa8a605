import { holdIsValid } from "../../flease/expiry.js";
import { decodeEntry } from "../../grid/codec.js";
import { entryRegister } from "../../grid/registers.js";
/** Looks after every event whether the grid's invariants hold. */
export class GridChecks {
    violation;
    counters = {
        tenures: 0,
        renewals: 0,
        releases: 0,
        refusals: 0,
        takeovers: 0,
        crashes: 0,
        pauses: 0,
        forgets: 0,
        clockFaults: 0,
        ghosts: 0,
    };
    #world;
    /** By resource: tenures that a program believes in. */
    #tenures = new Map();
    #greatest = new Map();
    /** Tenures that have ended: `owner/token`. */
    #ended = new Set();
    /** Looked at after every event, and seldom changed. */
    #decoded = new WeakMap();
    constructor(world) {
        this.#world = world;
    }
    begins(client, slot) {
        const { resource, token } = slot;
        const tenure = { client, token, sinceMs: this.#world.timeMs };
        this.counters.tenures += 1;
        const before = this.#greatest.get(resource);
        if (before !== undefined && before.client.isDown && before.client !== client)
            this.counters.takeovers += 1;
        if (before !== undefined && token <= before.token)
            this.#found("I2", `${client.name} got the token ${token} for ${resource} after ${before.token}`);
        if (this.#ended.has(`${client.peer.proposer.owner}/${token}`))
            this.#found("I12", `${client.name} holds ${resource} by the ballot ${token} that it had given up`);
        this.#greatest.set(resource, tenure);
        this.#tenures.set(resource, [...(this.#tenures.get(resource) ?? []), tenure]);
    }
    ends(client, resource) {
        const tenures = this.#tenures.get(resource) ?? [];
        for (const { token } of tenures.filter((tenure) => tenure.client === client))
            this.#ended.add(`${client.peer.proposer.owner}/${token}`);
        this.#tenures.set(resource, tenures.filter((tenure) => tenure.client !== client));
    }
    afterEvent() {
        for (const [resource, tenures] of this.#tenures) {
            const up = tenures.filter(({ client }) => !client.isDown);
            if (up.length !== tenures.length)
                this.#tenures.set(resource, up);
            const holders = up.filter(({ client }) => this.#holds(client, resource));
            if (holders.length > 1)
                this.#found("I1", `${holders.map(({ client }) => client.name).join(" and ")} hold ${resource}`);
            for (const { client } of holders)
                this.#checkBacking(client, resource);
        }
    }
    #holds(client, resource) {
        const slot = client.peer.proposer.slotOf(resource);
        return slot?.holding === true && holdIsValid(slot.holdUntil, slot.holdEnd, client.peek());
    }
    /** I4: what a holder believes stands in a majority of the stores, but for those that have forgotten it since. */
    #checkBacking(client, resource) {
        const slot = client.peer.proposer.slotOf(resource);
        const owner = client.peer.proposer.owner;
        const backing = this.#world.stores.filter(({ forgotAtMs }, store) => {
            if (forgotAtMs > this.#world.timeMs - 2 * this.#world.plan.settings.waitWallMs)
                return true;
            const entry = this.#entryIn(store, resource);
            if (entry === undefined)
                return false;
            return entry.leaseOwner === owner && !entry.released && entry.leaseUntil >= slot.holdUntil;
        });
        if (2 * backing.length > this.#world.stores.length)
            return;
        this.#found("I4", `${client.name} holds ${resource} by ${backing.length} stores only`);
    }
    #entryIn(store, resource) {
        const content = this.#world.stores[store].cell(entryRegister(resource));
        if (content === undefined)
            return undefined;
        let record = this.#decoded.get(content);
        if (record === undefined)
            this.#decoded.set(content, (record = decodeEntry(content)));
        return record.entry;
    }
    #found(invariant, text) {
        const { timeMs: atMs, events: event } = this.#world;
        if (this.#world.plan.asserted.includes(invariant))
            this.violation ??= { invariant, atMs, event, text };
    }
}
