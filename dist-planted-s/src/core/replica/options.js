import { pieceBytesDefault } from "../state/snapshot.js";
export const electionTicksDefault = 10;
/** As etcd's lease checkpoints. */
export const clusterTimeMsDefault = 300_000;
export const defaultLimits = {
    // Each is a waiting client. More at once would only wait longer than their deadlines.
    requestsMax: 16_384,
    // As much as the log takes uncommitted: what more is there is refused by it anyway.
    requestBytesTotalMax: 64 * 1024 * 1024,
    // etcd's bound; clients know it.
    requestBytesMax: 1.5 * 1024 * 1024,
    // All keys of most cores, and some five at once in memory.
    answerBytesMax: 256 * 1024 * 1024,
    // As many as a server's own clients may be, from each of four others.
    asksMax: 65_536,
    // One takes a network round trip. With a few under way nobody waits for two of them, however fast questions come.
    roundsMax: 4,
    // One or two milliseconds, all kinds together: heartbeats have their turn in between.
    unitsPerTurn: 1_024,
    // Ending these takes some milliseconds to apply: expiries of a million leases must not stop the leader (etcd 9360).
    leasesPerBatch: 1_000,
    // etcd's figures: replaying these takes about a second.
    snapshotEntries: 100_000,
    // The log's tail is in memory: of a small state it shall not be what takes the most.
    snapshotBytes: 32 * 1024 * 1024,
    snapshotBytesMax: 256 * 1024 * 1024,
    snapshotPieceBytes: pieceBytesDefault,
    // etcd's figure.
    keepEntries: 5_000,
    // Followers that are behind by more than some tenths of a second of a fast network get a snapshot, which is not much more then.
    keepBytes: 32 * 1024 * 1024,
    // A thousand times what clients use.
    watchesPerStreamMax: 10_000,
    // Some milliseconds of a fast connection; history keeps the rest.
    watchResponsesMax: 256,
    // As etcd's batch of unsynced watchers: some milliseconds of work.
    watchBatch: 512,
    // Below every client's default of 4 MiB for one message.
    fragmentBytesMax: 2 * 1024 * 1024,
};
