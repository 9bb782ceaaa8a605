/** The known mistakes that can be made with replicated files. */

const replica = "packages/files/src/protocol/replica.ts";
const copies = "packages/files/src/protocol/copies.ts";
const primary = "packages/files/src/protocol/primary.ts";
const tenure = "packages/files/src/protocol/tenure.ts";
const resetting = "packages/files/src/protocol/reset.ts";
const joining = "packages/files/src/protocol/join.ts";
const namesPrimary = "packages/files/src/protocol/names-primary.ts";
const uploads = "packages/files/src/protocol/uploads.ts";
const draft = "packages/files/src/names/draft.ts";
const writer = "packages/files/src/contents/writer.ts";
const namedFiles = "packages/files/src/tree/named-files.ts";

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
        file: tenure,
        find: "this.#lease.assertHeld(this.#parts.settings.leaseMarginMs);",
        replace: "void this.#lease;",
      },
      { file: tenure, find: "this.#lease.remaining() === 0", replace: "false" },
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
    edits: [{ file: tenure, at: "void this.end();\n      if (cause", find: "void this.end();", replace: "" }],
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
        find: "await this.tenure.settled(() => this.#cut(left));",
        replace: "await this.#cut(left);",
      },
    ],
    caughtBy: troublesTest,
  },
  {
    name: "filesReplacedDiskComplete",
    why: "A primary believes that a node still has what it had before its disk was replaced.",
    edits: [{ file: tenure, find: "this.copies.lackedBy(lacks);", replace: "void lacks;" }],
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
  {
    name: "namesUnconditional",
    why: "A change of names is made although its condition does not hold any more.",
    edits: [{ file: draft, find: "ifMissing && there !== undefined", replace: "false" }],
  },
  {
    name: "namesWithoutLease",
    why: "The primary of names answers without a look at its lease.",
    edits: [
      {
        file: namesPrimary,
        find: "result.isDone !== true",
        replace: "false",
      },
      {
        file: namesPrimary,
        at: "if (this.tenure.isOver) throw new TenureOver();\n    switch",
        find: "this.tenure.isOver",
        replace: "false",
      },
    ],
  },
  {
    name: "namesUnsealed",
    why: "A file that is written in place is moved, shared or dropped while it accepts writes.",
    edits: [{ file: draft, find: "unsealed.size > 0", replace: "false" }],
  },
  {
    name: "namesBeforeMajority",
    why: "A change of names is seen and acknowledged before a majority has it.",
    edits: [
      {
        file: namesPrimary,
        find: "await tenure.setBlock(this.#nextRecord, tenure.nextStamp(0), bytes, false, tenure.operationTime())",
        replace:
          "void tenure.setBlock(this.#nextRecord, tenure.nextStamp(0), bytes, false, tenure.operationTime()).catch(() => undefined)",
      },
    ],
  },
  {
    name: "namesTwice",
    why: "An upload whose change is uncertain repeats it, whatever its name has now.",
    edits: [{ file: namedFiles, at: "if (isAsBefore)", find: "isAsBefore", replace: "true" }],
  },
  {
    name: "contentsBeforeWhole",
    why: "A content has its name before a majority of nodes has it on disk.",
    edits: [
      {
        file: writer,
        find: "validVotes(votes).length >= majorityOf(this.#parts.nodes.length)",
        replace: "votes.length >= 0",
      },
    ],
  },
  {
    name: "contentsCollectedEarly",
    why: "A node collects a content that an upload may still name.",
    edits: [
      {
        file: namesPrimary,
        find: "!this.#state.isNamed(id) && !this.#announced.has(id)",
        replace: "!this.#state.isNamed(id)",
      },
    ],
  },
  {
    name: "contentsUnnamedOnce",
    why: "A node removes a content without a second look at its names, when nobody counts on the copy any more.",
    edits: [{ file: uploads, find: "!(await mayBeRemoved())", replace: "false" }],
  },
]);
