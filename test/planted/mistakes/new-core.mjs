/** The known mistakes that can be made with backups, and with cores that begin with the state of another. */

const newCore = "packages/core/src/host/new-core.ts";
const snapshot = "packages/core/src/state/snapshot.ts";
const state = "packages/core/src/state/state.ts";

const hostileFileTest = { file: "packages/core/src/server/backup/hostile-file.test.ts" };

export const inNewCores = /** @type {const} */ ([
  {
    name: "restoredUnderOldIds",
    why: "A restored core has the ids of the one that the backup was taken of: its servers take part again.",
    edits: [{ file: newCore, find: "`${token} ${hash}`", replace: "token" }],
  },
  {
    name: "restoredUnderIdsOfEach",
    why: "Each restored server makes ids of its own: none knows the others.",
    edits: [{ file: newCore, find: "`${token} ${hash}`", replace: "`${token} ${hash} ${name}`" }],
  },
  {
    name: "restoredMembersStay",
    why: "A restored core has the members of the one before.",
    edits: [
      {
        file: state,
        at: "this.cluster = 0n;\n    this.members.set([]);",
        find: "this.members.set([]);",
        replace: "",
      },
    ],
  },
  {
    name: "restoredTimeLeft",
    why: "A restored lease has what was left of it at the backup, and was refreshed since.",
    edits: [
      {
        file: state,
        find: "lease.leftMs = undefined;",
        replace: "",
      },
    ],
  },
  {
    name: "forcedVotersStay",
    why: "The only server of a core waits for the votes of those who are gone.",
    edits: [
      { file: newCore, at: "voters: [own.id]", find: "[own.id]", replace: "snapshot.membership.voters" },
    ],
  },
  {
    name: "forcedWithoutTail",
    why: "The only server of a core forgets what it does not know to be committed, and somebody was answered.",
    edits: [
      {
        file: newCore,
        find: "replay(entries, snapshot, state)",
        replace: "replay(entries.filter(({ index }) => index <= hardState.commit), snapshot, state)",
      },
    ],
  },
  {
    name: "backupWithinCommand",
    why: "A backup is taken while a command is being applied: a part of it is there.",
    edits: [
      {
        file: "packages/core/src/replica/read-answers.ts",
        find: 'if (asked.kind === "freeze") while (context.state.isApplying) yield;',
        replace: "",
      },
    ],
  },
  {
    name: "attachmentsLost",
    why: "A state that is put together again does not know what hangs on leases.",
    edits: [
      {
        file: snapshot,
        find: "this.#state.leases.attach(this.#newest.key, this.#newest.lease, 0n);",
        replace: "",
      },
    ],
  },
  {
    name: "backupWithoutHistory",
    why: "A backup has what stands there now, and not what stood there before.",
    edits: [
      {
        file: snapshot,
        find: "history.slice(start, end)",
        replace: "history.slice(end - 1, end)",
      },
    ],
  },
  {
    name: "listsUnheard",
    why: "etcd 3699: a server that has not heard of a new member refuses it, also when that one leads.",
    edits: [
      { file: "packages/core/src/replica/roll.ts", find: "lists.length === 0", replace: "lists.length >= 0" },
    ],
  },
  {
    name: "otherCoresHeard",
    why: "A server listens to one that has its address from a core that is gone.",
    edits: [
      { file: "packages/core/src/replica/roll.ts", find: "cluster !== self.cluster", replace: "false" },
    ],
  },
  {
    name: "elementsOverlap",
    why: "Elements of a page of a backup may stand for the same bytes: a small file becomes a large state.",
    edits: [
      { file: "packages/core/src/server/backup/bolt/read.ts", find: "free = after;", replace: "free = end;" },
    ],
    caughtBy: hostileFileTest,
  },
  {
    name: "orphansAttached",
    why: "A key of a backup hangs on a lease that is not there, and on one that is granted under that id later.",
    edits: [
      {
        file: "packages/core/src/server/backup/state.ts",
        find: "revisions.withoutLease(version);",
        replace: ";",
      },
    ],
    caughtBy: hostileFileTest,
  },
  {
    name: "rightsForgotten",
    why: "A snapshot of a core whose users have never changed does not say that rights are on.",
    edits: [
      {
        file: "packages/core/src/state/snapshot.ts",
        find: "enabled || revision !== 1n",
        replace: "revision > 1n",
      },
    ],
    caughtBy: hostileFileTest,
  },
  {
    name: "roomTakenTooLate",
    why: "What a backup has is counted when all of it is in memory.",
    edits: [
      {
        file: "packages/core/src/server/backup/state.ts",
        find: "this.state.bytes + bytes > this.#bytesMax",
        replace: "this.state.bytes + bytes > 2 ** 60",
      },
    ],
    caughtBy: hostileFileTest,
  },
]);
