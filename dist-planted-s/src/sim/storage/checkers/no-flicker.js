import { compareStamps } from "../../../delta/stamp.js";
import { stampText } from "../programs/stage.js";
/** What one reader reads never goes back: a write that its writer left half done would otherwise come and go for ever. */
export class NoFlicker {
    #report;
    #last = new Map();
    constructor(report) {
        this.#report = report;
    }
    readEnded(party, value) {
        const last = this.#last.get(party);
        if (compareStamps(value, last) < 0)
            this.#report("no-flicker", `${party.writer} reads ${stampText(value)} after ${stampText(last)}`);
        if (value !== undefined)
            this.#last.set(party, value);
    }
}
