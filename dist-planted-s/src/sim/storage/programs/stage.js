/** The Δ of this process, ms. */
export function leaseMsOf({ plan, party }) {
    if (!plan.mixedLeases)
        return plan.leaseMs;
    const part = party.index % 2 === 0 ? 1 : 0.45;
    return Math.max(Math.round(plan.leaseMs * part), 12 * plan.delayMs);
}
export function* sleep(delayMs) {
    yield { kind: "delay", delayMs };
}
export function stampText(stamp) {
    return stamp === undefined ? "nothing" : `(${stamp.number}, ${stamp.writer}, ${stamp.nonce})`;
}
