import type { Claim } from "../stage/observer.js";
import { renewalDelays } from "../stage/plan.js";
import { type Caller, cancelled, perhapsCancelled } from "./cancelled.js";
import type { Stage } from "../stage/stage.js";

/** A holding of either algorithm. */
export interface Holding {
  readonly token: bigint;
  readonly shared: boolean;
  /** By the process's present clocks. Looking changes nothing. */
  remainingMs(): number;
  /** True if the hold was extended. */
  renew(caller?: Caller): Promise<boolean>;
  release(caller?: Caller): Promise<void>;
  /** The caller may cancel a renewal, too. */
  readonly renewalMayEnd: boolean;
}

/**
 * A program that acquires a lease repeatedly, works under it, renews it, and releases it in time, late, or
 * not at all.
 */
export async function holder(
  stage: Stage,
  acquire: (caller?: Caller) => Promise<Holding | undefined>,
): Promise<void> {
  const { plan, party, random, counters } = stage;
  for (;;) {
    await party.sleep(random.exponential(plan.thinkMeanMs));
    stage.tell((observer) => observer.wants?.(party, true));
    let holding: Holding | undefined;
    const gaveUp = () => stage.tell((observer) => observer.gaveUp?.());
    while (holding === undefined) holding = await perhapsCancelled(stage, acquire, gaveUp);
    stage.tell((observer) => observer.wants?.(party, false));
    counters.tenures += 1;
    if (holding.shared) counters.sharedTenures += 1;
    await hold(stage, holding);
  }
}

async function hold(stage: Stage, holding: Holding): Promise<void> {
  const { plan, party, random, counters } = stage;
  const leftMs = () => holding.remainingMs();
  const claim: Claim = { party, token: holding.token, shared: holding.shared, remainingMs: leftMs };
  stage.begin(claim);
  stage.log(`${party.writer} holds by ${holding.token}${holding.shared ? ", shared" : ""}`);
  while (leftMs() > 0) {
    if (random.chance(0.5)) stage.guard(claim);
    const lazy = random.chance(plan.lazyRate);
    if (random.chance(plan.releaseRate)) {
      await party.sleep(leftMs() * (lazy ? random.between(1.05, 3) : random.next()));
      if (lazy) counters.lateReleases += 1;
      counters.releases += 1;
      break;
    }
    const earliestMs = renewalDelays * plan.delayMs;
    await party.sleep(lazy ? Math.max(0, leftMs() - earliestMs) : leftMs() / 3);
    if (leftMs() <= 0) break;
    if (holding.renewalMayEnd && random.chance(plan.cancelRate)) {
      await cancelled(stage, (caller) => holding.renew(caller));
      continue;
    }
    const beforeMs = leftMs();
    stage.tell((observer) => observer.renewing?.(claim, beforeMs));
    const succeeded = await party.alive(holding.renew());
    counters[succeeded ? "renewals" : "failedRenewals"] += 1;
    stage.log(`${party.writer} ${succeeded ? "renews" : "cannot renew"} ${holding.token}`);
    stage.tell((observer) => observer.renewed?.(claim, succeeded));
  }
  stage.end(claim);
  stage.log(`${party.writer} lays ${holding.token} down`);
  await perhapsCancelled(stage, (caller) => holding.release(caller));
}
