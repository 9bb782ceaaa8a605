/** The known mistakes of disks: a core server's, with the host that sends once it has written, and a node's of files. */

const segment = "packages/core/src/journal/segment.ts";
const batch = "packages/leasehold/src/journal/batch.ts";
const dataDirectory = "packages/core/src/server/disk/data-directory.ts";
const disk = "packages/core/src/server/disk/disk.ts";
const diskIndex = "packages/core/src/server/disk/disk-index.ts";
const host = "packages/core/src/host/host.ts";

const directoryStore = "packages/files/src/disk/directory-store.ts";

const powerLossTest = { file: "packages/core/src/server/disk/power-loss.test.ts", seeds: 100 };
const batchTest = { file: "packages/leasehold/src/journal/batch.test.ts" };
const directoryStoreTest = { file: "packages/files/src/disk/directory-store.test.ts" };
const nodeCrashesTest = { file: "packages/files/src/disk/crashes.test.ts" };
const powerCutsTest = { file: "packages/sim/src/core/power-cuts.test.ts" };

export const onDisk = /** @type {const} */ ([
  {
    name: "journalCountedUnsynced",
    why: "What the last write left in the kernel is counted as being on disk.",
    edits: [
      {
        file: segment,
        find: "await writeAll(file, last, bytes - last.length);",
        replace: "",
      },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "damageIsTakenForTorn",
    why: "What is not whole at the end of the journal is cut off, however it came about.",
    edits: [{ file: segment, find: "!isTorn(bytes, offset, batches + 1)", replace: "false" }],
    caughtBy: powerLossTest,
  },
  {
    name: "completePassesForTorn",
    why: "An end that cannot be read is cut off though no sector of it is missing.",
    edits: [{ file: batch, find: "return isMissing;", replace: "return true;" }],
    caughtBy: batchTest,
  },
  {
    name: "laterWritePassesForTorn",
    why: "A write with missing sectors is cut off though a later one has begun.",
    edits: [
      {
        file: batch,
        find: "if (!isEmpty && wordAt(bytes, Math.min(next, used) - wordBytes) !== mark) return false;",
        replace: "",
      },
    ],
    caughtBy: batchTest,
  },
  {
    name: "sectorsUnmarked",
    why: "Sectors bear no marks: one of a value of zeros reads as if it had never been written.",
    edits: [
      { file: batch, find: "bytes.writeUInt32LE(mark, at - offset);", replace: ";" },
      { file: batch, find: "if (bytes.readUInt32LE(at) !== mark) return undefined;", replace: ";" },
    ],
    caughtBy: batchTest,
  },
  {
    name: "memberFileUnchecked",
    why: "The ids in member.json are believed without their checksum.",
    edits: [
      {
        file: "packages/core/src/server/disk/member-file.ts",
        find: "checksum !== checksumOfRecord(rest)",
        replace: "false",
      },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "journalOnlySynced",
    why: "The last write is synced again: the kernel takes for written what the disk has refused.",
    edits: [
      {
        file: segment,
        find: "await writeAll(file, last, bytes - last.length);",
        replace: "await file.datasync();",
      },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "journalWritesUnsynced",
    why: "A write of the journal returns before it is on disk.",
    edits: [{ file: segment, find: "constants.O_RDWR | constants.O_DSYNC", replace: "constants.O_RDWR" }],
    caughtBy: powerLossTest,
  },
  {
    name: "journalFolderUnsynced",
    why: "The journal's folder is not synced when it is opened.",
    edits: [
      {
        file: segment,
        at: "bytes - last.length);\n  await syncFolder(folder);",
        find: "await syncFolder(folder);",
        replace: ";",
      },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "directoryNameUnsynced",
    why: "The data directory's own name is not synced.",
    edits: [{ file: dataDirectory, find: "await syncFolder(dirname(path));", replace: ";" }],
    caughtBy: powerLossTest,
  },
  {
    name: "renamedMemberFileUnsynced",
    why: "A member.json that was renamed by a process that was killed is not synced.",
    edits: [{ file: dataDirectory, find: "await syncFolder(path);", replace: ";" }],
    caughtBy: powerLossTest,
  },
  {
    name: "failedInstallationIgnored",
    why: "What waits for an installation goes on when that has failed.",
    edits: [
      { file: disk, find: "this.#installing.then(write)", replace: "this.#installing.then(write, write)" },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "oldSnapshotsRemovedFirst",
    why: "Old snapshots go before the record that makes them useless.",
    edits: [
      {
        file: disk,
        find: "await this.#snapshots.save(snapshot, batchesInTurns(received.pieces));",
        replace:
          "await this.#snapshots.save(snapshot, batchesInTurns(received.pieces)); await this.#snapshots.removeBefore(snapshot.index); await this.#snapshots.removeBefore(this.#base + 1);",
      },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "othersDiskKnownUnwritten",
    why: "Another server's disk is remembered before it is on the own one.",
    edits: [
      {
        file: diskIndex,
        find: "await writeMemberRecord(this.#folder, record);\n    this.#record = record;",
        replace: "this.#record = record; await writeMemberRecord(this.#folder, record);",
      },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "failedMemberFileLocksOut",
    why: "One write of member.json that failed locks all out.",
    edits: [{ file: diskIndex, find: "learning.catch(() => undefined)", replace: "learning" }],
    caughtBy: powerLossTest,
  },
  {
    name: "sentBeforePersisted",
    why: "A message is sent before what it promises is on disk.",
    edits: [
      {
        file: host,
        at: "const waiting = [messages];",
        find: "[messages]",
        replace: "(this.#send(messages), [])",
      },
    ],
    caughtBy: powerCutsTest,
  },
  {
    name: "messageOvertakesWrites",
    why: "A message without a write overtakes the writes before it.",
    edits: [
      {
        file: host,
        at: "else if (this.#waiting === undefined) this.#send(messages);",
        find: "this.#waiting === undefined",
        replace: "true",
      },
    ],
    caughtBy: powerCutsTest,
  },
  {
    name: "acknowledgedBeforeSynced",
    why: "A write is acknowledged before it is synced.",
    edits: [
      {
        file: host,
        at: "this.#unfinished += 1;\n    this.#options.disk.persist(",
        find: "this.#unfinished += 1;",
        replace: 'this.#unfinished += 1; this.step({ kind: "persisted", sequence: persist.sequence });',
      },
    ],
    caughtBy: powerCutsTest,
  },
  {
    name: "outboxDropsNewest",
    why: "The outbox behind a write drops its newest message.",
    edits: [
      {
        file: host,
        at: "const waiting = [messages];",
        find: "[messages]",
        replace: "[messages.slice(0, -1)]",
      },
    ],
    caughtBy: powerCutsTest,
  },
  {
    name: "blocksNotSyncedBeforeIndex",
    why: "The index tells of blocks whose bytes are not durable yet.",
    edits: [{ file: directoryStore, find: "await this.#data.sync(file.id);", replace: "await undefined;" }],
    caughtBy: nodeCrashesTest,
  },
  {
    name: "placeUsedBeforeCommit",
    why: "The place of a block that the index still knows is used again.",
    edits: [
      {
        file: "packages/files/src/disk/stored-file.ts",
        find: "this.#durable.set(index, before)",
        replace: "(this.release(before), this.#durable.set(index, undefined))",
      },
    ],
    caughtBy: nodeCrashesTest,
  },
  {
    name: "dataFileHasNoDurableName",
    why: "The name of a new data file is not durable when the index tells of blocks in it.",
    edits: [
      {
        file: "packages/files/src/disk/data-files.ts",
        find: "await this.#disk.syncFolder(folder);",
        replace: "",
      },
    ],
    caughtBy: nodeCrashesTest,
  },
  {
    name: "newIndexHasNoDurableName",
    why: "Records are acknowledged in an index whose name a loss of power takes back.",
    edits: [
      {
        file: "packages/files/src/disk/record-log.ts",
        at: 'await disk.rename(building, nameOf(sequence));\n    await disk.syncFolder("");',
        find: 'await disk.syncFolder("");',
        replace: "",
      },
    ],
    caughtBy: directoryStoreTest,
  },
  {
    name: "writtenBehindTheCut",
    why: "A block is written to a place that is just being given back to the disk.",
    edits: [
      {
        file: directoryStore,
        find: "while (file.cutting !== undefined) await file.cutting;",
        replace: "",
      },
    ],
    caughtBy: directoryStoreTest,
  },
]);
