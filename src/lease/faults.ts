/**
 * The known mistakes of the waist, each of which the tests must be able to make on purpose and to catch. As in
 * `src/flease/protocol/faults.ts` this is the product's side: nothing is switched on, and nothing can be. Tests resolve
 * `#lease-faults` to `planted-faults.ts` instead.
 */
export const noFaults = {
  /** A queue is dropped, by its resource's name, when nobody stands in it, although some who use it have not left. */
  emptyQueueIsDropped: false,
  /** A participant that closes ends what it has before it knows that nothing new may begin. */
  closesBeforeItIsKnown: false,
  /** What passes between the looks at the two clocks counts as a difference between them. */
  clocksAreReadApart: false,
  /** A holder relies on what lasts on another's clock for as long on its own. */
  ratesIgnored: false,
};

export type Faults = { [Name in keyof typeof noFaults]: boolean };

export const faults: Readonly<Faults> = Object.freeze(noFaults);
