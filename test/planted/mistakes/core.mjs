/** The known mistakes that can be made with replicated leases, in the state machine and around it. */

const leases = "packages/core/src/state/leases.ts";
const state = "packages/core/src/state/state.ts";
const clientRequests = "packages/core/src/replica/client-requests.ts";
const forwarding = "packages/core/src/replica/proposals/forwarding.ts";
const replica = "packages/core/src/replica/replica.ts";
const leaseKeeping = "packages/core/src/replica/lease-keeping.ts";
const readIndexQueue = "packages/core/src/replica/read-index-queue.ts";
const leaseTracker = "packages/core/src/replica/lease-tracker.ts";
const snapshot = "packages/core/src/state/snapshot.ts";
const readScheduler = "packages/core/src/replica/read-scheduler.ts";
const watchHub = "packages/core/src/replica/watch-hub.ts";
const applier = "packages/core/src/replica/applier.ts";
const revisions = "packages/core/src/state/revisions.ts";
const txnSize = "packages/core/src/server/api/calls/txn-size.ts";
const check = "packages/core/src/state/check.ts";
const callers = "packages/core/src/replica/callers.ts";
const watchStream = "packages/core/src/replica/watch-stream.ts";
const errors = "packages/core/src/state/errors.ts";
const spaceKeeping = "packages/core/src/replica/space-keeping.ts";
const copies = "packages/core/src/copies/copies.ts";
const corruptionCheck = "packages/core/src/copies/corruption-check.ts";
const pendingRequests = "packages/core/src/replica/pending-requests.ts";

const peers = "packages/core/src/server/peers/peers.ts";
const peersTest = { file: "packages/core/src/server/peers/peers.realtime.test.ts" };

export const inCore = /** @type {const} */ ([
  {
    name: "strangersHeard",
    why: "Whoever knows the core's id, and where it is called, is let in at the port between servers.",
    edits: [
      {
        file: peers,
        find: "refusalOf(hello, this.#self, isMember)",
        replace: "refusalOf(hello, this.#self, true)",
      },
    ],
    caughtBy: { file: "packages/core/src/server/server.realtime.test.ts" },
  },
  {
    name: "backupBeforeItsCore",
    why: "A server gives a backup before its core has an id, which is equal to that of another core.",
    edits: [
      { file: "packages/core/src/replica/frozen-state.ts", find: "state.cluster === 0n", replace: "false" },
    ],
    caughtBy: { file: "packages/core/src/host/new-core.test.ts", test: /before its core has its id/ },
  },
  {
    name: "listsOfOtherCores",
    why: "A server of another core, at a member's address, says who the members are.",
    edits: [
      {
        file: peers,
        at: "(cluster === self.cluster ?",
        find: "cluster === self.cluster",
        replace: "cluster > 0n",
      },
    ],
    caughtBy: peersTest,
  },
  {
    name: "listedRemoves",
    why: "A server that the log does not know ends another one by its word.",
    edits: [
      {
        file: peers,
        find: "this.#roll.members.some(({ id }) => id === peer.id)",
        replace: "peer.id > 0n",
      },
    ],
    caughtBy: peersTest,
  },
  {
    name: "movesUnheard",
    why: "A server that was away does not look for a member where others list it.",
    edits: [
      {
        file: "packages/core/src/replica/roll.ts",
        find: "this.#listed.get(id)?.peerUrls ?? []",
        replace: "[]",
      },
    ],
    caughtBy: peersTest,
  },
  {
    name: "flagsUnasked",
    why: "A server does not ask who the members are where its flags say that there is one.",
    edits: [{ file: peers, at: ".concat(initialUrls)", find: "initialUrls", replace: "[]" }],
    caughtBy: peersTest,
  },
  {
    name: "strangersTaken",
    why: "A leader takes proposals from a server that is no member.",
    edits: [
      {
        file: "packages/core/src/replica/replica.ts",
        find: "isMember(raft.membership, from)",
        replace: "true",
      },
    ],
  },
  {
    name: "proposedForOthers",
    why: "A server proposes in the name of another one, or of the core, which has all rights.",
    edits: [
      {
        file: "packages/core/src/replica/replica.ts",
        find: "!isProposedBySender(message)",
        replace: "false",
      },
    ],
  },
  {
    name: "beyondAcknowledged",
    why: "A heartbeat commits what this server has not acknowledged: the server takes its log for lost, and ends.",
    edits: [
      {
        file: "packages/core/src/raft/leader-claims.ts",
        find: "message.commit <= this.#acknowledged",
        replace: "message.commit >= 0",
      },
    ],
    caughtBy: { file: "packages/core/src/raft/input.test.ts" },
  },
  {
    name: "formerLifeForgotten",
    why: "A server that began anew in a term takes itself for sure of what it has acknowledged in it.",
    edits: [
      {
        file: "packages/core/src/raft/leader-claims.ts",
        find: "this.#hasSeenTermBegin = this.#hasFollowed",
        replace: "this.#hasSeenTermBegin = true",
      },
    ],
    caughtBy: { file: "packages/core/src/raft/input.test.ts" },
  },
  {
    name: "raisedTooEarly",
    why: "The cluster's version is raised as soon as one server speaks it, and not when all do.",
    edits: [
      {
        file: "packages/core/src/replica/membership.ts",
        find: "least(spoken)",
        replace: "-least(spoken.map((each) => -each))",
      },
    ],
  },
  {
    name: "raisedWithoutOne",
    why: "The cluster's version is raised while a member is away, which may come back as it was before.",
    edits: [
      {
        file: "packages/core/src/replica/membership.ts",
        find: "this.#active(all).length < all.length",
        replace: "all.length === 0",
      },
    ],
  },
  {
    name: "formerVersionsHeard",
    why: "Servers of a version before the cluster's take part.",
    edits: [
      {
        file: "packages/core/src/server/peers/hello.ts",
        find: "newestOf(hello) >= version",
        replace: "newestOf(hello) > 0",
      },
    ],
    caughtBy: peersTest,
  },
  {
    name: "formerDirectories",
    why: "A server of the former version begins with a directory of a cluster that has gone beyond it.",
    edits: [
      {
        file: "packages/core/src/server/disk/member-file.ts",
        find: "record.version > oldestVersion ? laterFormat : format",
        replace: "format",
      },
    ],
    caughtBy: { file: "packages/core/src/server/disk/member-file.test.ts" },
  },
  {
    name: "strangersOfOneHost",
    why: "A host that comes often has connections of others given up before they have said who they are.",
    edits: [
      {
        file: peers,
        find: "(other.length > one.length ? other : one)",
        replace: "one",
      },
    ],
    caughtBy: peersTest,
  },
  {
    name: "addressTwice",
    why: "A server is added where another one is.",
    edits: [
      {
        file: "packages/core/src/replica/membership.ts",
        find: "members.at(peerUrls) !== undefined",
        replace: "members.all.length < 0",
      },
    ],
  },
  {
    name: "movesKeptForEver",
    why: "A server goes on looking for another where it would be by an entry that was never committed.",
    edits: [
      {
        file: "packages/core/src/replica/membership.ts",
        find: "!this.#forgetMoves() && isSame",
        replace: "isSame",
      },
    ],
    caughtBy: { file: "packages/core/src/replica/membership.test.ts" },
  },
  {
    name: "uncommittedMovesForgotten",
    why: "A server that begins does not look for others where the end of its log says that they have moved.",
    edits: [
      {
        file: "packages/core/src/replica/membership.ts",
        find: "if (moved === undefined) return member;",
        replace: "if (moved === undefined || moved !== undefined) return member;",
      },
    ],
    caughtBy: { file: "packages/core/src/replica/membership.test.ts" },
  },
  {
    name: "comparedAcrossCompactions",
    why: "Copies of servers are compared that were compacted to different revisions.",
    edits: [
      {
        file: copies,
        find: '(outcome === "hash" && compacted === own.compacted)',
        replace: 'outcome === "hash"',
      },
    ],
  },
  {
    name: "healthyServersEnd",
    why: "A server that begins ends as soon as one other differs, though a third could say who is right.",
    edits: [{ file: copies, find: "(votes + unheard) * 2 > voters.length", replace: "false" }],
    caughtBy: { file: "packages/core/src/copies/corruption-check.test.ts" },
  },
  {
    name: "formerLifeAnswered",
    why: "The numbers of comparisons of a server's lives are the same.",
    edits: [{ file: corruptionCheck, find: "random.next() * firstNumberMax", replace: "nowMs" }],
    caughtBy: { file: "packages/core/src/copies/corruption-check.test.ts" },
  },
  {
    name: "alarmOfFormerMember",
    why: "A member that was removed while it was compared gets an alarm, which nothing ends.",
    edits: [
      {
        file: corruptionCheck,
        find: "(member === 0n || isMember(raft.membership, member))",
        replace: "(member === 0n || member > 0n)",
      },
      { file: corruptionCheck, find: "isMember(raft.membership, id)", replace: "id > 0n" },
    ],
    caughtBy: { file: "packages/core/src/copies/corruption-check.test.ts" },
  },
  {
    name: "spaceAlarmOfFormerLeader",
    why: "A leader raises the alarm of space for itself behind its own removal in the log: nothing ends it.",
    edits: [
      {
        file: "packages/core/src/replica/space-keeping.ts",
        find: "isMember(this.#context.raft.membership, this.#context.id)",
        replace: "this.#context.id > 0n",
      },
    ],
    caughtBy: { file: "packages/core/src/replica/space.test.ts" },
  },
  {
    name: "copiesNotCompared",
    why: "Servers are asked for their copies, and the answers are not compared.",
    edits: [{ file: copies, find: "hashes.size === 1", replace: "hashes.size >= 0" }],
  },
  {
    name: "copyOfAnotherRevision",
    why: "A server that is asked for its copy at a revision tells what it has now.",
    edits: [
      {
        file: corruptionCheck,
        find: "question.hashing = this.#hash(revision);",
        replace: "question.hashing = this.#hash(current);",
      },
    ],
  },
  {
    name: "endsForgottenInCorruption",
    why: "An end of a lease that an alarm has kept from happening is not proposed again.",
    edits: [{ file: leaseKeeping, find: "this.tracker.putBack(this.#ending, nowMs);", replace: ";" }],
  },
  {
    name: "endsWhateverHasTheId",
    why: "The end of a lease hits one that was granted under the same id after the leader had looked.",
    edits: [
      {
        file: leaseKeeping,
        at: "apart: true, seen: BigInt(appliedIndex)",
        find: "BigInt(appliedIndex)",
        replace: "undefined",
      },
    ],
  },
  {
    name: "leasesEndInCorruption",
    why: "Leases and their keys go while a member is known to be corrupt.",
    edits: [
      { file: leaseKeeping, find: "if (state.corruptAlarms.size > 0) return;", replace: ";" },
      { file: state, find: "this.corruptAlarms.size === 0", replace: "true" },
    ],
  },
  {
    name: "tenureOutlivesItsLease",
    why: "A holder on a core relies on its lease for twice as long.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/tenure.ts",
        find: "this.#leaseMs - elapsedMs(this.#begun, now)",
        replace: "2 * this.#leaseMs - elapsedMs(this.#begun, now)",
      },
    ],
  },
  {
    name: "askedForTooMuch",
    why: "A core is asked for leases of three times the ttl: what a dead process had is in the way for so long.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/terms.ts",
        find: "stretched(ttlMs, clockRateError) / 1_000",
        replace: "(3 * stretched(ttlMs, clockRateError)) / 1_000",
      },
    ],
  },
  {
    name: "duplicatesUncheckedAtApply",
    why: "Duplicates are refused when they are proposed, and not again when they are applied.",
    edits: [
      {
        file: leases,
        find: 'if (name !== undefined && this.#names.has(name)) throw new CoreError("leaseNameTaken");\n    if (this.#leases.has(id)) throw new CoreError("leaseExists");',
        replace: ";",
      },
    ],
  },
  {
    name: "keysLeftBehind",
    why: "A lease ends, and its keys stay.",
    edits: [
      {
        file: state,
        find: "yield* write.deleteKeys(yield* sortInSteps(keys, (a, b) => (a < b ? -1 : 1)));",
        replace: ";",
      },
    ],
  },
  {
    name: "answeredWhenProposed",
    why: "A write is answered when it is proposed.",
    edits: [
      {
        file: clientRequests,
        at: 'pending.term = proposed.term;\n    pending.stage = "proposed";',
        find: 'pending.stage = "proposed";',
        replace:
          'pending.stage = "proposed"; if (pending.request.kind === "put") this.requests.answer(pending, { $typeName: "etcdserverpb.PutResponse", header: this.#context.header() });',
      },
      {
        file: clientRequests,
        at: '#forward(pending: PendingRequest, command: Uint8Array): void {\n    pending.stage = "proposed";',
        find: 'pending.stage = "proposed";',
        replace:
          'pending.stage = "proposed"; if (pending.request.kind === "put") this.requests.answer(pending, { $typeName: "etcdserverpb.PutResponse", header: this.#context.header() });',
      },
    ],
  },
  {
    name: "followersEndLeases",
    why: "Every server tracks leases and ends them.",
    edits: [
      { file: replica, at: "if (isOwn) this.#beginLeading();", find: "isOwn", replace: "true" },
      {
        file: leaseKeeping,
        find: "if (proposed.accepted) this.#endingIndex = proposed.index;\n    else this.tracker.putBack(ids, nowMs);",
        replace:
          'if (proposed.accepted) this.#endingIndex = proposed.index; else this.tracker.putBack(ids, nowMs); if (!this.#context.leads) this.#context.state.apply({ $typeName: "leasehold.log.Command", body: { case: "leaseExpire", value } }, leadership.term);',
      },
    ],
  },
  {
    name: "removedBeforeCommitted",
    why: "As in the pattern's listing: the leader removes the lease when it has run out, before that is committed.",
    edits: [
      {
        file: leaseKeeping,
        find: "if (proposed.accepted) this.#endingIndex = proposed.index;\n    else this.tracker.putBack(ids, nowMs);",
        replace:
          'if (proposed.accepted) this.#endingIndex = proposed.index; else this.tracker.putBack(ids, nowMs); this.#context.state.apply({ $typeName: "leasehold.log.Command", body: { case: "leaseExpire", value } }, leadership.term);',
      },
    ],
  },
  {
    name: "refreshWithoutRound",
    why: "A leader refreshes leases without having asked whether it still is one.",
    edits: [
      {
        file: readIndexQueue,
        find: "this.#forming.push(question);",
        replace:
          'if (ask.about === "refresh" && this.#leases.isTracking) this.#confirmed.push({ question, index: this.#context.appliedIndex, isWhole: false }); else this.#forming.push(question);',
      },
    ],
  },
  {
    name: "refreshAfterEndProposed",
    why: "A lease whose end is in the log is refreshed.",
    edits: [
      {
        file: leaseTracker,
        at: "if (item === undefined || item.isEnding) return 0;\n    this.#deadlines",
        find: "item === undefined || item.isEnding",
        replace: "item === undefined",
      },
    ],
  },
  {
    name: "staleRefresh",
    why: "A refresh is carried out although nobody waits for it any more.",
    edits: [{ file: readIndexQueue, find: "!isWanted", replace: "false" }],
  },
  {
    name: "refreshBeforeApplied",
    why: "A refresh is answered before the lease is there that a committed grant has made.",
    edits: [
      {
        file: readIndexQueue,
        find: "this.#confirmed.push({ question, index, isWhole: false });",
        replace:
          'this.#confirmed.push({ question, index: question.ask.about === "refresh" ? 0 : index, isWhole: false });',
      },
    ],
  },
  {
    name: "noExtraLife",
    why: "A new leader gives leases nothing for the time that it does not know of.",
    edits: [
      {
        file: leaseTracker,
        at: "const leftMs = item.writtenMs + this.#extraMs;",
        find: "item.writtenMs + this.#extraMs",
        replace: "0",
      },
    ],
  },
  {
    name: "oldTimeStays",
    why: "What is left of a lease stays written down although it was refreshed.",
    edits: [
      {
        file: leaseTracker,
        at: "if (item === undefined || item.isEnding) return false;\n    if (wholeIndex",
        find: "item === undefined || item.isEnding",
        replace: "true",
      },
    ],
  },
  {
    name: "endForgotten",
    why: "What could not be proposed is not found again.",
    edits: [
      {
        file: leaseKeeping,
        find: "if (proposed.accepted) this.#endingIndex = proposed.index;\n    else this.tracker.putBack(ids, nowMs);",
        replace: "if (proposed.accepted) this.#endingIndex = proposed.index;",
      },
    ],
  },
  {
    name: "endsUnbounded",
    why: "All leases that have run out end in one entry.",
    edits: [
      { file: leaseKeeping, find: "appliedIndex < this.#endingIndex", replace: "false" },
      {
        file: leaseKeeping,
        at: "this.tracker.takeDue(nowMs, limits.leasesPerBatch)",
        find: "limits.leasesPerBatch",
        replace: "Infinity",
      },
    ],
  },
  {
    name: "endTogether",
    why: "Leases that have run out end in one revision.",
    edits: [{ file: leaseKeeping, at: "apart: true", find: "true", replace: "false" }],
  },
  {
    name: "snapshotCopiedAtOnce",
    why: "A snapshot begins with a copy of the whole state.",
    edits: [
      {
        file: snapshot,
        find: "return { ...rest, auth, revisions: view };",
        replace:
          "const histories = [...view.histories()]; return { ...rest, auth, revisions: { ...view, histories: () => histories } };",
      },
    ],
  },
  {
    name: "readsInOneTurn",
    why: "A read goes on to its end, however long it takes.",
    edits: [{ file: readScheduler, find: "units < unitsMax", replace: "true" }],
  },
  {
    name: "watchesInOneTurn",
    why: "So does a watch that is behind.",
    edits: [{ file: watchHub, at: "watchBatch, unitsPerTurn)", find: "unitsPerTurn", replace: "Infinity" }],
  },
  {
    name: "commandsInOneTurn",
    why: "So does a command that changes many keys.",
    edits: [
      {
        file: applier,
        find: "yield* state.applying(command, entry.term, entry.index, answerBytes)",
        replace: "state.apply(command, entry.term, entry.index)",
      },
    ],
  },
  {
    name: "sweptInOneTurn",
    why: "What was compacted away is removed at once.",
    edits: [
      {
        file: applier,
        at: "const isOver = () => visits.count >= end;",
        find: "visits.count >= end",
        replace: "false",
      },
    ],
  },
  {
    name: "readsMoveOn",
    why: "A read that takes several turns sees each key as it is when it comes to it.",
    edits: [
      { file: revisions, at: "yield lastUpTo(history, revision);", find: "revision", replace: "Infinity" },
    ],
  },
  {
    name: "readsLiveKeys",
    why: "A read that takes several turns goes through the keys while others change them.",
    edits: [{ file: state, at: "isOneKey ? this.revisions", find: "isOneKey", replace: "true" }],
  },
  {
    name: "endsReadOneByOne",
    why: "Of leases that one command ends, each can be read, and is not told, before the next.",
    edits: [
      {
        file: state,
        at: "if (!apart) continue;\n      this.#keep(write);",
        find: "this.#keep(write);",
        replace: "this.#commit(write, undefined);",
      },
    ],
  },
  {
    name: "unsyncedToBefore",
    why: "A watch that goes back to history begins with what is there for others.",
    edits: [
      {
        file: watchHub,
        at: "watcher.next = Math.max(watcher.next, next);\n    watcher.nextSub = 0;",
        find: "Math.max(watcher.next, next)",
        replace: "next",
      },
    ],
  },
  {
    name: "sharesOfStreams",
    why: "Each stream has a share of the room for watches, and not each client.",
    edits: [
      {
        file: "packages/core/src/replica/watch-stream.ts",
        find: "this.client = client;",
        replace: "this.client = `${stream}`;",
      },
    ],
  },
  {
    name: "watchesUnbounded",
    why: "Watches take as much memory as a client likes.",
    edits: [
      { file: watchHub, find: "!this.#watchBytes.tryTake(stream.client, watcher.bytes)", replace: "false" },
    ],
  },
  {
    name: "gatheringPlaceStays",
    why: "A watch that ends while it gathers a revision keeps its place.",
    edits: [
      {
        file: watchHub,
        at: "this.#waiting.delete(watcher);\n    this.#gathering.delete(watcher);",
        find: "this.#gathering.delete(watcher);",
        replace: ";",
      },
    ],
  },
  {
    name: "slowWatcherSkips",
    why: "A slow watcher misses what is changed meanwhile.",
    edits: [
      {
        file: watchHub,
        at: "} else this.#unsync(watcher, changes[0]!.modified);",
        find: "this.#unsync(watcher, changes[0]!.modified);",
        replace: ";",
      },
    ],
  },
  {
    name: "proposedTwice",
    why: "A write that may have been proposed is proposed again.",
    edits: [
      {
        file: clientRequests,
        at: "this.#askAllAgain();\n    this.#retryHeld();",
        find: "this.#retryHeld();",
        replace:
          "for (const pending of this.#proposed.values()) this.#wait(pending, this.#waiting); this.#retryHeld();",
      },
    ],
  },
  {
    name: "lostProposalsStayLost",
    why: "What a connection carried when it was cut is not proposed again to the same leader.",
    edits: [
      {
        file: forwarding,
        find: "isLost && pending.term === term",
        replace: "false",
      },
    ],
  },
  {
    name: "repeatedIsAppendedAgain",
    why: "A proposal that comes again on the next connection is appended again.",
    edits: [
      {
        file: "packages/core/src/replica/proposals/forwarded.ts",
        find: "outcome !== undefined",
        replace: "false",
      },
    ],
  },
  {
    name: "refusalOfARepeatCounts",
    why: "A leader of a later term says of a proposal that comes again that it was never appended.",
    edits: [
      {
        file: replica,
        find: "message.again && !isOfThisTerm",
        replace: "false",
      },
    ],
  },
  {
    name: "notSentIsForgotten",
    why: "What the connection to the leader has no room for is lost without a word.",
    edits: [
      {
        file: clientRequests,
        find: "this.#forwarding.notSent(pending, again);\n    this.#unpropose(pending);",
        replace: ";",
      },
    ],
  },
  {
    name: "oneConnectionForAll",
    why: "Heartbeats and answers wait behind what is large.",
    edits: [
      {
        file: "packages/core/src/replica/proposals/bulk.ts",
        find: 'kind === "append" || kind === "commit" || isProposal(kind)',
        replace: "kind !== undefined",
      },
    ],
  },
  {
    name: "silenceBeforeReading",
    why: "A process that stood still takes a peer for gone whose answer it has not read yet.",
    edits: [
      {
        file: "packages/core/src/server/peers/connection.ts",
        find: "setImmediate(() => this.#judgeSilence());",
        replace: "this.#judgeSilence();",
      },
    ],
    caughtBy: { ...peersTest, test: /heard before silence/ },
  },
  {
    name: "arrivingUnheard",
    why: "A follower that is just taking in a long message of its leader has not heard it.",
    edits: [{ file: "packages/core/src/raft/raft.ts", find: "this.#timer.hears();", replace: ";" }],
  },
  {
    name: "budgetOfEachLevel",
    why: "Each transaction inside of another may have as many operations again, and none is too deep for the check.",
    edits: [
      { file: txnSize, find: "parts > partsMax || txn.depth > nestingMax", replace: "false" },
      { file: check, at: "left < 0 || depth > nestingMax", find: "depth > nestingMax", replace: "false" },
      { file: check, at: "checkSize(request.value, left, depth + 1)", find: "left", replace: "budget" },
      {
        file: "packages/core/src/replica/proposals/read-command.ts",
        at: "recursionLimit: commandDepthMax",
        find: "commandDepthMax",
        replace: "100",
      },
    ],
  },
  {
    name: "revisionsGathered",
    why: "All that one revision has for a watch is gathered, however much it is.",
    edits: [
      { file: watchHub, find: "watcher.eventBytes > bytesMax", replace: "false" },
      { file: watchHub, at: "if (!isLong) this.#beginAgain(watcher);", find: "!isLong", replace: "false" },
      {
        file: watchHub,
        at: "else if (watcher.fragment) stream.emitPart(watcher);",
        find: "watcher.fragment",
        replace: "false",
      },
      {
        file: watchHub,
        find: "watcher.eventBytes > this.#context.limits.revisionBytesMax",
        replace: "false",
      },
    ],
  },
  {
    name: "eventsSpread",
    why: "The events of a revision are the arguments of one call, which are as many as the stack takes: here a thousand.",
    edits: [
      {
        file: watchStream,
        find: "append(batch, revision);",
        replace:
          'if (revision.length > 1_000) throw new RangeError("too many arguments"); batch.push(...revision);',
      },
    ],
  },
  {
    name: "mistakesEscape",
    why: "What is thrown for one request or stream is not kept there.",
    edits: [
      {
        file: errors,
        find: 'return error instanceof CoreError ? error : new CoreError("internal", error);',
        replace: "if (!(error instanceof CoreError)) throw error; return error;",
      },
    ],
  },
  {
    name: "historyGrows",
    why: "Nothing is compacted but by clients.",
    edits: [
      {
        file: spaceKeeping,
        find: "revision <= Math.max(0, this.#context.state.revisions.compacted)",
        replace: "true",
      },
    ],
  },
  {
    name: "sharesUnfair",
    why: "One client may have all the room that there is for requests.",
    edits: [
      { file: pendingRequests, at: "this.#take(client,", find: "client", replace: '"all"' },
      {
        file: pendingRequests,
        find: "this.#count.release(client, 1);\n    this.#bytes.release(client, bytes);",
        replace: 'this.#count.release("all", 1); this.#bytes.release("all", bytes);',
      },
    ],
  },
  {
    name: "requestsStay",
    why: "A request that nobody waits for any more stays where it waits.",
    edits: [
      {
        file: clientRequests,
        at: "#forget(pending: PendingRequest): void {\n    this.#waiting.delete(pending.number);",
        find: "this.#waiting.delete(pending.number);",
        replace: "return; this.#waiting.delete(pending.number);",
      },
    ],
  },
  {
    name: "bytesStay",
    why: "What was compacted away still counts.",
    edits: [
      {
        file: revisions,
        find: "this.bytes -= sizeOf(version);",
        replace: ";",
      },
    ],
  },
  {
    name: "historyInOnePiece",
    why: "All versions of a key are one piece of a snapshot, however many there are.",
    edits: [
      {
        file: snapshot,
        at: "const end = endOfPiece(history, start, pieceBytes)",
        find: "endOfPiece(history, start, pieceBytes)",
        replace: "history.length",
      },
    ],
  },
  {
    name: "lateProposalTaken",
    why: "A leader takes a command that was meant for it in an earlier term: its sender may have proposed it again.",
    edits: [
      {
        file: replica,
        at: "const isOfThisTerm = term === leadership.term;",
        find: "term === leadership.term",
        replace: "true",
      },
    ],
  },
  {
    name: "wishDropsData",
    why: "Who asks the holder to release writes its wish beside the lease, and drops what others are to read there.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/inspection.ts",
        find: "{ ...record, asked }",
        replace: "{ ...record, data: undefined, asked }",
      },
    ],
  },
  {
    name: "keyStaysOnTheDetachersLease",
    why: "A key that is attached hangs on the lease of the one that has detached it, and goes when that ends.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/provider.ts",
        find: "this.#core.replace(entry!, next, limits, leaseId)",
        replace: "this.#core.replace(entry!, next, limits)",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/etcd/provider.test.ts" },
  },
  {
    name: "anyPassAttaches",
    why: "Who attaches a lease of the core does not compare the pass.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/provider.ts",
        find: "record?.detached === pass",
        replace: "record !== undefined",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/etcd/provider.test.ts" },
  },
  {
    name: "detachedIsALeftover",
    why: "The participant that has detached a lease of the core takes its key for one that it has forgotten to release.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/provider.ts",
        find: "record.detached === undefined",
        replace: "true",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/etcd/provider.test.ts" },
  },
  {
    name: "steppedLeaseIsLeftover",
    why: "Another caller of the process takes the lease that a step of the system time has ended for a leftover.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/provider.ts",
        find: "isOurs && !this.#endedEarly.has(leaseId)",
        replace: "isOurs",
      },
    ],
  },
  {
    name: "steppedLeaseIsRevoked",
    why: "A lease of the core that a step of the system time has ended is revoked at once.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/provider.ts",
        find: "tenure.promisedMs > 0",
        replace: "false",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/etcd/provider.test.ts" },
  },
  {
    name: "attachedTokenStays",
    why: "A lease of the core that was attached has the token of the one that was detached.",
    edits: [
      {
        file: "packages/leasehold/src/etcd/record.ts",
        find: "entry.createRevision + BigInt(record?.attached ?? 0)",
        replace: "entry.createRevision",
      },
      { file: "packages/leasehold/src/etcd/provider.ts", find: "token + 1n", replace: "token" },
    ],
    caughtBy: { file: "packages/leasehold/src/etcd/provider.test.ts" },
  },
  {
    name: "rightsUncheckedAtApply",
    why: "Rights are looked at before a command is proposed, and not again where it is applied.",
    edits: [
      {
        file: state,
        find: "if (this.auth.isEnabled && proposer !== 0n) yield* checkCommand(this.auth, this.leases, command);",
        replace: ";",
      },
    ],
  },
  {
    name: "staleRightsRefuse",
    why: "A server refuses by the rights that it knows, which may be old.",
    edits: [
      {
        file: callers,
        at: "this.sign(command, credentials);\n      return true;\n    } catch (error) {\n      if (error instanceof CoreError) return false;",
        find: "if (error instanceof CoreError) return false;",
        replace: "if (error instanceof CoreError) throw error;",
      },
    ],
  },
  {
    name: "tokenOutlivesUser",
    why: "A token stays when its user is deleted.",
    edits: [{ file: callers, find: "this.#tokens.end(body.value.name);", replace: ";" }],
  },
  {
    name: "readsByRightsOfThePast",
    why: "A server that has just begun reads for clients by the rights that its disk has.",
    edits: [
      {
        file: callers,
        find: "if (!this.#hasCaughtUp) return toAnybody.has(asked.kind);",
        replace: ";",
      },
    ],
  },
  {
    name: "watchesByRightsOfThePast",
    why: "A server that has just begun tells watches what its disk has, by the rights that its disk has.",
    edits: [
      {
        file: watchHub,
        find: 'if (!this.#callers.hasCaughtUp) throw new CoreError("noLeader");',
        replace: ";",
      },
    ],
  },
  {
    name: "tokensOfThePast",
    why: "A server takes all tokens that it finds in the log, however long ago they were given.",
    edits: [
      {
        file: callers,
        at: "if (index > this.#newAfter) this.#tokens.add",
        find: "index > this.#newAfter",
        replace: "true",
      },
    ],
  },
  {
    name: "watchOutlivesRights",
    why: "A watch goes on when its user's rights are withdrawn.",
    edits: [{ file: replica, find: "this.#watches.rightsChanged();", replace: ";" }],
  },
]);
