import { LeaseholdError } from "../lease/errors.js";
import { FairWork } from "./fair-work.js";
import { listPage, Scan } from "./listing.js";
import { askIdleMs, ServedWatches } from "./served-watches.js";
import { answerOn } from "./side-answers.js";
/**
 * Lists of one peer that are under way at a time: as many as it may ask for. Of more, the one that has not gone on for
 * the longest is forgotten.
 */
const listsPerLinkMax = 64;
/** How long the holder of a resource may take to confirm that it was told of a request. */
const PASS_ON_TIMEOUT_MS = 1_000;
/** How often labels of the departed are looked for. */
const SWEEP_EVERY_MS = 5_000;
/**
 * What a member answers to side calls about resources, and what a holder does when it is asked to release. All of it is
 * work that waits for its turn (`FairWork`): acquisitions and renewals go in between.
 */
export class SideCalls {
    #node;
    labels;
    #work;
    #lists = new Map();
    #watches;
    #sweptMs = 0;
    constructor(node, labels) {
        this.#node = node;
        this.labels = labels;
        this.#work = new FairWork(() => node.sideWork());
        const { feed } = node.peer;
        if (feed === undefined)
            return;
        const host = { feed, reading: this.#readyNow, labelled: (page) => this.#labelled(page) };
        this.#watches = new ServedWatches(host, this.#work);
    }
    /** Rejects with a LeaseholdError when it cannot be answered. */
    answer(link, method, given) {
        const params = (typeof given === "object" && given !== null ? given : {});
        return this.#work.add(link, this.#steps(link, method, params));
    }
    /** Does a step of what was asked, and more of it as long as `goOn` says so. True when there is more to do. */
    work(goOn) {
        this.#work.run(goOn);
        return !this.#work.isIdle;
    }
    *#steps(link, method, params) {
        switch (method) {
            case "list":
                return yield* this.#list(link, params);
            case "explain":
                return this.#explain(text(params["resource"]));
            case "watch":
                return this.#served().ask(link, Number(params["session"]), text(params["prefix"]));
            case "unwatch":
                return this.#served().end(link, Number(params["session"]));
            case "label":
                return this.labels.set(link, params["label"]);
            case "break":
                return this.#break(text(params["resource"]), text(params["owner"]));
            case "requestRelease":
                return this.#passOn(link, text(params["resource"]), text(params["owner"]), params["broken"] === true);
            case "releaseRequested":
                return this.#requested(link, params);
            default:
                throw new LeaseholdError("VERSION_MISMATCH", `this member does not know the call ${JSON.stringify(method)}`);
        }
    }
    /** Whatever the peer asked ends with its connection. */
    disconnected(link) {
        this.#work.drop(link);
        this.#lists.delete(link);
        this.#watches?.endAll(link);
        this.labels.gone(link, this.#node.now().mono);
    }
    /** To be called several times a second: tells those who watch what has changed meanwhile, all at once. */
    maintain(now) {
        this.#watches?.maintain(now.mono);
        if (now.mono - this.#sweptMs < SWEEP_EVERY_MS)
            return;
        this.#sweptMs = now.mono;
        this.labels.sweep(now.mono);
        for (const [link, lists] of this.#lists) {
            for (const [session, { askedMs }] of lists)
                if (now.mono - askedMs > askIdleMs)
                    lists.delete(session);
            if (lists.size === 0)
                this.#lists.delete(link);
        }
    }
    /** Everything ends: whoever waits for an answer learns it from the connection. */
    close() {
        this.#work.dropAll();
        this.#lists.clear();
        this.#watches?.close();
    }
    /** The first page of a session begins a list, the last one ends it. */
    *#list(link, params) {
        const [session, page] = [Number(params["session"]), Number(params["page"])];
        const lists = this.#lists.get(link) ?? new Map();
        let listing = lists.get(session);
        const askedMs = this.#readyNow().mono;
        if (page === 0) {
            const scan = new Scan(this.#node.peer.acceptor, text(params["prefix"]));
            listing = { scan, page, askedMs };
        }
        else if (listing?.page !== page) {
            throw new LeaseholdError("UNREACHABLE", "this list was given up here, as nobody went on with it");
        }
        lists.delete(session); // So that the last one to have gone on is the last in the map.
        const [oldest] = lists.keys();
        if (lists.size >= listsPerLinkMax && oldest !== undefined)
            lists.delete(oldest);
        lists.set(session, Object.assign(listing, { askedMs, page: page + 1 }));
        this.#lists.set(link, lists);
        const listed = yield* listPage(listing.scan, this.#readyNow);
        if (!listed.more)
            lists.delete(session);
        return this.#labelled(listed);
    }
    #explain(resource) {
        const { peer } = this.#node;
        const { acceptor } = peer;
        if (acceptor === undefined)
            throw new LeaseholdError("UNREACHABLE", "no member answers here");
        const answer = answerOn(acceptor, resource, this.#node.now());
        const label = this.labels.of(answer.owner);
        return {
            ...answer,
            ...(peer.fault !== undefined && { state: "clock-fault" }),
            waiting: answer.state === "ready" ? peer.waitersFor(resource) : 0,
            ...(label !== undefined && { label }),
        };
    }
    #break(resource, owner) {
        return this.#node.peer.acceptor?.bar(resource, owner, this.#node.now()) ?? false;
    }
    /** True when the holder confirms that it has heard of it. */
    async #passOn(from, resource, owner, broken) {
        const { transport, peer } = this.#node;
        const now = this.#node.now();
        const entry = peer.acceptor?.entry(resource);
        if (entry?.leaseOwner !== owner || peer.acceptor?.isOver(entry, now) !== false)
            return false;
        const by = this.labels.of(from.owner) ?? from.owner;
        const to = [transport.loopback, ...transport.links].find((link) => link?.owner === owner);
        if (to === undefined)
            return false;
        const params = { resource, by, broken };
        if (to === transport.loopback)
            return this.#requested(to, params);
        try {
            return (await transport.call(to, "releaseRequested", params, PASS_ON_TIMEOUT_MS)) === true;
        }
        catch {
            return false; // Another member may reach it.
        }
    }
    #requested(from, params) {
        if (from.role !== "member")
            return false;
        const { provider } = this.#node;
        provider.releaseRequested({
            resource: text(params["resource"]),
            by: text(params["by"]),
            broken: params["broken"] === true,
        });
        return true;
    }
    #labelled(page) {
        const held = page.held.map((lease) => {
            const label = this.labels.of(lease.owner);
            return label === undefined ? lease : { ...lease, label };
        });
        return { ...page, held };
    }
    #served() {
        if (this.#watches === undefined)
            throw new LeaseholdError("UNREACHABLE", "no member answers here");
        return this.#watches;
    }
    /** What a recovering acceptor knows is too little to be told (I15). */
    #readyNow = () => {
        if (this.#node.peer.acceptor?.ready !== true)
            throw new LeaseholdError("UNREACHABLE", "a member that recovers tells nothing");
        return this.#node.now();
    };
}
function text(value) {
    return typeof value === "string" ? value : "";
}
