/** The known mistakes of a core server's disk, and of the host that sends once the disk has written. */

const segment = "src/core/journal/segment.ts";
const dataDirectory = "src/core/server/disk/data-directory.ts";
const disk = "src/core/server/disk/disk.ts";
const diskIndex = "src/core/server/disk/disk-index.ts";
const host = "src/core/host/host.ts";

const powerLossTest = { file: "src/core/server/disk/power-loss.test.ts" };
const powerCutsTest = { file: "sim/core/power-cuts.test.ts" };

export const onDisk = /** @type {const} */ ([
  {
    name: "journalCountedUnsynced",
    why: "A journal is not synced before what it has is counted.",
    edits: [
      {
        file: segment,
        at: "if (size > bytes) await file.truncate(bytes);\n  await file.datasync();",
        find: "await file.datasync();",
        replace: ";",
      },
    ],
    caughtBy: powerLossTest,
  },
  {
    name: "journalFolderUnsynced",
    why: "The journal's folder is not synced when it is opened.",
    edits: [
      {
        file: segment,
        at: "await file.datasync();\n  await syncFolder(folder);\n  return file;\n}\n\nexport interface",
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
        find: "await this.#snapshots.save(snapshot, inTurns(received.pieces));",
        replace:
          "await this.#snapshots.save(snapshot, inTurns(received.pieces)); await this.#snapshots.removeBefore(snapshot.index); await this.#snapshots.removeBefore(this.#base + 1);",
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
        find: "await writeMemberRecord(this.#folder, { ...this.#record, disks });\n    this.#disks = disks;",
        replace: "this.#disks = disks; await writeMemberRecord(this.#folder, { ...this.#record, disks });",
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
]);
