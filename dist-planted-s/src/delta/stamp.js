/** Negative when `a` is the earlier, 0 when they are the same write. `undefined`, never written, comes before all. */
export function compareStamps(a, b) {
    if (a === undefined || b === undefined)
        return (a === undefined ? 0 : 1) - (b === undefined ? 0 : 1);
    if (a.number !== b.number)
        return a.number < b.number ? -1 : 1;
    if (a.writer !== b.writer)
        return a.writer < b.writer ? -1 : 1;
    return a.nonce - b.nonce;
}
export function sameStamp(a, b) {
    return compareStamps(a, b) === 0;
}
export function later(a, b) {
    return compareStamps(a, b) < 0 ? b : a;
}
