/** The known mistakes that can be made with replicated files. */

const replica = "packages/files/src/protocol/replica.ts";
const copies = "packages/files/src/protocol/copies.ts";
const primary = "packages/files/src/protocol/primary.ts";
const resetting = "packages/files/src/protocol/reset.ts";
const joining = "packages/files/src/protocol/join.ts";

const store = "packages/files/src/disk/directory-store.ts";

const epochsTest = { file: "packages/files/src/protocol/epochs.test.ts" };
const troublesTest = { file: "packages/files/src/protocol/troubles.test.ts" };
const crashesTest = { file: "packages/files/src/disk/crashes.test.ts" };

export const inFiles = /** @type {const} */ ([
  {
    name: "filesOldEpochsCount",
    why: "A replica does what a primary says whose epoch it has promised to refuse.",
    edits: [{ file: replica, at: "if (epoch < promised)", find: "epoch < promised", replace: "false" }],
    caughtBy: epochsTest,
  },
  {
    name: "filesResetOfOne",
    why: "A reset goes by the first copy that answers.",
    edits: [
      {
        file: copies,
        at: "valid.length >= majorityOf(this.#parts.nodes.length) ? valid",
        find: "majorityOf(this.#parts.nodes.length)",
        replace: "1",
      },
    ],
  },
  {
    name: "filesMinorityCounts",
    why: "A primary acknowledges what is on its own disk alone.",
    edits: [
      {
        file: copies,
        at: "isHere && valid.length >= majorityOf(this.#parts.nodes.length)",
        find: "majorityOf(this.#parts.nodes.length)",
        replace: "1",
      },
    ],
  },
  {
    name: "filesReadWithoutLease",
    why: "A primary reads without a look at its lease.",
    edits: [
      {
        file: primary,
        find: "this.#lease.assertHeld(this.#parts.settings.leaseMarginMs);",
        replace: "void this.#lease;",
      },
      { file: primary, find: "this.#lease.remaining() === 0", replace: "false" },
    ],
  },
  {
    name: "filesAllBasesCount",
    why: "A reset takes blocks of copies that an earlier reset has left out: a change appears after a read did not show it.",
    edits: [{ file: resetting, find: "BigInt(base!) === newestBase", replace: "true" }],
  },
  {
    name: "filesUncertainGoesOn",
    why: "A primary serves on after a change that has not reached a majority.",
    edits: [
      { file: primary, at: "void this.end();\n      if (cause", find: "void this.end();", replace: "" },
    ],
  },
  {
    name: "filesRepairOfAnyVersion",
    why: "A damaged block is repaired with whatever another node has of it.",
    edits: [{ file: replica, find: "block?.tag !== tag", replace: "block === undefined" }],
  },
  {
    name: "filesMarkBeforeCopies",
    why: "A copy is marked as complete before the blocks that were copied are on disk.",
    edits: [
      {
        file: replica,
        at: "await this.#store.sync(path);\n      if (meta.base !== BigInt(epoch))",
        find: "await this.#store.sync(path);",
        replace: "",
      },
    ],
    caughtBy: epochsTest,
  },
  {
    name: "filesEmptyDiskVotes",
    why: "A node whose disk was lost votes as if there had been nothing on it.",
    edits: [
      {
        file: joining,
        find: "for (const other of told) await adoptPromises(other, replica, peers, timeoutMs);",
        replace: "",
      },
    ],
  },
  {
    name: "filesMarkOfEarlierProcess",
    why: "A copy counts as complete although the node has lost what the process before had not synced.",
    edits: [{ file: replica, find: "incarnation !== this.#standings.incarnation", replace: "false" }],
    caughtBy: troublesTest,
  },
  {
    name: "filesHalfCutGoesOn",
    why: "A primary serves on when not all has been cut off that a truncation cuts off.",
    edits: [
      {
        file: primary,
        find: "await this.#settled(() => this.#cut(left));",
        replace: "await this.#cut(left);",
      },
    ],
    caughtBy: troublesTest,
  },
  {
    name: "filesReplacedDiskComplete",
    why: "A primary believes that a node still has what it had before its disk was replaced.",
    edits: [{ file: primary, find: "this.copies.lackedBy(lacks);", replace: "void lacks;" }],
    caughtBy: troublesTest,
  },
  {
    name: "filesSyncAfterFailure",
    why: "A disk that could not sync is believed when the next sync succeeds.",
    edits: [
      {
        file: store,
        find: "if (file.syncFailure !== undefined) throw file.syncFailure;",
        replace: "",
      },
    ],
    caughtBy: crashesTest,
  },
  {
    name: "filesPlaceOfRecordOnItsWay",
    why: "The place of a block is used again while a record of it is on its way to the index.",
    edits: [
      {
        file: store,
        find: "for (const { block } of placed) block!.uses += 1;",
        replace: "for (const { block } of placed) block!.uses += 0;",
      },
    ],
    caughtBy: crashesTest,
  },
]);
