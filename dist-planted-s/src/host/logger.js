/** Says nothing: a library does not print unless it was given somewhere to print to. */
export const silent = { info: () => { }, warn: () => { }, error: () => { } };
