/** Small enough that every bound is met now and then. */
const smallLimits = {
    snapshotEntries: 60,
    snapshotPieceBytes: 256,
    keepEntries: 10,
    leasesPerBatch: 2,
    watchResponsesMax: 3,
    watchBatch: 4,
    roundsMax: 2,
};
/** One run in so many has a history that takes a server many turns to go through. */
const bulkyEvery = 8;
const bulkyLimits = { snapshotEntries: 400, unitsPerTurn: 64, watchBatch: 64 };
/** What such a run is like. */
export const bulky = { watchClients: 4, bulkKeys: 1_500, turnsAtOnce: 1, limits: bulkyLimits };
const smallRaftLimits = {
    committedEntriesMax: 3,
    appendBytesMax: 300,
    inflightMessagesMax: 4,
};
export function drawCorePlan(seed, random) {
    const often = (meanMs) => (random.chance(0.25) ? Infinity : meanMs * random.between(0.5, 2));
    const stableFromMs = random.between(15_000, 40_000);
    // Costly, and no draw: the other runs stay as they are.
    const isBulky = seed % bulkyEvery === 0;
    return {
        seed,
        servers: random.pick([1, 3, 3, 3, 5]),
        tickMs: 100,
        electionTicks: 10,
        clusterTimeMs: random.pick([0, 1_500]),
        limits: { ...(random.chance(0.7) ? smallLimits : {}), ...(isBulky ? bulkyLimits : {}) },
        raftLimits: random.chance(0.5) ? smallRaftLimits : {},
        latencyMs: random.magnitude(0.5, 60),
        lossRate: random.pick([0, 0, 0.02, 0.1]),
        duplicateRate: random.pick([0, 0.05]),
        writeMs: random.magnitude(0.5, 60),
        slowDiskFactor: random.pick([1, 1, 10]),
        clockRateError: random.pick([0, 0.001, 0.05]),
        crashEveryMs: often(8_000),
        downMsMax: random.pick([100, 4_000]),
        partitionEveryMs: often(8_000),
        pauseEveryMs: often(12_000),
        pauseMaxMs: random.between(500, 15_000),
        transferEveryMs: often(15_000),
        registerClients: 4,
        keys: 3,
        leaseClients: 4,
        watchClients: isBulky ? bulky.watchClients : 2,
        bulkKeys: isBulky ? bulky.bulkKeys : 0,
        turnsAtOnce: isBulky ? bulky.turnsAtOnce : Infinity,
        timeoutMs: random.pick([1_000, 5_000]),
        thinkMs: random.magnitude(20, 600),
        compactEveryMs: often(10_000),
        // Not drawn: the seeds that show a mistake would all be others.
        keepRevisions: seed % 3 === 0 ? 40 : undefined,
        stableFromMs,
        endMs: stableFromMs + 40_000,
    };
}
