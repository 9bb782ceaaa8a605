/** Mistakes in what a server of the core answers, which the comparison with a real etcd has to find. */

const range = "packages/core/src/state/range.ts";
const txn = "packages/core/src/state/txn.ts";
const revisions = "packages/core/src/state/revisions.ts";
const auth = "packages/core/src/state/auth-state.ts";
const rights = "packages/core/src/state/check-rights.ts";
const watchStream = "packages/core/src/replica/watch-stream.ts";
const readAnswers = "packages/core/src/replica/read-answers.ts";

/** `servers`: the mistake has to be in the server's process (`scripts/planted-servers.mjs`). */
const found = { file: "test/core/differential/differential.test.ts", servers: true };

/**
 * @template {string} Name
 * @param {Name} name
 * @param {string} why
 * @param {string} file
 * @param {string} find
 * @param {string} replace
 * @param {string} [at]
 */
const mistake = (name, why, file, find, replace, at = find) => ({
  name,
  why,
  edits: [{ file, find, replace, at }],
  caughtBy: found,
});

export const inAnswers = [
  mistake(
    "moreAtTheLimit",
    "`more` is said of a range that has just as many keys as were asked for.",
    range,
    "this.#wanted > this.#limit",
    "this.#wanted >= this.#limit",
  ),
  mistake(
    "countedToTheLimit",
    "`count` is that of the keys in the answer.",
    range,
    "BigInt(this.#count)",
    "BigInt(Math.min(this.#count, this.#limit))",
  ),
  mistake(
    "cutBeforeSorted",
    "A range is cut at its limit before it is sorted.",
    range,
    "this.#found.push(version)",
    "this.#found.length <= this.#limit && this.#found.push(version)",
    "if (this.#isSorted) this.#found.push(version)",
  ),
  mistake(
    "boundLeftOut",
    "The smallest revision that is asked for is left out.",
    range,
    "modified >= minModified",
    "modified > minModified",
  ),
  mistake(
    "compactedUnreadable",
    "The revision that was compacted last cannot be read.",
    range,
    "Number(revision) < view.compacted",
    "Number(revision) <= view.compacted",
  ),
  mistake(
    "descendsNever",
    "A range is sorted upwards, whatever is asked for.",
    range,
    "isDescending ? compare(b, a) : compare(a, b)",
    "compare(a, b)",
  ),
  mistake(
    "noEarlierInside",
    "A deletion in a transaction does not say what was there.",
    txn,
    "yield* deleteResponse(write, request.value, gone)",
    "yield* deleteResponse(write, { ...request.value, prevKv: false }, gone)",
  ),
  mistake(
    "readsInsideAreOld",
    "A read in a transaction does not see the writes before it.",
    txn,
    "yield* readRange(seen.view, request.value, seen.budget, seen.revision)",
    "yield* readRange(seen.view, request.value, seen.budget)",
  ),
  mistake(
    "leaseIsNotKept",
    "A put that keeps its key's lease takes it off.",
    txn,
    "request.ignoreLease ? before!.lease : request.lease",
    "request.lease",
  ),
  mistake(
    "missingDiffers",
    "The value of a key that is not there is unlike any other.",
    txn,
    "if (version === undefined) return undefined;",
    "if (version === undefined) return -1;",
  ),
  mistake(
    "failureUnchecked",
    "The second way of a transaction inside may write what the first one beside it does.",
    "packages/core/src/state/check.ts",
    "new Set([...success.puts, ...failure.puts])",
    "new Set(success.puts)",
  ),
  mistake(
    "versionsGoOn",
    "A key that was deleted and comes again is not of version 1.",
    revisions,
    "(before?.version ?? 0) + 1",
    "(before?.version ?? listOf(this.keys.get(key) ?? []).length) + 1",
  ),
  mistake(
    "tombstoneShows",
    "A key of which compaction has left nothing but its deletion seems to be there.",
    revisions,
    "lastUpTo(history, revision)",
    "(Array.isArray(history) ? lastUpTo(history, revision) : history.modified <= revision ? history : undefined)",
    "history === undefined ? undefined : lastUpTo(history, revision)",
  ),
  mistake(
    "movedKeyHangsOn",
    "A key that is put without its lease, or with another one, is deleted with the first.",
    "packages/core/src/state/leases.ts",
    "this.detach(key, before);",
    ";",
  ),
  mistake(
    "grantedForLonger",
    "The time that a lease was granted for is told wrong.",
    readAnswers,
    "BigInt(lease.ttlSeconds)",
    "BigInt(lease.ttlSeconds + 1)",
  ),
  mistake(
    "refreshedForLess",
    "A refresh tells a wrong time.",
    readAnswers,
    "BigInt(ttlSeconds)",
    "BigInt(ttlSeconds - 1)",
    "ID: request.request.ID, TTL: BigInt(ttlSeconds)",
  ),
  mistake(
    "filtersSwapped",
    "A watch without puts has no deletions.",
    watchStream,
    "isDeletion(change) ? this.#noDelete : this.#noPut",
    "isDeletion(change) ? this.#noPut : this.#noDelete",
  ),
  mistake(
    "pastWithoutEarlier",
    "A watch that begins in the past does not say what was there before.",
    watchStream,
    "revisions.before(change)",
    "this.isSynced ? revisions.before(change) : undefined",
  ),
  mistake(
    "fragmentsAreLost",
    "Of a revision that is sent in fragments the last one arrives.",
    watchStream,
    "this.emit({ watchId, events: piece, fragment: true });",
    ";",
  ),
  mistake(
    "idsComeAgain",
    "A watch gets the id of one that was cancelled.",
    watchStream,
    "this.#nextId += 1n;",
    ";",
    "const id = this.#nextId;\n    this.#nextId += 1n;",
  ),
  mistake(
    "resignsAnotherKey",
    "Who resigns deletes another key than its own.",
    "packages/core/src/server/api/election.ts",
    "queue.removeCreated(key, rev)",
    "queue.removeCreated(Uint8Array.of(...key, 0), rev)",
  ),
  mistake(
    "alarmStays",
    "An alarm that is put out goes on.",
    "packages/core/src/state/alarms.ts",
    "alarms.delete(member)",
    "alarms.has(member)",
  ),
  mistake(
    "endIsInside",
    "A permission reaches to its end, and not to before it.",
    "packages/core/src/state/permissions.ts",
    "rangeOf(key, rangeEnd)",
    "rangeEnd.length > 1 ? { ...rangeOf(key, rangeEnd), to: rangeOf(rangeEnd, new Uint8Array()).to } : rangeOf(key, rangeEnd)",
  ),
  mistake(
    "otherWayUnchecked",
    "Rights to the second way of a transaction are not asked for.",
    rights,
    "for (const { request } of failure) this.#operation(request);",
    ";",
  ),
  mistake(
    "comparesWithoutRights",
    "Rights to the keys that a transaction compares are not asked for.",
    rights,
    'for (const { key, rangeEnd } of compare) this.keys("read", rangeOf(key, rangeEnd));',
    ";",
  ),
  mistake(
    "earlierWithoutRights",
    "Who may only write learns what was there before a deletion.",
    rights,
    'if (prevKv) this.keys("read", range);',
    ";",
    'const range = rangeOf(key, rangeEnd);\n    this.keys("write", range);\n    if (prevKv) this.keys("read", range);',
  ),
  mistake(
    "revokedWithoutRights",
    "A lease may be ended whoever's keys hang on it.",
    rights,
    'if (kind === "leaseRevoke") ids.add(value.ID);',
    ";",
  ),
  mistake(
    "roleStays",
    "The users of a role that is deleted keep it.",
    auth,
    "user.roles.includes(name)",
    "false",
  ),
];
