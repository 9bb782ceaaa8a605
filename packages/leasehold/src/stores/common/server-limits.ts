/**
 * Timeout for one operation at a server, ms. It is far longer than any δ, so the caller has long given up.
 * Operations are abandoned after it, so that they don't accumulate at a stopped server.
 */
export const operationMsMax = 10_000;
