export const noBounds = {
    timeMax: 3,
    clockDifferenceMax: 1,
    restartStepBackMax: 0,
    crashes: 0,
    acquisitions: [1, 1],
    renewals: [0, 0],
    restarts: [0, 0],
    bars: 0,
    discards: 0,
    lateRefusals: false,
    checkTokens: false,
    checkGuards: true,
};
/** Counters of bounded moves are kept in four bits each. */
export const boundMax = 15;
/** How often `proposer` may make such a move; moves of acceptors have one bound for all. */
export function limitOf(bounds, kind, proposer) {
    switch (kind) {
        case "crash":
            return bounds.crashes;
        case "bar":
            return bounds.bars;
        case "discard":
            return bounds.discards;
        case "acquire":
            return bounds.acquisitions[proposer] ?? 0;
        case "renew":
            return bounds.renewals[proposer] ?? 0;
        case "restart":
            return bounds.restarts[proposer] ?? 0;
    }
}
