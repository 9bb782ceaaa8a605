/** The known mistakes that can be made with leases on shared storage. `paper` is section 3 and later of the paper on leases in storage. */

const contend = "packages/leasehold/src/delta/paper/contend.ts";
const renew = "packages/leasehold/src/delta/paper/renew.ts";
const holder = "packages/sim/src/delta/programs/holder.ts";
const renewal = "packages/sim/src/delta/checkers/renewal.ts";
const site = "packages/leasehold/src/delta/paper/site.ts";
const register = "packages/leasehold/src/delta/paper/register.ts";
const update = "packages/leasehold/src/delta/paper/update.ts";
const shared = "packages/leasehold/src/delta/paper/shared.ts";
const consensus = "packages/leasehold/src/delta/paper/consensus.ts";
const conditionalLease = "packages/leasehold/src/delta/conditional/conditional-lease.ts";
const farm = "packages/leasehold/src/delta/farm/farm.ts";
const farmPlan = "packages/leasehold/src/delta/farm/farm-plan.ts";
const farmSight = "packages/leasehold/src/delta/farm/farm-sight.ts";
const provider = "packages/leasehold/src/delta/provider/provider.ts";
const driver = "packages/leasehold/src/delta/driver.ts";

const driversTest = "packages/sim/src/delta/drivers.test.ts";
const stoppedTest = { file: driversTest, test: /processes that are stopped/, seeds: 60 };

export const inDelta = /** @type {const} */ ([
  {
    name: "holdFromReturn",
    why: "* Δ counts from the return of contend and renew, and a renewal that began in time may end after that, as in the paper, whose Δ + 6δ allows for it.",
    edits: [
      { file: contend, at: "return new Held(ts, begun); // Δ", find: "begun", replace: "again.ended" },
      { file: renew, at: "new Held(record, begun)", find: "begun", replace: "written.ended" },
      { file: renew, at: "new Held(ts, cur.ended)", find: "cur.ended", replace: "again.ended" },
      { file: renew, find: "before.remainingMs(now) > 0", replace: "true" },
      { file: holder, find: "renewalDelays * plan.delayMs", replace: "0.01 * plan.delayMs" },
      {
        file: renewal,
        find: "stretched((renewalDelays - 1) * plan.delayMs, plan.clockRateError)",
        replace: "0",
      },
    ],
  },
  {
    name: "steppedLeaseIsReleased",
    why: "A lease that a step of the system time has ended is released at once.",
    edits: [{ file: provider, find: "promisedMs <= 0", replace: "true" }],
    caughtBy: { file: "packages/leasehold/src/delta/provider/provider.test.ts" },
  },
  {
    name: "steppedLeaseIsTaken",
    why: "Another caller of the process takes what a step of the system time has ended early.",
    edits: [
      {
        file: provider,
        find: "adopts === undefined ? this.#promisedMs(resource) : 0",
        replace: "0",
      },
    ],
    caughtBy: { file: driversTest, test: /system clocks that are set/, seeds: 60 },
  },
  {
    name: "suspensionUnnoticed",
    why: "A lease counts on while its machine is suspended: only the steady clock is asked.",
    edits: [
      {
        file: "packages/leasehold/src/delta/tenure.ts",
        find: "disagree ? 0 : leaseMs - elapsedMs(begun, now)",
        replace: "leaseMs - (now.monotonicMs - begun.monotonicMs)",
      },
    ],
    caughtBy: { file: driversTest, test: /machines that are suspended/, seeds: 60 },
  },
  {
    name: "waitFiveDelays",
    why: "Waiting Δ + 5δ, which suffices only where nobody renews as in Fig. 5.",
    edits: [{ file: site, at: "leaseMs + 6 * Math.max", find: "6", replace: "5" }],
  },
  {
    name: "ownWait",
    why: "Waiting by one's own Δ and δ, not by those of the record.",
    edits: [{ file: site, find: "record ?? own", replace: "own" }],
  },
  {
    name: "paperRatesIgnored",
    why: "Waits of the paper's leases are not stretched by ρ.",
    edits: [
      {
        file: site,
        at: "return this.environment.settings.clockRateError;",
        find: "this.environment.settings.clockRateError",
        replace: "0",
      },
    ],
  },
  {
    name: "olderListCounts",
    why: "A store that the list has left counts again for a process that sees it alone.",
    edits: [
      { file: farm, find: "read.generation < this.#generation && knowing < this.majority", replace: "false" },
    ],
    caughtBy: {
      file: "packages/leasehold/src/delta/farm/farm-replacement.test.ts",
      test: /sees it alone/,
    },
  },
  {
    name: "noPause",
    why: "No 2δ pause after the write (Fig. 2, line 10).",
    edits: [
      {
        file: site,
        find: "stretched(2 * shownBy(seen).reduce(longer, settings.delayMs), this.#rateError)",
        replace: "0",
      },
    ],
  },
  {
    name: "noReRead",
    why: "No second look after the pause (Fig. 2, line 11).",
    edits: [
      {
        file: contend,
        find: 'if (pause.cancelled) return yield* withdraw(site, ts, "cancelled");',
        replace:
          'if (pause.cancelled) return yield* withdraw(site, ts, "cancelled"); return new Held(ts, plantedMistakes.holdFromReturn ? pause.now : begun);',
      },
    ],
  },
  {
    name: "floorWhereEmptyOnly",
    why: "Only contenders that read a store which came back empty take a number above its floor.",
    edits: [
      {
        file: register,
        find: "greatestBigint(floors.map(({ number }) => number))",
        replace: "greatestBigint(emptied.map(({ number }) => number))",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/delta/paper/renew.test.ts",
      test: /came back empty takes no hold away/,
    },
  },
  {
    name: "flickeringReader",
    why: "A reader does not remember what it returned.",
    edits: [
      {
        file: register,
        at: "this.#greatest = later(this.#greatest, greatest);",
        find: "later(this.#greatest, greatest)",
        replace: "greatest",
      },
    ],
  },
  {
    name: "lateAnswersForgotten",
    why: "What a store wrote for an earlier round counts for nothing, and is asked for again.",
    edits: [{ file: update, find: 'answer.kind === "written" && !isOver', replace: "false" }],
  },
  {
    name: "lateReadUndoesOwnWrite",
    why: "The late answer to a read shows a store as it was before this process wrote to it.",
    edits: [{ file: register, find: "this.#sent === sentBefore", replace: "true" }],
  },
  {
    name: "contentsForgotten",
    why: "What is known to stand in a store that compares and sets is forgotten before each write.",
    edits: [
      {
        file: register,
        at: 'return this.#farm.kindOf(store) === "atomic" &&',
        find: 'this.#farm.kindOf(store) === "atomic"',
        replace: "false",
      },
    ],
  },
  {
    name: "blindOverwrite",
    why: "An old write replaces a newer one.",
    edits: [
      { file: register, find: "mayReplace(stands, wanted)", replace: "mayReplace(stands, wanted) || true" },
    ],
  },
  {
    name: "releaseOverSuccessor",
    why: "A release is a write like any other, and wins over the record of a successor.",
    edits: [
      {
        file: renew,
        find: "yield* site.register.send(site.freed(left), isOwn, begun);",
        replace: "yield* site.register.write((number) => ({ ...site.freed(left), number }), begun);",
      },
    ],
  },
  {
    name: "freeShortcutWithoutCompareAndSet",
    why: "A free register is taken without the first wait where stores cannot compare and set.",
    edits: [
      {
        file: site,
        find: "this.register.isAtomic && free >= this.environment.farm.majority",
        replace: "arguments[0].value === undefined || isFree(arguments[0].value)",
      },
    ],
  },
  {
    name: "readerReleaseFreesAll",
    why: "A reader that is done frees what other readers hold by.",
    edits: [
      {
        file: renew,
        at: 'if (site.isShared) return new Idle("released");',
        find: "site.isShared",
        replace: "false",
      },
    ],
  },
  {
    name: "readerWithdraws",
    why: "A reader whose claim comes to nothing frees its record.",
    edits: [
      {
        file: contend,
        at: "site.register.isAtomic && !site.isShared",
        find: "!site.isShared",
        replace: "true",
      },
    ],
  },
  {
    name: "greatestRecordOnly",
    why: "A contender waits for the greatest record alone, and replaces smaller ones.",
    edits: [
      { file: site, at: "if (isFree(content)) return true;", find: "isFree(content)", replace: "true" },
      {
        file: site,
        find: "[...first, ...shownBy(seen).filter((each) => !isFree(each) && this.mustWaitFor(each))]",
        replace: "first",
      },
    ],
  },
  {
    name: "readerHidesOthers",
    why: "A reader's record bears its own Δ and epoch only, and hides the greater ones of others.",
    edits: [
      {
        file: shared,
        find: "record.leaseMs >= other.leaseMs && record.epoch >= other.epoch",
        replace: "true",
      },
      {
        file: shared,
        find: "{ ...record, epoch, leaseMs: Math.max(record.leaseMs, other.leaseMs) }",
        replace: "record",
      },
    ],
  },
  {
    name: "readerJoinsOlderEpoch",
    why: "A reader takes the lease by an epoch than which another reader got a greater one meanwhile.",
    edits: [{ file: shared, find: "other.epoch <= epoch", replace: "true" }],
  },
  {
    name: "quietClaims",
    why: "What a contender writes is not announced, and holders that ask for announcements miss it.",
    edits: [{ file: register, find: "{ quiet: false }", replace: "{ quiet: true }" }],
  },
  {
    name: "rankOfProcess",
    why: "Consensus objects of one process choose the same ranks.",
    edits: [
      { file: consensus, find: "`${options.writer}/${options.nonces.next()}`", replace: "options.writer" },
    ],
  },
  {
    name: "holdFromEndOfWrite",
    why: "A conditional lease counts from the end of the write that won it.",
    edits: [
      {
        file: conditionalLease,
        at: "const gainedMs = now.monotonicMs",
        find: "now.monotonicMs",
        replace: "step.now.monotonicMs",
      },
      {
        file: conditionalLease,
        at: "tenure.hold = { begun: now, leaseMs };",
        find: "{ begun: now, leaseMs }",
        replace: "{ begun: step.now, leaseMs }",
      },
      {
        file: conditionalLease,
        find: "if (reach.written.size >= farm.majority && tenure.remainingMs(reach.step.now) > 0) return tenure;",
        replace:
          "tenure.hold = { begun: reach.step.now, leaseMs }; if (reach.written.size >= farm.majority && tenure.remainingMs(reach.step.now) > 0) return tenure;",
      },
    ],
  },
  {
    name: "epochsUnbounded",
    why: "Leases take any epoch, also such as the farm's stores have not been told of.",
    edits: [
      {
        file: farm,
        find: "if (epoch > this.#epochWanted) this.#epochWanted = epoch;",
        replace: "return true;",
      },
    ],
  },
  {
    name: "boundDelaysConfirmation",
    why: "A look that raises the bound on epochs confirms nothing before the stores have been told of the new one.",
    edits: [{ file: farmSight, find: "{ ...cell, epochMax: terms.epochMax }", replace: "cell" }],
  },
  {
    name: "looksTooLate",
    why: "A renewal goes on by a look that is too old before the next one can have ended.",
    edits: [
      {
        file: provider,
        find: "this.#farm.ready(this.#driver.now(), this.#delayMs)",
        replace: "this.#farm.ready(this.#driver.now())",
      },
    ],
  },
  {
    name: "waitIsForgotten",
    why: "What others have waited for a store counts for nothing.",
    edits: [{ file: farm, find: "cell?.waitedMs ?? 0", replace: "0" }],
  },
  {
    name: "tiesAreRefused",
    why: "Two lists of the same generation are taken for two farms.",
    edits: [
      {
        file: farmPlan,
        at: "(generation === 0 && !sameList",
        find: "generation === 0",
        replace: "(generation === 0 || cell.generation === generation)",
      },
    ],
  },
  {
    name: "tieLosersAreReplaced",
    why: "A store that only the list knows which lost against another of its generation is taken for one that was replaced.",
    edits: [
      {
        file: farmPlan,
        at: "cell?.id === id && cell.generation < generation",
        find: "cell.generation < generation",
        replace: "true",
      },
    ],
  },
  {
    name: "forgottenRegistersCount",
    why: "Registers and consensus ask a store that has come back empty.",
    edits: [{ file: farm, find: "this.#members[store]!.since === 0", replace: "true" }],
  },
  {
    name: "forgottenStoreCounts",
    why: "A store that has forgotten counts at once.",
    edits: [
      { file: farm, find: "stretched(leaseMsMax + leaseMs, clockRateError)", replace: "0" },
      { file: farm, find: "traits.durable ? 0 : stretched(leaseMs, clockRateError)", replace: "0" },
    ],
  },
  {
    name: "farmBelievedTooLong",
    why: "A look at the farm is believed for too long.",
    edits: [
      {
        file: farm,
        at: "return this.#ageMs(now) + forMs < this.#settings.leaseMsMax;",
        find: "this.#settings.leaseMsMax",
        replace: "Infinity",
      },
    ],
    caughtBy: stoppedTest,
  },
  {
    name: "lateAnswerCountsForNextWait",
    why: "A late answer counts for the wait that has come since.",
    edits: [
      {
        file: driver,
        find: "this.#wait?.endIfOver();",
        replace: "this.#wait?.endIfOver(); return this.#wait;",
      },
      {
        file: driver,
        find: "if (this.#ask.late === undefined) return;",
        replace:
          "const present = this.#run.late(); if (present !== undefined) { present.#answers[store] ??= answer; present.endIfOver(); } if (this.#ask.late === undefined) return;",
      },
    ],
    caughtBy: { file: driversTest, test: /processes that are stopped/, seeds: 150 },
  },
  {
    name: "clocksReadBeforeAnswers",
    why: "The clocks are read before the stores answer.",
    edits: [
      {
        file: driver,
        find: "this.#wait = wait;",
        replace: "this.#wait = wait; this.early = this.driver.now();",
      },
      {
        file: driver,
        at: "next({ now: this.driver.now(),",
        find: "this.driver.now()",
        replace: "this.early ?? this.driver.now()",
      },
    ],
    caughtBy: { file: driversTest, test: /answer long after/, seeds: 300 },
  },
  {
    name: "renewalLosesData",
    why: "A renewal writes the record without what others are to read of the tenure.",
    edits: [
      {
        file: conditionalLease,
        at: '"held", leaseMsMax, { data })',
        find: "{ data }",
        replace: "{}",
      },
    ],
  },
  {
    name: "paperKeepsFormerData",
    why: "A tenure without data shows that of the one before.",
    edits: [
      {
        file: "packages/leasehold/src/delta/paper/paper-lease.ts",
        find: "site.data = data;",
        replace: "site.data = data ?? site.data;",
      },
    ],
  },
  {
    name: "adoptsWithoutComparing",
    why: "Who attaches a lease replaces whatever stands in the cells.",
    edits: [
      {
        file: "packages/leasehold/src/delta/conditional/adoption.ts",
        find: "detached.length === 0 || records.some(isLater)",
        replace: "false",
      },
      {
        file: "packages/leasehold/src/delta/conditional/adoption.ts",
        find: 'adopts !== undefined && state === "held" && detached === adopts.pass',
        replace: "adopts !== undefined",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/delta/provider/conformance.test.ts" },
  },
  {
    name: "passStaysInTheRecord",
    why: "The record of a lease that was attached can be attached again.",
    edits: [
      {
        file: conditionalLease,
        at: '"held", leaseMs, { data })',
        find: "{ data }",
        replace: "{ data, detached: wish.adopts?.pass }",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/delta/provider/conformance.test.ts" },
  },
]);
