import type { Logger } from "./types.js";

/** Says nothing: a library does not print unless it was given somewhere to print to. */
export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
