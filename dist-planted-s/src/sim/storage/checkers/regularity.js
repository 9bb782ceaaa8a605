import { compareStamps } from "../../../delta/stamp.js";
import { stampText } from "../programs/stage.js";
/** The register is regular, whatever the delays: a read returns no value older than one written before it began. */
export class Regularity {
    #report;
    #written;
    #least = new Map();
    constructor(report) {
        this.#report = report;
    }
    written(value) {
        if (compareStamps(value, this.#written) > 0)
            this.#written = value;
    }
    readBegan(party) {
        this.#least.set(party, this.#written);
    }
    readEnded(party, value) {
        const least = this.#least.get(party);
        if (compareStamps(value, least) < 0)
            this.#report("regularity", `${party.writer} reads ${stampText(value)} though ${stampText(least)} was written before`);
    }
}
