/**
 * The known mistakes of the waist, each of which the tests must be able to make on purpose and to catch. As in
 * `src/flease/faults.ts` this is the product's side: nothing is switched on, and nothing can be. Tests resolve
 * `#lease-faults` to `planted-faults.ts` instead.
 */
export const noFaults = {
    /** A queue is dropped, by its resource's name, when nobody stands in it, although some who use it have not left. */
    emptyQueueIsDropped: false,
};
export const faults = Object.freeze(noFaults);
