import { refusalOf } from "./hello.js";
import { Incoming } from "./incoming.js";
import { PeerLink } from "./link.js";
import { sendSnapshot } from "./snapshot-sender.js";
import { createListener, listen } from "./sockets.js";
/** Connections of which it is not known who is there. For one more the oldest is given up: nobody keeps others out by waiting. */
const strangersMax = 64;
/** How long a stranger may take to say who it is, ms: a few round trips. */
const helloMs = 2_000;
/** Of a connection that others have made; they say something far more often. */
const incomingSilenceFactor = 10;
/** The other servers of the core. Messages to one go over a connection that we make, messages from it over one that it makes. */
export class Peers {
    #options;
    #links = new Map();
    #servers = [];
    #strangers = new Set();
    /** One of each server for messages, and one for a snapshot: a newer one takes the place of an older. */
    #admitted = new Map();
    #clientUrls = new Map();
    #closed = new AbortController();
    /** Already said to be out of reach; to say it once for each failure is enough. */
    #unreachable = new Set();
    constructor(options) {
        this.#options = options;
    }
    /** @throws LeaseholdError `INVALID_CONFIG` if an address cannot be had */
    async open(urls) {
        const { tls, handler, members, self } = this.#options;
        for (const url of urls) {
            const server = createListener(url, tls, (socket) => this.#accepted(socket), (error, socket) => handler.trouble("tls", `${socket.remoteAddress} was refused: ${error.message}`));
            this.#servers.push(server);
            await listen(server, url);
        }
        for (const peer of members)
            if (peer.id !== self.id)
                this.#links.set(peer.id, this.#linkTo(peer));
    }
    send(message) {
        if (message.kind === "snapshot")
            void this.#sendSnapshot(message);
        else
            this.#links.get(message.to)?.send(message);
    }
    /** What a server has said of where its clients find it. */
    clientUrlsOf(member) {
        return this.#clientUrls.get(member) ?? [];
    }
    close() {
        this.#closed.abort();
        for (const link of this.#links.values())
            link.close();
        for (const server of this.#servers)
            server.close();
        for (const socket of [...this.#strangers, ...this.#admitted.values()])
            socket.destroy();
    }
    #linkTo(peer) {
        const { self, tls, silenceMs, handler } = this.#options;
        return new PeerLink({
            self,
            peer,
            tls,
            silenceMs,
            unreachable: () => {
                if (this.#unreachable.has(peer.id))
                    return;
                this.#unreachable.add(peer.id);
                handler.unreachable(peer.id);
            },
            trouble: (text) => handler.trouble(`link ${peer.name}`, `no connection to ${text}`),
            connected: () => this.#unreachable.delete(peer.id),
            // Earlier versions do not say it.
            judge: async (disk) => disk === 0n || (await handler.learnDisk(peer.id, disk)) ? "" : lostDisk(peer.name),
        });
    }
    async #sendSnapshot(message) {
        const { members, snapshots, self, tls, handler } = this.#options;
        const peer = members.find(({ id }) => id === message.to);
        try {
            if (peer === undefined)
                throw new Error("it is no member");
            await sendSnapshot(message, peer, snapshots, self, tls, this.#closed.signal);
            handler.snapshotSent(message.to, true);
        }
        catch (error) {
            const name = peer?.name ?? "a server";
            handler.trouble(`snapshot ${name}`, `a snapshot did not reach ${name}: ${error.message}`);
            handler.snapshotSent(message.to, false);
        }
    }
    #accepted(socket) {
        if (this.#closed.signal.aborted) {
            socket.destroy();
            return;
        }
        const [oldest] = this.#strangers;
        if (oldest !== undefined && this.#strangers.size >= strangersMax) {
            this.#strangers.delete(oldest);
            oldest.destroy();
        }
        this.#strangers.add(socket);
        socket.once("close", () => this.#strangers.delete(socket));
        const { handler, self, silenceMs } = this.#options;
        const incoming = {
            judge: (hello) => this.#judge(hello),
            admitted: (hello) => this.#admit(hello, socket),
            message: (message) => handler.message(message),
            snapshot: (message, pieces, state) => handler.snapshot(message, pieces, state),
            // Usual when a core begins: it must not stand in the way of what is said of another refusal.
            trouble: (text) => handler.trouble(text.endsWith(notReached) ? "not reached" : "incoming", text),
        };
        void new Incoming(self, socket, incoming, { helloMs, silenceMs: incomingSilenceFactor * silenceMs });
    }
    #admit({ from, snapshot, clientURLs }, socket) {
        this.#strangers.delete(socket);
        this.#clientUrls.set(from, clientURLs);
        const place = `${from} ${snapshot}`;
        this.#admitted.get(place)?.destroy();
        this.#admitted.set(place, socket);
        socket.once("close", () => {
            if (this.#admitted.get(place) === socket)
                this.#admitted.delete(place);
        });
    }
    #judge(hello) {
        const { members, self, handler } = this.#options;
        const isMember = members.some(({ id }) => id === hello.from && id !== self.id);
        const refusal = refusalOf(hello, self, isMember);
        if (refusal !== "")
            return refusal;
        const isKnown = handler.isKnownDisk(hello.from, hello.disk);
        if (isKnown === undefined)
            return `${hello.name} ${notReached}`;
        return isKnown ? "" : lostDisk(hello.name);
    }
}
const notReached = "has to be reached by us first, at its own address";
function lostDisk(name) {
    return `${name} has come back without its data directory: what it promised before is lost with it`;
}
