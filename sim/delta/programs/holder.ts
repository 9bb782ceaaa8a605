import type { Protocol, Reading } from "../../../src/delta/effects.js";
import type { Claim } from "../observer.js";
import { cancelled, perhapsCancelled } from "./cancelled.js";
import { type Stage, sleep } from "./stage.js";

/** A holding, whichever algorithm it comes from. */
export interface Holding {
  readonly token: bigint;
  readonly shared: boolean;
  remainingMs(now: Reading): number;
  /** True when it lasts longer now. */
  renew(): Protocol<boolean>;
  release(): Protocol<void>;
  /** Its caller may give up a renewal, too. */
  readonly renewalMayEnd: boolean;
}

/** A renewal takes up to 5δ (Fig. 5): one that begins later than so many δ before the end may come too late. */
export const renewalDelays = 6;

/** Requests to the guarded resource may take so many longest leases. */
const guardLeases = 1.5;

/** A program that wants a lease again and again, works under it, renews it, and lays it down in time, late, or not at all. */
export function* holder(stage: Stage, acquire: () => Protocol<Holding | undefined>): Protocol<void> {
  const { plan, random, counters } = stage;
  for (;;) {
    yield* sleep(random.exponential(plan.thinkMeanMs));
    stage.tell((observer) => observer.wants?.(stage.party, true));
    let holding: Holding | undefined;
    const gaveUp = () => stage.tell((observer) => observer.gaveUp?.());
    while (holding === undefined) holding = yield* perhapsCancelled(stage, acquire(), gaveUp);
    stage.tell((observer) => observer.wants?.(stage.party, false));
    counters.tenures += 1;
    if (holding.shared) counters.sharedTenures += 1;
    yield* hold(stage, holding);
  }
}

function* hold(stage: Stage, holding: Holding): Protocol<void> {
  const { plan, party, random, counters } = stage;
  const leftMs = () => holding.remainingMs(party.look());
  const claim: Claim = { party, token: holding.token, shared: holding.shared, remainingMs: leftMs };
  stage.begin(claim);
  stage.say(`${party.writer} holds by ${holding.token}${holding.shared ? ", shared" : ""}`);
  while (leftMs() > 0) {
    if (random.chance(0.5)) stage.guard(claim);
    const lazy = random.chance(plan.lazyRate);
    if (random.chance(plan.releaseRate)) {
      yield* sleep(leftMs() * (lazy ? random.between(1.05, 3) : random.next()));
      if (lazy) counters.lateReleases += 1;
      counters.releases += 1;
      break;
    }
    const earliestMs = renewalDelays * plan.delayMs;
    yield* sleep(lazy ? Math.max(0, leftMs() - earliestMs) : leftMs() / 3);
    if (leftMs() <= 0) break;
    if (holding.renewalMayEnd && random.chance(plan.cancelRate)) {
      yield* cancelled(stage, holding.renew());
      continue;
    }
    const beforeMs = leftMs();
    stage.tell((observer) => observer.renewing?.(claim, beforeMs));
    const succeeded = yield* holding.renew();
    counters[succeeded ? "renewals" : "failedRenewals"] += 1;
    stage.say(`${party.writer} ${succeeded ? "renews" : "cannot renew"} ${holding.token}`);
    stage.tell((observer) => observer.renewed?.(claim, succeeded));
  }
  stage.end(claim);
  stage.say(`${party.writer} lays ${holding.token} down`);
  yield* perhapsCancelled(stage, holding.release());
}

/** How long a request to the guarded resource is under way. */
export function guardDelayMs({ plan, random }: Stage): number {
  return random.next() * (random.chance(0.2) ? guardLeases * plan.leaseMs : plan.delayMs);
}
