/** The replicated file whose blocks are the journal of names. */
export const namesKey = "names";
/** Prefix of contents that are written in place. */
export const livePrefix = "live/";
/** Prefix of contents that never change: in the store they come after all others. */
export const uploadPrefix = "~/";
