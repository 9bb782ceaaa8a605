import { elapsedMs } from "../../../src/common/both-clocks.js";
import { LeaseholdError } from "../../../src/lease/errors.js";
import { LeaseManager } from "../../../src/lease/manager/lease-manager.js";
import type { Lease } from "../../../src/lease/types.js";
import { leaseMsOf, type ProviderStage } from "../stage/stage.js";
import type { Claim } from "../stage/observer.js";

const resource = "r";

/** How many of those who want it are readers, how many ask once, and whose lease is not renewed. */
const readerRate = 0.7;
const tryRate = 0.3;
const lapseRate = 0.2;

/** A program waits for so many of its leases at most, and holds for so many. */
const patienceLeases = 6;
const holdLeases = 1.5;

/** Readers and writers as users have them: the waist on the conditional lease, which makes both of exclusive ones. */
export async function sharers(stage: ProviderStage): Promise<void> {
  const { plan, party, random } = stage;
  const leases = new LeaseManager(stage.provider, party);
  stage.leaves(() => leases.close());
  for (;;) {
    await party.sleep(random.exponential(plan.thinkMeanMs));
    const shared = random.chance(readerRate);
    const lease = await party.alive(wanted(stage, leases, shared));
    if (lease !== undefined) await hold(stage, lease, shared);
  }
}

async function wanted(
  stage: ProviderStage,
  leases: LeaseManager,
  shared: boolean,
): Promise<Lease | undefined> {
  const { plan, party, random, counters } = stage;
  const ttl = leaseMsOf(stage);
  const mind = new AbortController();
  if (random.chance(plan.cancelRate)) {
    counters.cancellations += 1;
    party.timers.after(random.exponential(ttl), () => mind.abort(new LeaseholdError("TIMEOUT")));
  }
  const options = {
    ttl,
    mode: shared ? "shared" : "exclusive",
    signal: mind.signal,
    autoRenew: !random.chance(lapseRate),
  } as const;
  try {
    if (random.chance(tryRate)) return await leases.tryAcquire(resource, options);
    return await leases.acquire(resource, { ...options, wait: random.next() * patienceLeases * ttl });
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return undefined;
  }
}

/** What it claims is by its last look: a checker's own look would end a lease of a process that is stopped. */
async function hold(stage: ProviderStage, lease: Lease, shared: boolean): Promise<void> {
  const { plan, party, random, counters } = stage;
  let looked = { at: party.look(), leftMs: lease.remaining() };
  if (looked.leftMs === 0) return;
  counters.tenures += 1;
  if (shared) counters.sharedTenures += 1;
  const remainingMs = () => Math.max(0, looked.leftMs - elapsedMs(looked.at, party.look()));
  const claim: Claim = { party, token: lease.token, shared, remainingMs };
  stage.begin(claim);
  stage.say(`${party.writer} ${shared ? "reads" : "writes"} by ${lease.token}`);
  for (let looks = random.below(4); looks >= 0; looks -= 1) {
    await party.sleep((random.next() * holdLeases * plan.leaseMs) / 2);
    looked = { at: party.look(), leftMs: lease.remaining() };
    if (looked.leftMs === 0) break;
    stage.tell((observer) => observer.renewed?.(claim, true));
  }
  stage.end(claim);
  counters.releases += 1;
  await party.alive(lease.release());
}
