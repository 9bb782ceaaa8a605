import { LeaseholdError } from "../../lease/errors.js";
/** What cannot be unless a disk has lost or changed what was on it: the server stops, and does not guess. */
export function corrupt(why) {
    return new LeaseholdError("LOG_CORRUPT", `raft: ${why}`);
}
