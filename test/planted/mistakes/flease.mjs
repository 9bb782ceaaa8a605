/**
 * The known mistakes of the Flease protocol and of what stands around it. Comments cite them as P1 to P54;
 * F1 to F21 are in `docs/internals/flease-findings.md`. P7, P22, P23, P40, P41 and P47 are broken assumptions,
 * which a test makes itself; P29 and P30 belong to a feature that is not built.
 */

const exclusionChecker = "packages/sim/src/kit/checkers/exclusion.ts";
const acceptor = "packages/leasehold/src/flease/protocol/acceptor.ts";
const index = "packages/sim/src/flease/checkers/index.ts";
const ballot = "packages/leasehold/src/flease/protocol/ballot.ts";
const expiry = "packages/leasehold/src/flease/protocol/expiry.ts";
const storesNode = "packages/leasehold/src/flease/stores/stores-node.ts";
const storeAcceptor = "packages/leasehold/src/flease/stores/store-acceptor.ts";
const votes = "packages/leasehold/src/flease/protocol/votes.ts";
const proposer = "packages/leasehold/src/flease/protocol/proposer.ts";
const requests = "packages/leasehold/src/flease/protocol/requests.ts";
const instance = "packages/leasehold/src/flease/protocol/instance.ts";
const fleaseModel = "packages/sim/src/explorer/flease-model.ts";
const quorum = "packages/leasehold/src/flease/protocol/quorum.ts";
const clock = "packages/leasehold/src/flease/protocol/clock.ts";
const ballotSource = "packages/leasehold/src/flease/protocol/ballot-source.ts";
const threads = "packages/leasehold/src/flease/threads.ts";
const pacing = "packages/leasehold/src/flease/protocol/pacing.ts";
const admission = "packages/leasehold/src/flease/admission.ts";
const listing = "packages/leasehold/src/flease/admin/listing.ts";
const fairWork = "packages/leasehold/src/flease/admin/fair-work.ts";
const memberChanges = "packages/leasehold/src/flease/tcp/views/member-changes.ts";
const adminRpc = "packages/leasehold/src/flease/admin/admin-rpc.ts";
const inspection = "packages/leasehold/src/flease/admin/inspection.ts";
const watchFeed = "packages/leasehold/src/flease/admin/watch-feed.ts";
const quotas = "packages/leasehold/src/flease/protocol/quotas.ts";
const runner = "packages/leasehold/src/flease/runner.ts";
const peer = "packages/leasehold/src/flease/peer.ts";
const waiters = "packages/leasehold/src/flease/protocol/waiters.ts";
const descriptions = "packages/leasehold/src/flease/views/descriptions.ts";
const discovery = "packages/leasehold/src/flease/tcp/discovery.ts";
const refusals = "packages/leasehold/src/flease/tcp/refusals.ts";

const view = "packages/leasehold/src/flease/views/view.ts";
const views = "packages/leasehold/src/flease/views/views.ts";
const memberDialer = "packages/leasehold/src/flease/tcp/member-dialer.ts";
const link = "packages/leasehold/src/flease/tcp/transport/link.ts";
const obstacles = "packages/leasehold/src/flease/views/obstacles.ts";

const exclusionTest = { file: "packages/sim/src/flease/sim.test.ts", test: /by the checker of exclusion/ };
const runnerTest = { file: "packages/sim/src/flease/runner.test.ts", seeds: 100 };
const mixedSettingsTest = { file: "test/realtime/mixed-settings.test.ts" };
const proposerTest = { file: "packages/leasehold/src/flease/protocol/proposer.test.ts" };
const acceptorTest = { file: "packages/leasehold/src/flease/protocol/acceptor.test.ts" };

export const inFlease = /** @type {const} */ ([
  {
    name: "netGOff",
    why: "Net G: an acceptor replaces unfinished leases of others. P31 is its opposite.",
    edits: [
      {
        file: acceptor,
        at: "// F17).\n    if (this.#blocks(entry, request.owner, now)",
        find: "this.#blocks(entry, request.owner, now)",
        replace: "false",
      },
      {
        file: acceptor,
        at: "if (!this.#passesTests(request, entry, now, reply)) return;\n    if (this.#blocks(entry, request.owner, now)",
        find: "this.#blocks(entry, request.owner, now)",
        replace: "request.kind === Kind.acquire && this.#blocks(entry, request.owner, now)",
      },
      {
        file: acceptor,
        at: "const held = why === Refusal.promised",
        find: "why === Refusal.promised",
        replace: "false",
      },
      {
        file: index,
        find: "clocks.wall || clocks.rate",
        replace: 'invariant !== "I4" && (clocks.wall || clocks.rate)',
      },
      { file: index, at: "default:\n      return true;", find: "true", replace: 'invariant !== "I6"' },
    ],
  },
  {
    name: "netBOff",
    why: "Net B (P31): ballots are not compared.",
    edits: [
      { file: ballot, find: "return number > promised;", replace: "return true;" },
      { file: index, at: 'case "I3":\n      return clocks.wall;', find: "clocks.wall", replace: "false" },
      { file: index, at: "default:\n      return true;", find: "true", replace: 'invariant !== "I5"' },
    ],
  },
  {
    name: "wallTestOff",
    why: "P28: leases are judged by the steady clock alone.",
    edits: [
      {
        file: expiry,
        at: "wallOver = now.lo >= until + settings.maxClockSkewMs",
        find: "now.lo >= until + settings.maxClockSkewMs",
        replace: "true",
      },
      {
        file: expiry,
        at: "return now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs",
        find: "now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs",
        replace: "true",
      },
      { file: expiry, find: "now.hi < until && !now.clocksDisagree", replace: "true" },
      { file: expiry, find: "until - now.hi", replace: "Infinity" },
    ],
  },
  {
    name: "rateTestOff",
    why: "P28: leases are judged by the wall clock alone.",
    edits: [
      { file: expiry, find: "now.mono >= end", replace: "true" },
      { file: expiry, at: "return onWall && now.mono < end;", find: "now.mono < end", replace: "true" },
      { file: expiry, find: "end - now.mono", replace: "Infinity" },
      { file: acceptor, find: "this.#settings.waitRateMs", replace: "0" },
    ],
  },
  {
    name: "noRecoveryWait",
    why: "P1: no recovery wait. Two holders.",
    edits: [
      { file: acceptor, find: "this.#settings.waitWallMs", replace: "0" },
      { file: acceptor, find: "this.#settings.waitRateMs", replace: "0" },
    ],
  },
  {
    name: "waitOnlyTtlMax",
    why: "P2, F2: wait of tmax. Two holders.",
    edits: [{ file: acceptor, find: "this.#settings.waitWallMs", replace: "this.#settings.ttlMaxMs" }],
  },
  {
    name: "waitTtlMaxAndOneSkew",
    why: "P3: wait of tmax + ε. Two holders.",
    edits: [
      {
        file: acceptor,
        find: "this.#settings.waitWallMs",
        replace: "this.#settings.ttlMaxMs + this.#settings.maxClockSkewMs",
      },
    ],
  },
  {
    name: "noFloor",
    why: "P4, F1: no floor at the rejoin. Two holders without net G; falling tokens with it.",
    edits: [
      { file: acceptor, find: "this.#floor = Math.max(this.#floor, floor);", replace: ";" },
      {
        file: storeAcceptor,
        find: "Math.max(0, numberAt(now.lo - forgettingWaitMs(this.#settings) / 2))",
        replace: "0",
      },
    ],
  },
  {
    name: "noSafetyPeriod",
    why: "P5, F5: no safety period. Two holders, on the wall clock alone.",
    edits: [
      {
        file: expiry,
        at: "wallOver = now.lo >= until + settings.maxClockSkewMs",
        find: "now.lo >= until + settings.maxClockSkewMs",
        replace: "now.lo >= until",
      },
      {
        file: expiry,
        at: "return now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs",
        find: "now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs",
        replace: "now.lo >= reply.leaseExpiresWallMs",
      },
    ],
  },
  {
    name: "safetyPeriodOneTickShort",
    why: "P6: safety period one tick short. Two holders, on the wall clock alone.",
    edits: [
      {
        file: expiry,
        at: "wallOver = now.lo >= until + settings.maxClockSkewMs",
        find: "now.lo >= until + settings.maxClockSkewMs",
        replace: "now.lo >= until + settings.maxClockSkewMs - 1",
      },
      {
        file: expiry,
        at: "return now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs",
        find: "now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs",
        replace: "now.lo >= reply.leaseExpiresWallMs + settings.maxClockSkewMs - 1",
      },
    ],
  },
  {
    name: "ballotsEqualWithinSkew",
    why: "P8, F3: ballots equal within ε. Two holders without net G.",
    edits: [
      {
        file: acceptor,
        find: "supersedes(number, owner, promised, promisedOwner)",
        replace:
          "Math.abs(number - promised) <= this.#settings.maxClockSkewMs * ballotsPerMs ? owner >= promisedOwner : number > promised",
      },
    ],
  },
  {
    name: "twoClockReadings",
    why: "P9, F4: two readings in one decision. Two holders without net G.",
    edits: [
      {
        file: votes,
        find: "if (!reportedLeaseIsFinished(reply, owner, now, settings)) noteBlocker(operation, reply);",
        replace:
          "const { leaseExpiresWallMs } = reply; const isFree = reply.leaseState === 0 || reply.leaseOwner === owner; const inSafetyPeriod = operation.sentLo > leaseExpiresWallMs && operation.sentLo < leaseExpiresWallMs + settings.maxClockSkewMs; if (!isFree && (inSafetyPeriod || now.lo <= leaseExpiresWallMs)) noteBlocker(operation, reply);",
      },
      {
        file: proposer,
        find: "operation.sentMono = now.mono;",
        replace: "operation.sentMono = now.mono; operation.sentLo = now.lo;",
      },
      {
        file: instance,
        find: "hash.flag(this.heardMajority);",
        replace: "hash.flag(this.heardMajority).number(this.sentLo ?? 0);",
      },
      { file: fleaseModel, find: "reply.leaseState === LeaseState.released", replace: "false" },
    ],
  },
  {
    name: "holderIgnoresExpiry",
    why: "P10, F9: the holder ignores expiry. Two holders.",
    edits: [
      { file: expiry, find: "now.hi < until && !now.clocksDisagree", replace: "true" },
      { file: expiry, at: "return onWall && now.mono < end;", find: "now.mono < end", replace: "true" },
      { file: expiry, at: "Math.max(0, Math.min(", find: "0", replace: "1" },
    ],
  },
  {
    name: "releaseByAnybody",
    why: "P11: any participant may release. Two holders.",
    edits: [
      {
        file: acceptor,
        at: "if (entry.leaseOwner !== request.owner) return;",
        find: "entry.leaseOwner !== request.owner",
        replace: "false",
      },
    ],
  },
  {
    name: "releaseBeforeStopping",
    why: "P12: REL before the hold ends. Two holders.",
    edits: [
      {
        file: proposer,
        at: "this.#requests.keepAbandoned(instance, now);\n    instance.holding = false;",
        find: "this.#requests.keepAbandoned(instance, now);",
        replace:
          "if (instance.holding) { this.#requests.releaseTenure(instance, now); return; } this.#requests.keepAbandoned(instance, now);",
      },
    ],
  },
  {
    name: "lateAcksCount",
    why: "P13: late acknowledgements count. Two holders.",
    edits: [
      {
        file: proposer,
        at: "this.#withdraw(operation, false);\n    this.#finish(instance);\n    this.#instances.give(instance);",
        find: "this.#finish(instance);\n    this.#instances.give(instance);",
        replace: ";",
      },
      {
        file: proposer,
        at: "this.#requests.release(instance, number, sequence + 1, waitsOn);\n    operation.phase = Phase.idle;",
        find: "operation.phase = Phase.idle;",
        replace: ";",
      },
    ],
  },
  {
    name: "unconditionalRelease",
    why: "P14, F19: REL without its condition. Two holders without net G.",
    edits: [{ file: acceptor, find: "!exact", replace: "false" }],
  },
  {
    name: "renewalSkipsPromiseCheck",
    why: "P15: renewals skip the promise check. Two holders without net G.",
    edits: [
      {
        file: acceptor,
        find: "if (entry?.barredOwner === request.owner) return Refusal.barred;",
        replace:
          "if (entry?.leaseOwner === request.owner && !entry.released) return Refusal.none; if (entry?.barredOwner === request.owner) return Refusal.barred;",
      },
    ],
  },
  {
    name: "renewalWithFreshBallotWithoutRead",
    why: "P16: renewal in a new ballot without a READ. Two holders without net G.",
    edits: [
      {
        file: proposer,
        find: "this.#startPhase(operation, Phase.reading, now);",
        replace:
          "if (operation.kind === OperationKind.renew) { this.#write(operation, Kind.write, now); return; } this.#startPhase(operation, Phase.reading, now);",
      },
    ],
  },
  {
    name: "renewalAfterUndecidedFastAttempt",
    why: "P17: one-trip renewal after an undecided fast attempt. Two holders without net G.",
    edits: [
      {
        file: proposer,
        at: "operation.blockedUntil = 0; // The word of a minority",
        find: "operation.blockedUntil = 0;",
        replace:
          "if (operation.phase === Phase.fast) { operation.sequence += 1; this.#write(operation, Kind.write, now); return; } operation.blockedUntil = 0;",
      },
    ],
  },
  {
    name: "onlyHighestBallotIsRead",
    why: "P18: a reader heeds the highest ballot only. Two holders without net G.",
    edits: [
      {
        file: votes,
        find: "if (!reportedLeaseIsFinished(reply, owner, now, settings)) noteBlocker(operation, reply);",
        replace:
          "if (reply.leaseState !== 0) { if (reply.leaseNumber < operation.highestRead) return; operation.highestRead = reply.leaseNumber; operation.blockedUntil = 0; } if (!reportedLeaseIsFinished(reply, owner, now, settings)) noteBlocker(operation, reply);",
      },
      {
        file: instance,
        find: "hash.flag(this.heardMajority);",
        replace: "hash.flag(this.heardMajority).number(this.highestRead ?? 0);",
      },
      {
        file: proposer,
        find: "this.#startPhase(operation, Phase.reading, now);",
        replace: "operation.highestRead = 0; this.#startPhase(operation, Phase.reading, now);",
      },
      { file: fleaseModel, find: "reply.leaseState = LeaseState.none;", replace: "return;" },
    ],
  },
  {
    name: "fastAcquireWithoutFreeTest",
    why: "P19: ACQ without its test for a free resource. Two holders without net G.",
    edits: [
      {
        file: acceptor,
        at: "if (!this.#passesTests(request, entry, now, reply)) return;\n    if (this.#blocks(entry, request.owner, now)",
        find: "this.#blocks(entry, request.owner, now)",
        replace: "request.kind !== Kind.acquire && this.#blocks(entry, request.owner, now)",
      },
    ],
  },
  {
    name: "acksCountedNotAckers",
    why: "P20, F15: acknowledgements are counted, duplicates too. Two holders.",
    edits: [
      { file: votes, find: "operation.acks = 0;", replace: "operation.acks = 0; operation.ackMessages = 0;" },
      {
        file: votes,
        find: "operation.acks |= bit;",
        replace: "operation.acks |= bit; operation.ackMessages += 1;",
      },
      {
        file: votes,
        find: "isQuorum(operation.instance.cell, operation.acks)",
        replace: "operation.ackMessages >= operation.instance.cell.majority",
      },
      {
        file: instance,
        find: "hash.flag(this.heardMajority);",
        replace: "hash.flag(this.heardMajority).number(this.ackMessages ?? 0);",
      },
      { file: fleaseModel, find: "(operation.acks & (1 << from)) !== 0", replace: "false" },
    ],
  },
  {
    name: "smallQuorum",
    why: "P20: less than a majority is enough. Two holders.",
    edits: [
      {
        file: quorum,
        find: "majorityOf(members.length)",
        replace: "Math.max(1, majorityOf(members.length) - 1)",
      },
    ],
  },
  {
    name: "anyLengthAccepted",
    why: "P21, F18: leases of any length accepted. Two holders.",
    edits: [
      { file: acceptor, find: "request.until > now.wall + maxClockSkewMs + ttlMaxMs", replace: "false" },
      { file: acceptor, find: "request.duration > ttlMaxMs", replace: "false" },
    ],
  },
  {
    name: "renewalShortensGuard",
    why: "P24: a renewal shortens the guard. Two holders.",
    edits: [
      {
        file: acceptor,
        at: "const renewal = entry.leaseOwner === request.owner && !entry.released;",
        find: "entry.leaseOwner === request.owner && !entry.released",
        replace: "false",
      },
    ],
  },
  {
    name: "lapsedTenureReopened",
    why: "P25: a late renewal reopens a lapsed tenure. The tenure has a gap.",
    edits: [
      {
        file: proposer,
        at: "} else if (this.isHeld(instance, now)) {",
        find: "this.isHeld(instance, now)",
        replace: "this.isHeld(instance, now) || (instance.holding = true)",
      },
      {
        file: proposer,
        at: "#lapse(instance: Instance, why: Lapse): void {\n    instance.holding = false;",
        find: "instance.holding = false;",
        replace: "instance.holding = false; return;",
      },
    ],
  },
  {
    name: "clockBoundsSwapped",
    why: "P26: lo and hi swapped. Two holders.",
    edits: [
      { file: clock, find: "into.lo = lo;\n    into.hi = hi;", replace: "into.lo = hi; into.hi = lo;" },
    ],
  },
  {
    name: "overByEitherClock",
    why: "P27: a lease is over if either clock says so. Two holders, when one assumption is broken.",
    edits: [{ file: expiry, find: "wallOver && steadyOver", replace: "wallOver || steadyOver" }],
  },
  {
    name: "discardWithoutFloor",
    why: "P32, F20: discarding without raising the floor. Falling tokens; two holders without net G.",
    edits: [
      { file: acceptor, find: "this.#floor = Math.max(this.#floor, entry.promisedNumber);", replace: ";" },
    ],
  },
  {
    name: "heldIsCached",
    why: "P33: a cached answer to whether a lease is held. Two holders.",
    edits: [
      {
        file: proposer,
        at: "if (holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, now)) return true;",
        find: "holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, now)",
        replace: "true",
      },
      {
        file: fleaseModel,
        find: "!holdIsValid(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, this.#reading(at))",
        replace: "false",
      },
    ],
  },
  {
    name: "ballotsNotIncreasing",
    why: "P34, F19: ballots of one process do not rise. Two holders; a repeated ballot.",
    edits: [
      { file: ballotSource, find: "Math.max(own, this.#last + 1, this.#seen + 1)", replace: "own" },
      {
        file: fleaseModel,
        at: "if (this.#world.sameIncarnation) return true;",
        find: "this.#world.sameIncarnation",
        replace: "true",
      },
    ],
  },
  {
    name: "abandonedRenewalReleased",
    why: "P35: REL for an abandoned renewal under a hold. Two holders.",
    edits: [
      {
        file: proposer,
        at: "instance.renewable = false;\n    this.#requests.keepAbandoned(instance, now);",
        find: "instance.renewable = false;",
        replace:
          "instance.renewable = false; this.#requests.release(instance, instance.operation.number, instance.operation.sequence + 1);",
      },
    ],
  },
  {
    name: "ballotsFromUpperClock",
    why: "P36: ballot numbers from the upper bound. Ballots above floors; falling tokens.",
    edits: [
      { file: ballotSource, at: "const own = numberAt(now.wall);", find: "now.wall", replace: "now.hi" },
    ],
  },
  {
    name: "lowerClockMonotone",
    why: "P39: lo made monotone. The bounds do not hold.",
    edits: [
      {
        file: clock,
        find: "this.#hi = Math.max(this.#hi, this.#anchor + mono, wall);",
        replace:
          "this.#hi = Math.max(this.#hi, this.#anchor + mono, wall); this.least = Math.max(this.least ?? -Infinity, Math.min(this.#anchor + mono, wall));",
      },
      {
        file: clock,
        find: "Math.min(carried, wall)",
        replace: "Math.max(this.least ?? -Infinity, Math.min(carried, wall))",
      },
    ],
  },
  {
    name: "lateRenewalStartsTenure",
    why: "P43: a late renewal starts a tenure. A hold that nobody asked for.",
    edits: [
      {
        file: proposer,
        at: "} else if (this.isHeld(instance, now)) {",
        find: "this.isHeld(instance, now)",
        replace:
          "this.isHeld(instance, now) || ((instance.tokenNumber = instance.operation.number), (instance.holding = true))",
      },
      {
        file: proposer,
        at: "#lapse(instance: Instance, why: Lapse): void {\n    instance.holding = false;",
        find: "instance.holding = false;",
        replace: "instance.holding = false; return;",
      },
    ],
  },
  {
    name: "releasedLeaseBlocksReader",
    why: "P44: a released lease blocks readers. Slow hand-over.",
    edits: [
      { file: expiry, find: "reply.leaseState === LeaseState.released", replace: "false" },
      { file: fleaseModel, find: "reply.leaseState === LeaseState.released", replace: "false" },
    ],
  },
  {
    name: "clockFaultForgets",
    why: "P45: a clock fault forgets the acceptor's memory. Two holders; falling tokens.",
    edits: [
      {
        file: acceptor,
        at: "this.#recoveringSinceMono = now.mono;\n    this.#recoveringSinceWall = now.wall;\n  }",
        find: "this.#recoveringSinceWall = now.wall;",
        replace:
          "this.#recoveringSinceWall = now.wall; for (const each = this.#entries.cursor(); each.next(); ) each.delete();",
      },
    ],
  },
  {
    name: "untilBoundByUpperClock",
    why: "P46: bound on until by the upper bound. Two holders, with wild steady clocks.",
    edits: [
      {
        file: acceptor,
        find: "request.until > now.wall + maxClockSkewMs + ttlMaxMs",
        replace: "request.until > now.hi + maxClockSkewMs + ttlMaxMs",
      },
    ],
  },
  {
    name: "onlyStepBackEndsHoldsAtOnce",
    why: "P50: a wall clock that is ahead of the steady one by more than ε ends holds only after a second.",
    edits: [
      {
        file: clock,
        at: "return apartMs > this.#skewMs ||",
        find: "apartMs > this.#skewMs",
        replace: "this.#hi - wall > this.#skewMs",
      },
    ],
  },
  {
    name: "programThreadTrustsClocks",
    why: "P51: the program's thread relies on a lease although its clocks disagree.",
    edits: [
      {
        file: threads,
        find: "now.hi = Math.max(now.hi, now.mono + upperLeadMs);",
        replace: "now.hi = Math.max(now.hi, now.mono + upperLeadMs); now.clocksDisagree = false;",
      },
    ],
  },
  {
    name: "guardIgnoresRates",
    why: "P52: an acceptor keeps another's lease for its length by its own steady clock, whatever the rates.",
    edits: [{ file: acceptor, find: "(1 + this.#settings.mutualRateError)", replace: "1" }],
  },
  {
    name: "clockFaultShortensWait",
    why: "P45's sister: a clock fault during a recovery wait starts that wait anew from a clock that stepped back.",
    edits: [
      {
        file: acceptor,
        find: "Math.max(this.#recoveringSinceWall, this.#forgotAtWall)",
        replace: "this.#recoveringSinceWall",
      },
    ],
  },
  {
    name: "anyTokenAccepted",
    why: "A write may name any token, also one beyond every ballot of its time.",
    edits: [{ file: acceptor, find: "request.token > request.number", replace: "false" }],
  },
  {
    name: "impatientRenewals",
    why: "A renewal waits for its answers no longer than any other phase, however much there is to do.",
    edits: [
      {
        file: pacing,
        at: "const isPatient = operation.kind === OperationKind.renew;",
        find: "operation.kind === OperationKind.renew",
        replace: "false",
      },
    ],
  },
  {
    name: "everythingIsAdmitted",
    why: "An acceptor lets in new requests however late it is.",
    edits: [
      {
        file: admission,
        at: "return this.#share === 1;",
        find: "this.#share === 1",
        replace: "true",
      },
    ],
  },
  {
    name: "renewingIsBelieved",
    why: "An acceptor lets in what claims to renew, whether or not its sender holds anything there.",
    edits: [
      {
        file: peer,
        find: "!acceptor.continues(request, now)",
        replace: "!(request.renewing || acceptor.continues(request, now))",
      },
    ],
  },
  {
    name: "writesAreAdmitted",
    why: "An acceptor lets in every WRITE, as if its ballot had been promised there.",
    edits: [
      {
        file: peer,
        find: "kind === Kind.read || kind === Kind.write || kind === Kind.acquire",
        replace: "kind === Kind.read || kind === Kind.acquire",
      },
    ],
  },
  {
    name: "releasedBallotGoesOn",
    why: "The last holder writes in the ballot that it has released, before a waiter that was told.",
    edits: [{ file: acceptor, find: "isPromised && entry.leaseNumber !== number", replace: "isPromised" }],
    caughtBy: { file: "packages/leasehold/src/flease/peer.test.ts" },
  },
  {
    name: "lightAreTurnedAway",
    why: "An acceptor that is late turns away also those who ask for little beside one who floods it.",
    edits: [{ file: admission, find: "most > this.#lightMax || this.#lightLeft < 1", replace: "true" }],
  },
  {
    name: "barFrees",
    why: "Breaking a lease frees the resource at once, under the feet of its holder.",
    edits: [
      {
        file: acceptor,
        find: "entry.barredOwner = owner;",
        replace: "entry.barredOwner = owner; entry.released = true;",
      },
    ],
  },
  {
    name: "scansInOneStep",
    why: "A list looks at everything in one step.",
    edits: [{ file: listing, find: "looked < this.#looksPerStep", replace: "true" }],
  },
  {
    name: "oneQueueForAll",
    why: "The connection that asked first is answered in full before the next one has its turn.",
    edits: [
      {
        file: fairWork,
        find: "this.#queues.get(link) !== queue",
        replace: "this.#queues.get(link) !== queue || queue.length > 0",
      },
    ],
  },
  {
    name: "missedChangesAreForgotten",
    why: "One who watches and was too slow goes on with what is still known.",
    edits: [{ file: watchFeed, find: "follower.place < this.#log.begin", replace: "false" }],
  },
  {
    name: "lateRenewalIsNoNews",
    why: "A lease that was over when somebody met it, and is renewed all the same, is no change.",
    edits: [{ file: watchFeed, find: "isSame && now.mono < followed!.endMs", replace: "isSame" }],
  },
  {
    name: "waitersAreNobodys",
    why: "Waiters are charged to nobody, so that one account takes the places of all.",
    edits: [{ file: waiters, find: "this.quotas.charge(payer, list.places);", replace: "" }],
    caughtBy: { file: "packages/leasehold/src/flease/protocol/waiters.property.test.ts" },
  },
  {
    name: "longNamesAreFree",
    why: "A waiter takes one place, however long the name of its resource is.",
    edits: [{ file: waiters, find: "weightOf(encoder.encode(resource).length)", replace: "1" }],
    caughtBy: { file: "packages/leasehold/src/flease/protocol/waiters.test.ts" },
  },
  {
    name: "placesAreKept",
    why: "A waiter that is not on a list any more keeps its places.",
    edits: [{ file: waiters, find: "this.quotas.charge(payer, -list.places);", replace: "" }],
    caughtBy: { file: "packages/leasehold/src/flease/protocol/waiters.property.test.ts" },
  },
  {
    name: "anyWithdrawalIsListed",
    why: "A withdrawal of what was never written puts its sender on a list, under any name.",
    edits: [
      {
        file: peer,
        find: "this.acceptor?.wrote(request) === true",
        replace: "true",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/flease/peer.test.ts" },
  },
  {
    name: "skewIsOneWay",
    why: "A message that waited looks like a clock that is behind.",
    edits: [
      {
        file: "packages/leasehold/src/flease/protocol/skew.ts",
        find: "peerHi - now.wall + elapsedMs",
        replace: "peerHi - now.wall",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/flease/protocol/skew.test.ts" },
  },
  {
    name: "noQuotas",
    why: "The client that comes first may have all of what an acceptor keeps.",
    edits: [
      {
        file: quotas,
        find: "payer.used < this.#nameLeast && account.certain < this.#accountLeast",
        replace: "true",
      },
    ],
  },
  {
    name: "waitsForMembersThatAreGone",
    why: "A try waits for the answer of a member that is not connected, for a whole time-out.",
    edits: [{ file: requests, find: "!this.#sink.reaches(member)", replace: "false" }],
    caughtBy: proposerTest,
  },
  {
    name: "endsWithoutAMajority",
    why: "A try ends when all that are connected have answered, though they are no majority.",
    edits: [{ file: requests, find: "if (!majorityAnswered(operation)) return false;", replace: ";" }],
    caughtBy: proposerTest,
  },
  {
    name: "waitsOnNoList",
    why: "One who waits, and whose WRITE was refused, sleeps until the lease is over, though nobody will tell it.",
    edits: [
      {
        file: proposer,
        find: "operation.phase !== Phase.writing || !operation.waiting",
        replace: "true",
      },
    ],
    caughtBy: proposerTest,
  },
  {
    name: "withdrawalTellsTheNext",
    why: "An acceptor that missed a lease tells one after the other that the resource is free, as each withdraws.",
    edits: [{ file: peer, find: "request.kind === Kind.release && request.waiting", replace: "false" }],
    caughtBy: { file: "packages/leasehold/src/flease/peer.test.ts" },
  },
  {
    name: "readingFromBeforeTheMessage",
    why: "P38: a reading from before the message arrived is used for it.",
    edits: [
      {
        file: runner,
        at: "this.#now = this.now();\n    return this.#now;",
        find: "this.#now = this.now();",
        replace: ";",
      },
    ],
    caughtBy: runnerTest,
  },
  {
    name: "restartKeepsItsName",
    why: "A restart keeps the name of the former incarnation.",
    edits: [
      {
        file: runner,
        at: "this.peer.restart(this.#options.owner(),",
        find: "this.#options.owner()",
        replace: "this.peer.proposer.owner",
      },
    ],
    caughtBy: runnerTest,
  },
  {
    name: "restartKeepsItsLeases",
    why: "A restart claims what the former incarnation held.",
    edits: [{ file: peer, find: "this.proposer.restart(owner);", replace: ";" }],
    caughtBy: runnerTest,
  },
  {
    name: "firstMemberTellsTheCluster",
    why: "The first member that answers tells the cluster.",
    edits: [
      {
        file: discovery,
        find: "known.isSettled(asked.size) || answered.size >= asked.size",
        replace: "known.isSettled(asked.size) || answered.size > 0",
      },
    ],
    caughtBy: mixedSettingsTest,
  },
  {
    name: "refusedByMajorityIsNoQuorum",
    why: "A client that a majority refuses hears of no quorum.",
    edits: [
      {
        file: refusals,
        find: "members - size >= majorityOf(members)",
        replace: "members - size > 0",
      },
    ],
    caughtBy: mixedSettingsTest,
  },
  {
    name: "setBackIsReady",
    why: "Members whose clock was set back, and that grant nothing, say that they are ready.",
    edits: [
      {
        file: acceptor,
        find: "Math.max(0, timeOf(promised) - now.wall - this.#settings.maxClockSkewMs - 1)",
        replace: "Math.min(0, timeOf(promised) - now.wall)",
      },
    ],
    caughtBy: acceptorTest,
  },
  {
    name: "visitsPassTheFarm",
    why: "Visits on stores are made without asking the farm which stores count.",
    edits: [{ file: storesNode, find: "{ filter: farm }", replace: "{}" }],
  },
  {
    name: "exclusionIsNotReported",
    why: "The one checker of exclusion reports nothing.",
    edits: [
      {
        file: exclusionChecker,
        find: "this.#report(`${nameOf(first)} and ${nameOf(hold)} both hold ${resource}`);",
        replace: ";",
      },
    ],
    caughtBy: exclusionTest,
  },
  {
    name: "gridKeepsFormerData",
    why: "A tenure on stores without data shows that of the one before.",
    edits: [{ file: storesNode, find: "carried.delete(resource);", replace: ";" }],
  },
  {
    name: "gridRenewalLosesData",
    why: "A renewal writes an entry without what others are to read of the tenure.",
    edits: [
      {
        file: "packages/leasehold/src/flease/stores/store-acceptor.ts",
        find: "this.data.get(resource)",
        replace: "sameTenure === undefined ? this.data.get(resource) : undefined",
      },
    ],
  },
  {
    name: "membersChangeAtOnce",
    why: "P42: members change without a joint view.",
    edits: [
      {
        file: views,
        find: "jointView(this.#view, next, this.#self)",
        replace: "viewAfter(jointView(this.#view, next, this.#self))",
      },
    ],
  },
  {
    name: "severalMembersChange",
    why: "P37: more than one member comes or goes in one change. By itself that only makes a change longer.",
    edits: [{ file: views, find: "added.length > 1 || removed.length > 1", replace: "false" }],
    caughtBy: {
      file: "packages/leasehold/src/flease/views/views.test.ts",
      test: /is refused while another/,
    },
  },
  {
    name: "nextChangeTooEarly",
    why: "P37, P49: a change begins while another is under way, so that a view is skipped.",
    edits: [
      { file: views, find: 'if (before !== undefined) return "another change is under way";', replace: "" },
    ],
  },
  {
    name: "noWaitInJointView",
    why: "P37: nobody waits in the joint view.",
    edits: [
      {
        file: views,
        find: "before.members.includes(this.#self) && this.waitLeftMs(now) === 0",
        replace: "before.members.includes(this.#self)",
      },
    ],
  },
  {
    name: "ownWaitIsEnough",
    why: "P37: a member goes on when it has waited itself, whatever the others have done.",
    edits: [
      {
        file: views,
        find: "if (!this.#formerIsOver(before)) return false;",
        replace: "if (this.waitLeftMs(now) > 0) return false;",
      },
    ],
  },
  {
    name: "tooManyStragglers",
    why: "P37, P49: so many may be left in the view before that they are a majority of it.",
    edits: [{ file: views, find: "Math.min(cellSize, members.length) - 1", replace: "members.length + 1" }],
  },
  {
    name: "stragglersOfAllMembers",
    why: "P37: as many may be left as are no majority of all members; of a cell they may be one.",
    edits: [{ file: views, find: "Math.min(cellSize, members.length) - 1", replace: "members.length - 1" }],
    caughtBy: {
      file: "packages/leasehold/src/flease/views/views.test.ts",
      test: /lets fewer members be late/,
    },
  },
  {
    name: "viewIsNotKept",
    why: "P48: a restart takes a member back to an older view.",
    edits: [
      {
        file: views,
        find: "if (!this.#keep({ view, barrier, votesFrom: this.#votesFrom })) return false;",
        replace: "",
      },
    ],
  },
  {
    name: "foundingListAfterLostFile",
    why: "P53: a member that has lost its view votes by the list that the cluster began with.",
    edits: [
      {
        file: view,
        find: "isNew ? 0 : neverVotes",
        replace: "0",
      },
    ],
  },
  {
    name: "lostViewIsForgiven",
    why: "P53: a member that has lost its view, or cannot keep a newer one, votes all the same.",
    edits: [
      {
        file: views,
        find: "!this.#isFirst && !this.#isBehind && this.#view.number >= this.#votesFrom",
        replace: "!this.#isFirst",
      },
    ],
    caughtBy: { file: "packages/leasehold/src/flease/views/views.test.ts", test: /has no vote/ },
  },
  {
    name: "countsBeforeItVotes",
    why: "P54: a member that comes is counted while it waits out its recovery.",
    edits: [
      { file: obstacles, at: "if (waitMs > 0) return late", find: "waitMs > 0", replace: "false" },
      { file: obstacles, at: "return votes ? undefined", find: "votes", replace: "true" },
    ],
  },
  {
    name: "restartEndsJointView",
    why: "P48: a restart takes a member from the joint view into the one after it.",
    edits: [
      {
        file: views,
        find: "kept?.view ?? firstView(settings)",
        replace: "(kept?.view.before ? viewAfter(kept.view) : kept?.view) ?? firstView(settings)",
      },
    ],
  },
  {
    name: "jointQuorumOfOldCell",
    why: "P49: a joint quorum without a majority of the new cell.",
    edits: [
      {
        file: quorum,
        find: "cell.halves.every((half) => sizeOf(set & half.set) >= half.majority)",
        replace: "cell.halves.slice(0, 1).every((half) => sizeOf(set & half.set) >= half.majority)",
      },
    ],
  },
  {
    name: "consentForEver",
    why: "A member begins a change however long ago the others have consented: by now they may have consented to another.",
    edits: [
      { file: memberChanges, find: "this.#host.now().mono - askedMono <= consentMs / 2", replace: "true" },
    ],
  },
  {
    name: "breakBlocksEitherCell",
    why: "A lease counts as broken in a joint view when no quorum is left in that view alone: in the one after it others are.",
    edits: [
      {
        file: quorum,
        find: "sizeOf(set & after.set) > after.size - after.majority",
        replace: "excludesQuorum(cell, set)",
      },
    ],
  },
  {
    name: "breakInAnotherView",
    why: "A member says that it bars a holder to one that knows of another view, where other members are a quorum.",
    edits: [
      {
        file: adminRpc,
        find: "Number.isNaN(view) || view === views.view.stamp",
        replace: "true",
      },
    ],
  },
  {
    name: "barGoesWithEntry",
    why: "A bar is forgotten as soon as the lease is over where it was set first: it may still run at those that were told of the bar later.",
    edits: [{ file: acceptor, find: "this.#barStands(entry, now)", replace: "false" }],
  },
  {
    name: "brokenEndsAsItWasSeen",
    why: "The end of a broken lease is the one that it had before it was barred: it may have been renewed meanwhile.",
    edits: [
      {
        file: inspection,
        find: "done ? await this.#endOfBroken(resource, owner, leftMs()) : action.remainingMs!",
        replace: "action.remainingMs!",
      },
    ],
  },
  {
    name: "jointQuorumOfNewCell",
    why: "P49: a joint quorum without a majority of the old cell.",
    edits: [
      {
        file: quorum,
        find: "cell.halves.every((half) => sizeOf(set & half.set) >= half.majority)",
        replace: "cell.halves.slice(1).every((half) => sizeOf(set & half.set) >= half.majority)",
      },
    ],
  },
  {
    name: "acksOfViewsMixed",
    why: "P49: what is under way goes on in the next view, and acknowledgements of both views count.",
    edits: [
      { file: proposer, find: "reply.view !== this.#requests.view", replace: "false" },
      { file: proposer, find: "({ phase }) => phase > Phase.backoff", replace: "() => false" },
    ],
  },
  {
    name: "viewChangeForgets",
    why: "P49: an acceptor forgets what it knows when the view changes.",
    edits: [
      {
        file: acceptor,
        find: "this.#barrier = barrier;",
        replace: "this.#barrier = barrier; for (const c = this.#entries.cursor(); c.next();) c.delete();",
      },
    ],
  },
  {
    name: "stampsOverflow",
    why: "Stamps have room for 32 members that begin a change.",
    edits: [
      {
        file: view,
        find: "from.members.indexOf(by) * numbersOfViews",
        replace: "from.members.indexOf(by) * 2 ** 27",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/flease/many-members.test.ts",
      test: /of 34 members with cells of 5/,
    },
  },
  {
    name: "dialsBeforeItUndials",
    why: "Addresses of members that have gone are given up after those of the present ones were dialed.",
    edits: [
      {
        file: memberDialer,
        find: "for (const address of this.#dialed.keys()) if (!wanted.has(address)) this.#undial(address);\n    this.#dialed = wanted;",
        replace: ";",
      },
      {
        file: memberDialer,
        find: "for (const [address, id] of wanted) this.#transport().dial(address, id);",
        replace:
          "for (const [address, id] of wanted) this.#transport().dial(address, id);\n    for (const id of this.#cluster.settings.members) if (!ids.includes(id)) this.#undial(this.#addresses.of(id)!);",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/flease/tcp/dialing.property.test.ts",
      test: /whatever changes/,
    },
  },
  {
    name: "clientsHearOfSmallViewsOnly",
    why: "What members call clients with is no longer than what clients call them with.",
    edits: [
      {
        file: link,
        find: "callBytesMax(this.#links.role)",
        replace: "Math.min(callBytesMax(this.#links.role), callBytesMax(this.role))",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/flease/tcp/changing-members.property.test.ts",
      test: /longest ids/,
    },
  },
  {
    name: "firstViewIsTaken",
    why: "A client takes the view that it is told first.",
    edits: [
      {
        file: descriptions,
        find: "return newestFirst[0]!;",
        replace: "return [...this.#views.values()][0]!;",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/flease/tcp/changing-members.property.test.ts",
      test: /takes the newest view/,
    },
  },
  {
    name: "viewIsOfferedOnce",
    why: "A view that did not get through is not offered again.",
    edits: [
      {
        file: "packages/leasehold/src/flease/tcp/views/view-publisher.ts",
        find: "stamp !== view.stamp",
        replace: "false",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/flease/tcp/views/view-publisher.test.ts",
      test: /offered again until/,
    },
  },
  {
    name: "noBarrier",
    why: "Ballots of views that are over count in the next ones.",
    edits: [{ file: acceptor, find: "request.number <= this.#barrier", replace: "false" }],
    caughtBy: { file: "packages/leasehold/src/flease/views/views.test.ts", test: /keeps what it knows/ },
  },
  {
    name: "renewalCrossesViews",
    why: "The next renewal in another view goes in one round trip, in the ballot of before.",
    edits: [
      {
        file: instance,
        at: "cells.of(instance.resource);\n      instance.renewable = false;",
        find: "instance.renewable = false;",
        replace: ";",
      },
    ],
    caughtBy: {
      file: "packages/leasehold/src/flease/views/views.test.ts",
      test: /renews it in two phases/,
    },
  },
]);
