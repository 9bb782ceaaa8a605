/** The replicated file whose blocks are the journal of names. */
export const namesKey = "names";
/** Keys of contents that are written in place. */
export const livePrefix = "live/";
/** Keys of contents that never change: they come after all others in the store. */
export const uploadPrefix = "~/";
