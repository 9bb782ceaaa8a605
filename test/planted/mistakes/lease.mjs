/** The known mistakes of the waist. */

const localQueue = "packages/leasehold/src/lease/queue/local-queue.ts";
const leaseManager = "packages/leasehold/src/lease/manager/lease-manager.ts";
const leaseSet = "packages/leasehold/src/lease/manager/lease-set.ts";
const leaderWatch = "packages/leasehold/src/lease/manager/leader-watch.ts";
const slots = "packages/leasehold/src/lease/slots.ts";
const counted = "packages/leasehold/src/lease/forms/counted.ts";
const shared = "packages/leasehold/src/lease/forms/shared.ts";
const forms = "packages/leasehold/src/lease/manager/forms.ts";
const bothClocks = "packages/leasehold/src/common/both-clocks.ts";
const clockRates = "packages/leasehold/src/common/clock-rates.ts";

export const inWaist = /** @type {const} */ ([
  {
    name: "emptyQueueIsDropped",
    why: "A queue is dropped, by its resource's name, when nobody stands in it, although some who use it have not left.",
    edits: [
      {
        file: localQueue,
        at: "if (this.#retired) this.#unused(this);",
        find: "this.#retired",
        replace: 'this.#retired || (this.#turn === "free" && !this.#waiters?.size && !this.#tries?.size)',
      },
    ],
  },
  {
    name: "restingLeaseIsForgotten",
    why: "A lease for which nobody here waits is forgotten, and another caller of this process asks for it as for any other.",
    edits: [
      {
        file: "packages/leasehold/src/lease/queue/local-queues.ts",
        at: "if (lease === undefined) this.#drop(resource);",
        find: "lease === undefined",
        replace: "true",
      },
    ],
  },
  {
    name: "closesBeforeItIsKnown",
    why: "A participant that closes ends what it has before it knows that nothing new may begin.",
    edits: [
      {
        file: leaseManager,
        find: "this.#closing === undefined",
        replace: "(this.#closing ??= this.#close()) === undefined",
      },
    ],
  },
  {
    name: "listenerCannotAbort",
    why: "A call that a listener of `acquired` aborts is answered with the lease.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/acquisitions.ts",
        at: "if (contender.hasGivenUp) void lease",
        find: "contender.hasGivenUp",
        replace: "false",
      },
    ],
  },
  {
    name: "setIsTakenAsGiven",
    why: "Several at once are acquired in the order in which they were named: two calls wait for each other.",
    edits: [{ file: leaseSet, find: "distinct.toSorted(byBytes)", replace: "distinct" }],
  },
  {
    name: "partOfSetIsKept",
    why: "Several at once of which one is not to be had leave behind those that were.",
    edits: [{ file: leaseSet, find: "await releaseAll(held)", replace: "undefined" }],
  },
  {
    name: "setInTheOrderGiven",
    why: "Several at once are acquired in the order in which they were given: two callers wait for each other.",
    edits: [{ file: leaseSet, find: "distinct.toSorted(byBytes)", replace: "distinct" }],
  },
  {
    name: "setIsTheLongestLease",
    why: "Several at once count as held as long as any one of them is.",
    edits: [
      {
        file: leaseSet,
        find: "least(this.leases.map((lease) => lease.remaining()))",
        replace: "-least(this.leases.map((lease) => -lease.remaining()))",
      },
    ],
  },
  {
    name: "eachLimitHasItsSlots",
    why: "Callers that give different limits do not share slots: together they are more than the greatest limit.",
    edits: [
      {
        file: slots,
        at: "=> slotName(name, slot)",
        find: "slotName(name, slot)",
        replace: "slotName(name, slot && limit * 10 + slot)",
      },
    ],
  },
  {
    name: "wonSlotIsKept",
    why: "Who waits for any slot and gets two at one moment gives back none.",
    edits: [{ file: counted, find: "await lease.release()", replace: "undefined" }],
  },
  {
    name: "readerTrustsItsGate",
    why: "A reader that has got its slot does not look whether it still has the gate.",
    edits: [{ file: shared, find: "gate.remaining() > 0", replace: "true" }],
  },
  {
    name: "writerSkipsSlots",
    why: "A writer asks for half of the readers' slots.",
    edits: [
      {
        file: shared,
        at: "readerSlots(gate.resource).map(async",
        find: "readerSlots(gate.resource)",
        replace: "readerSlots(gate.resource).slice(readersMax / 2)",
      },
    ],
  },
  {
    name: "plainIsNoWriter",
    why: "A call without a mode takes a name that has readers as it takes any other, and does not look for them.",
    edits: [
      {
        file: forms,
        at: "return isSharedName(resource) || limit",
        find: "isSharedName(resource)",
        replace: "false",
      },
    ],
  },
  {
    name: "anyNameTakesAMode",
    why: "Readers may have any name, also one of which calls without a mode know nothing of readers.",
    edits: [
      {
        file: forms,
        at: "} else if (mode !== undefined) {",
        find: "mode !== undefined",
        replace: "false",
      },
      {
        file: forms,
        at: "if (isSharedName(resource)) return mode",
        find: "isSharedName(resource)",
        replace: "isSharedName(resource) || mode !== undefined",
      },
    ],
  },
  {
    name: "writerWaitsByItsTerms",
    why: "A writer's `maxHold` counts from when it has the gate, and without renewal the gate runs out while it waits.",
    edits: [{ file: forms, find: "exclusive(parts, { ...bare, data })", replace: "exclusive(parts, spec)" }],
  },
  {
    name: "ownSteppedLeaseIsTaken",
    why: "A participant of Flease has a lease again that a step of the system time has ended, while its program may rely on it.",
    edits: [{ file: "packages/leasehold/src/flease/provider.ts", find: "held.runsOut", replace: "false" }],
    caughtBy: { file: "packages/leasehold/src/flease/stores/grid.test.ts" },
  },
  {
    name: "writerLeavesSlots",
    why: "The release of a writer does not wait for the slots that it took on its way.",
    edits: [{ file: shared, find: "Promise.all(given)", replace: "Promise.resolve()" }],
    caughtBy: { file: "packages/leasehold/src/lease/forms/shared.test.ts" },
  },
  {
    name: "countedLeavesSlots",
    why: "The release of a counted lease does not wait for the slots that its caller got beside its own.",
    edits: [
      {
        file: "packages/leasehold/src/lease/forms/counted.ts",
        find: "Promise.allSettled(waiting)",
        replace: "Promise.resolve()",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/lease/forms/shared.test.ts" },
  },
  {
    name: "lateSlotIsKept",
    why: "A reader that got its slot when it had lost the gate keeps the slot, and is no reader.",
    edits: [{ file: shared, find: "await slot?.release()", replace: "undefined" }],
  },
  {
    name: "writerGivesWay",
    why: "A writer that finds readers in gives the gate back and comes again: where some are always in, it never writes.",
    edits: [
      {
        file: shared,
        find: "passing.wait(slot, leftMs(), stop)",
        replace:
          'passing.try(slot, stop).then((lease) => lease ?? Promise.reject(new LeaseholdError("LEASE_HELD")))',
      },
      {
        file: shared,
        at: "signal?.throwIfAborted();\n      if (gate.loss === undefined) throw error;",
        find: "gate.loss === undefined",
        replace: 'gate.loss === undefined && error.code !== "LEASE_HELD"',
      },
    ],
  },
  {
    name: "gateOfAWriterIsKept",
    why: "A writer that gives up while readers are in does not give the gate back.",
    edits: [
      {
        file: shared,
        at: "await Promise.allSettled(given);\n    await gate.release()",
        find: "await gate.release()",
        replace: "undefined",
      },
    ],
  },
  {
    name: "firstInLineIsNotAwaited",
    why: "Who has a place in line acquires at once, whoever is before it.",
    edits: [
      {
        file: "packages/leasehold/src/lease/forms/fair.ts",
        find: "[place.first, aborted(stop.signal)]",
        replace: "[undefined]",
      },
    ],
  },
  {
    name: "placeIsNotKept",
    why: "A place in a core's line is not refreshed: who waits for longer than its ttl goes to the end.",
    edits: [
      { file: "packages/leasehold/src/etcd/fair-queue.ts", find: "begunMs < this.#endMs", replace: "false" },
    ],
  },
  {
    name: "graceOfAnEarlierLifeRuns",
    why: "A member that is back within its grace leaves a group all the same when that is over.",
    edits: [
      {
        file: "packages/leasehold/src/membership/member-group.ts",
        find: "seen?.grace?.cancel()",
        replace: "undefined",
      },
    ],
  },
  {
    name: "graceIsForgotten",
    why: "A member that goes has left a group at once, whatever its grace.",
    edits: [
      {
        file: "packages/leasehold/src/membership/member-group.ts",
        find: "this.#graceMs === 0",
        replace: "true",
      },
    ],
  },
  {
    name: "readerHasTheTokenOfItsSlot",
    why: "A reader's token is that of its slot, which has no order with those of writers.",
    edits: [
      {
        file: "packages/leasehold/src/lease/forms/shared-lease.ts",
        find: "this.token = gate.token",
        replace: "this.token = slot.token",
      },
    ],
  },
  {
    name: "valueOutlivesItsLease",
    why: "Work under a lease has a value although the lease was lost before it returned.",
    edits: [
      { file: "packages/leasehold/src/lease/manager/work.ts", find: "loss !== undefined", replace: "false" },
    ],
  },
  {
    name: "workBeginsAfterALoss",
    why: "Work begins although its lease was lost between the grant and the answer to the call.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/work.ts",
        find: "holding.assertHeld()",
        replace: "undefined",
      },
    ],
  },
  {
    name: "exactIsAPrefix",
    why: "A watch of one exact name tells of those that begin so, too.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/queries.ts",
        find: "hint.resource === prefix",
        replace: "true",
      },
    ],
  },
  {
    name: "olderLeaderIsKept",
    why: "Who reads slowly is told of the leader that was, and not of the one that came meanwhile.",
    edits: [{ file: leaderWatch, find: "this.#unread = change", replace: "this.#unread ??= change" }],
  },
  {
    name: "nobodyIsNotTold",
    why: "An observer that begins while nobody leads is told of nothing.",
    edits: [{ file: leaderWatch, find: 'state === "free"', replace: "false" }],
  },
  {
    name: "lossIsToldAsRelease",
    why: "Who listens hears of a loss as of a release.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/held-lease.ts",
        at: 'if (isOwnEnd(reason) || reason === "closed") {',
        find: 'isOwnEnd(reason) || reason === "closed"',
        replace: "true",
      },
    ],
  },
  {
    name: "lateIsToldEachTime",
    why: "Who listens hears of each retry of a renewal that is late.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/held-lease.ts",
        find: "this.#rare.isLate = true",
        replace: "undefined",
      },
    ],
  },
  {
    name: "looksFollowAtOnce",
    why: "A lease of which rounding leaves something is looked at again in the same instant, without end.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/held-lease.ts",
        find: "Math.max(soonestMs, delayMs)",
        replace: "Math.max(0, delayMs)",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/lease/manager/held-lease.test.ts" },
  },
  {
    name: "tooWideIsServed",
    why: "A member begins to tell a watch of more than it may follow.",
    edits: [
      {
        file: "packages/leasehold/src/flease/admin/admin-rpc.ts",
        find: "held > this.#watchedMax",
        replace: "false",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/flease/admin/admin-rpc.test.ts" },
  },
  {
    name: "allWakeInOneTurn",
    why: "All leases that are due are woken in one turn: of very many that end, others end meanwhile.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/alarm.ts",
        find: "woken < wakesPerTurn",
        replace: "true",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/lease/manager/alarm.test.ts" },
  },
  {
    name: "hopelessIsRenewed",
    why: "Renewals that will be answered too late take the turns of those that would not.",
    edits: [
      {
        file: "packages/leasehold/src/flease/provider.ts",
        find: "leftMs < peer.proposer.pacing.roundTripMs && this.#renewals.isCrowded",
        replace: "leftMs < 0",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/flease/provider.test.ts" },
  },
  {
    name: "dueTogetherInAnyOrder",
    why: "Deadlines of one moment come in another order than they were made in: runs cannot be repeated.",
    edits: [
      {
        file: "packages/leasehold/src/common/deadlines.ts",
        find: "(childDue === leastDue && orders[child]! > orders[least]!)",
        replace: "childDue === leastDue",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/common/deadlines.test.ts" },
  },
  {
    name: "releasedWhenLateIsRenewed",
    why: "A lease that a listener releases when its renewal is late is renewed all the same, beside its release.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/held-lease.ts",
        at: "if (this.#ended !== undefined) return;\n    if (this.#nextRenewalMs !== never",
        find: "this.#ended !== undefined",
        replace: "false",
      },
    ],
  },
  {
    name: "detachedIsGivenBack",
    why: "A lease that was detached is released as any other.",
    edits: [{ file: leaseManager, find: 'lease.ended === "detached"', replace: "false" }],
    caughtBy: { file: "packages/leasehold/src/lease/manager/detach.test.ts" },
  },
  {
    name: "releasedHoldKeepsItsPlace",
    why: "A tenure that was given back shows when that of another resource ends, which has its place.",
    edits: [
      {
        file: "packages/leasehold/src/flease/protocol/instance.ts",
        find: "instance.leave();",
        replace: "instance.holding = false;",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/flease/protocol/instance.test.ts",
      test: /neither reads nor writes/,
    },
  },
  {
    name: "holdsShareAPlace",
    why: "Two tenures have one place for their ends.",
    edits: [
      {
        file: "packages/leasehold/src/flease/protocol/instance.ts",
        find: "index % instancesPerPage",
        replace: "index >> 1",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/flease/protocol/instance.test.ts", test: /numbers of its own/ },
  },
  {
    name: "detachedBlocksOthersAlone",
    why: "The participant that has detached a lease gets its resource again at once.",
    edits: [{ file: leaseManager, find: "this.#detached.add(grant)", replace: "undefined" }],
  },
  {
    name: "clocksAreReadApart",
    why: "What passes between the looks at the two clocks counts as a difference between them.",
    edits: [{ file: bothClocks, find: "readings === readingsMax", replace: "true" }],
  },
  {
    name: "ratesIgnored",
    why: "A holder relies on what lasts on another's clock for as long on its own.",
    edits: [{ file: clockRates, find: "ms / stretched(1, clockRateError)", replace: "ms" }],
  },
  {
    name: "closeWaitsForever",
    why: "`close` waits for a provider that does not close.",
    edits: [{ file: leaseManager, find: "this.#closeProvider()", replace: "this.provider.close()" }],
    caughtBy: { file: "packages/leasehold/src/lease/manager/close.test.ts" },
  },
  {
    name: "waistKeepsFormerData",
    why: "A tenure without data shows that of an earlier one of its process.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/acquire-spec.ts",
        find: "options.data === undefined ? undefined : dataText(options.data)",
        replace:
          "globalThis.formerData = options.data === undefined ? globalThis.formerData : dataText(options.data)",
      },
    ],
  },
  {
    name: "threadIsNeverLate",
    why: "Who listens hears nothing of a late renewal when another thread renews.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/held-lease.ts",
        find: "this.#terms.renewedElsewhere || (this.#terms.autoRenew && endMs < this.latestMs)",
        replace: "this.#terms.autoRenew && endMs < this.latestMs",
      },
    ],
  },
  {
    name: "threadIsLateOnce",
    why: "Who listens hears only once of late renewals when another thread renews.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/held-lease.ts",
        at: "if (this.#terms.renewedElsewhere) this.#noteInTime();",
        find: "this.#noteInTime();",
        replace: ";",
      },
    ],
  },
  {
    name: "detachedIsHeld",
    why: "Who has detached a lease goes on to rely on it.",
    edits: [
      {
        file: "packages/leasehold/src/lease/manager/held-lease.ts",
        at: "if (this.#ended !== undefined) return 0;",
        find: "this.#ended !== undefined",
        replace: 'this.#ended !== undefined && this.#ended !== "detached"',
      },
    ],
  },
  {
    name: "attachedPassIsGood",
    why: "A lease that was attached can be attached once more with the same handle.",
    edits: [
      {
        file: "packages/leasehold/src/testing/memory-ground.ts",
        find: "standing?.pass !== pass || standing.token !== token",
        replace: "standing === undefined",
      },
    ],
  },
  {
    name: "runOutIsAttached",
    why: "A handle is good for ever, where nobody else has taken the resource.",
    edits: [
      { file: "packages/leasehold/src/lease/manager/attach.ts", find: "overMs >= 0", replace: "false" },
    ],
    caughtBy: { file: "packages/leasehold/src/delta/provider/conformance.test.ts" },
  },
]);
