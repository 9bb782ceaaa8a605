/** What is bounded, besides time. `crash` belongs to the explorer itself. */
export const boundedMoves = ["crash", "bar", "discard", "acquire", "renew", "restart"];
