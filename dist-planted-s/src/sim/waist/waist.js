import { FleaseProvider } from "../../flease/provider.js";
import { LeaseManager } from "../../lease/lease-manager.js";
import { EventCode, Task } from "../events.js";
import { WatchedProvider } from "./watched-provider.js";
/** One life of a node whose programs use the waist: the classes of production, on the clocks and timers of this world. */
export class Waist {
    peer;
    provider;
    leases;
    timers;
    clock;
    random;
    node;
    /** By resource: who will not want it any more in the very moment in which it is granted. */
    tooLate = new Map();
    /** It has been told to leave. */
    closing = false;
    #world;
    constructor(world, node, timers) {
        this.#world = world;
        this.node = node;
        this.peer = node.peer;
        this.timers = timers;
        this.random = world.random;
        this.clock = { monotonicMs: () => this.now().mono, wallMs: () => this.now().wall };
        this.provider = new FleaseProvider(this);
        const { provider: wrapped, leases: handed } = world.mistakes;
        const watched = new WatchedProvider(world, node, this.provider);
        const own = { clock: this.clock, timers, random: this.random };
        const leases = new LeaseManager(wrapped?.(watched) ?? watched, own);
        this.leases = handed?.(leases) ?? leases;
    }
    /** Leaves as a program does that ends: gives back what it has, and says so when nothing is left. */
    leave() {
        if (this.closing)
            return;
        this.closing = true;
        this.#world.stir(this.node);
        void this.leases.close();
    }
    /** The provider has granted, and the waist has not heard of it yet. */
    granted(resource) {
        const changesItsMind = this.tooLate.get(resource);
        this.tooLate.delete(resource);
        if (changesItsMind !== undefined)
            void Promise.resolve().then(changesItsMind);
    }
    now() {
        this.#world.stir(this.node);
        return this.node.now();
    }
    poke() {
        this.#world.stir(this.node);
    }
    ask(member, method, params, timeoutMs) {
        return this.node.side.ask(member, method, params, timeoutMs);
    }
    address(member) {
        return this.#world.nodes[member].name;
    }
    /** Nothing refuses anybody here. */
    refusal() {
        return undefined;
    }
    reachable() {
        return this.#world.members.filter(({ peer }) => peer !== undefined).length;
    }
    close() {
        const { incarnation, side } = this.node;
        side?.close();
        const leave = new Task(EventCode.start, () => {
            if (this.node.incarnation === incarnation)
                this.node.leave();
        });
        this.#world.schedule(leave, 0);
        return Promise.resolve();
    }
}
