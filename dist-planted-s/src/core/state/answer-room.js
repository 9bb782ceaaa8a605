import { sizeOf } from "./revisions.js";
/** What may still be put into one answer: a transaction can ask for all there is a hundred times. */
export class AnswerRoom {
    #bytes;
    /** @param bytes as the state counts them; less than 0 if nobody waits for an answer */
    constructor(bytes) {
        this.#bytes = bytes;
    }
    get isExceeded() {
        return this.#bytes < 0;
    }
    /** False: there is no room for it, nor for anything after it. */
    take(version) {
        if (!this.isExceeded)
            this.#bytes -= sizeOf(version);
        return !this.isExceeded;
    }
}
