import { type BothClocks, elapsedMs } from "leasehold/inner/common/both-clocks.js";
import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import { LeaseManager } from "leasehold/inner/lease/manager/lease-manager.js";
import type { AcquireOptions, Lease } from "leasehold/inner/lease/types.js";
import { leaseMsOf, type ProviderStage } from "../stage/stage.js";
import type { Claim } from "../stage/observer.js";

const counted = "r";
/** The resource of readers and writers; a call without a mode is a writer. */
const book = "r/~rw";

/** The shares of readers, of single attempts, and of leases without renewal. */
const readerRate = 0.7;
const tryRate = 0.3;
const lapseRate = 0.2;

/** Limits of waiting and holding, in leases. */
const patienceLeases = 6;
const holdLeases = 1.5;

/** The limit of a counted lease changes from call to call. */
const limitMax = 3;

/** The requested lease, and the name of the hold. */
interface Wish {
  readonly form: Pick<AcquireOptions, "limit" | "mode">;
  readonly name: "reads" | "writes" | "counts";
}

/**
 * Readers and writers, or holders of a counted lease, as users have them: the lease layer on the conditional
 * lease, which builds all of them from exclusive ones.
 */
export async function sharers(stage: ProviderStage): Promise<void> {
  const { party, plan } = stage;
  const leases = new LeaseManager(stage.provider, party);
  stage.leaves(() => leases.close());
  await Promise.all(Array.from({ length: plan.programs }, () => shares(stage, leases)));
}

async function shares(stage: ProviderStage, leases: LeaseManager): Promise<void> {
  const { plan, party, random } = stage;
  for (;;) {
    await party.sleep(random.exponential(plan.thinkMeanMs));
    const wish = wishOf(stage);
    const lease = await party.alive(wanted(stage, leases, wish.form));
    if (lease !== undefined) await hold(stage, lease, wish);
  }
}

function wishOf({ plan, random }: ProviderStage): Wish {
  if (plan.ground === "counted") return { form: { limit: 1 + random.below(limitMax) }, name: "counts" };
  return random.chance(readerRate)
    ? { form: { mode: "shared" }, name: "reads" }
    : { form: {}, name: "writes" };
}

async function wanted(
  stage: ProviderStage,
  leases: LeaseManager,
  form: Wish["form"],
): Promise<Lease | undefined> {
  const { plan, party, random, counters } = stage;
  const ttl = leaseMsOf(stage);
  const mind = new AbortController();
  if (random.chance(plan.cancelRate)) {
    counters.cancellations += 1;
    party.timers.after(random.exponential(ttl), () => mind.abort(new LeaseholdError("TIMEOUT")));
  }
  const resource = plan.ground === "counted" ? counted : book;
  const options = {
    ttl,
    ...form,
    signal: mind.signal,
    autoRenew: !random.chance(lapseRate),
  };
  try {
    if (random.chance(tryRate)) return await leases.tryAcquire(resource, options);
    return await leases.acquire(resource, { ...options, wait: random.next() * patienceLeases * ttl });
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return undefined;
  }
}

/**
 * The claim is as of its last look: a look by the checker would end the lease of a stopped process. A program
 * uses its steady clock, which does not step, and both clocks where machines are suspended.
 */
async function hold(stage: ProviderStage, lease: Lease, { form, name }: Wish): Promise<void> {
  const { plan, party, random, counters } = stage;
  let looked = { at: party.look(), leftMs: lease.remaining() };
  if (looked.leftMs === 0) return;
  counters.tenures += 1;
  if (name === "reads") counters.sharedTenures += 1;
  if (name === "counts") counters.countedTenures += 1;
  const hasSteps = plan.stepEveryMs < Infinity;
  const sinceMs = (now: BothClocks) =>
    hasSteps ? now.monotonicMs - looked.at.monotonicMs : elapsedMs(looked.at, now);
  const remainingMs = () => Math.max(0, looked.leftMs - sinceMs(party.look()));
  const { slot, token } = lease;
  const place = form.limit === undefined ? {} : { place: { slot, limit: form.limit } };
  const claim: Claim = { party, token, shared: name === "reads", ...place, remainingMs };
  stage.begin(claim);
  stage.log(`${party.writer} ${name} by ${token} in slot ${slot}`);
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
