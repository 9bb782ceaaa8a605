/**
 * Timeout of one operation at a server, ms. It is far longer than any δ: the caller gave up long ago.
 * Operations are abandoned after it, so that they don't pile up behind a server that has stopped.
 */
export const operationMsMax = 10_000;
