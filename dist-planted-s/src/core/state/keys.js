export function keyOf(bytes) {
    let key = "";
    for (let index = 0; index < bytes.length; index++)
        key += String.fromCharCode(bytes[index]);
    return key;
}
export function bytesOf(key) {
    const bytes = new Uint8Array(key.length);
    for (let index = 0; index < key.length; index++)
        bytes[index] = key.charCodeAt(index);
    return bytes;
}
/** As requests say it: no `rangeEnd` is one key, `\0` is everything from the key on. */
export function rangeOf(key, rangeEnd) {
    const from = keyOf(key);
    if (rangeEnd.length === 0)
        return { from, to: `${from}\0` };
    if (rangeEnd.length === 1 && rangeEnd[0] === 0)
        return { from, to: undefined };
    return { from, to: keyOf(rangeEnd) };
}
export function contains({ from, to }, key) {
    return key >= from && (to === undefined || key < to);
}
/** The range's only key, if it is one of a single key. */
export function singleKey({ from, to }) {
    return to?.length === from.length + 1 && to.endsWith("\0") && to.startsWith(from) ? from : undefined;
}
