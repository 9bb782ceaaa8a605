/**
 * For how long one operation may be under way at a server, ms. Far longer than any δ: its caller gave up long
 * ago. What has not answered by then is given up, so that nothing piles up behind a server that has stopped.
 */
export const operationMsMax = 10_000;
