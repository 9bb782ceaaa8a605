import { Kind } from "../../flease/message.js";
/** I12: a node never holds by a ballot that it has released or closed. */
export class ReleaseFinality {
    #report;
    #books = new Map();
    constructor(report) {
        this.#report = report;
    }
    started(node) {
        this.#books.set(node, new Map());
    }
    /** Another owner counts its ballots from the beginning. */
    renamed(node) {
        this.#books.set(node, new Map());
    }
    sent(from, _to, message) {
        if (message.kind > Kind.acquire)
            return;
        const book = this.#bookOf(from, message.resource);
        book.last = Math.max(book.last, message.number);
    }
    closed(node, resource) {
        const book = this.#bookOf(node, resource);
        book.closed = book.last;
    }
    looked(resource, holds) {
        for (const { node, slot, valid } of holds) {
            if (valid && slot.holdNumber <= this.#bookOf(node, resource).closed)
                this.#report("I12", `${node.name} holds ${resource} by the closed ballot ${slot.holdNumber}`);
        }
    }
    #bookOf(node, resource) {
        const books = this.#books.get(node);
        let book = books.get(resource);
        if (book === undefined)
            books.set(resource, (book = { last: 0, closed: 0 }));
        return book;
    }
}
