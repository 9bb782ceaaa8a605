/** What must hold of the consistent core. Their meaning is in the checkers, one a file. */
export const coreInvariants = [
    "agreement",
    "durability",
    "linearizability",
    "lease-life",
    "lease-keys",
    "lease-names",
    "refresh",
    "expiry",
    "watch",
    "space",
    "range",
    "turn",
    "progress",
];
/** Thrown where a checker finds something wrong: it ends the run. */
export class CoreViolationError extends Error {
    invariant;
    constructor(invariant, text) {
        super(text);
        this.name = "CoreViolationError";
        this.invariant = invariant;
    }
}
/** Violations of these are a lack of progress; of the others, a lack of safety. */
export const coreLivenessInvariants = new Set(["expiry", "progress"]);
