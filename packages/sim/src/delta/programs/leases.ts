import { contend } from "leasehold/inner/delta/paper/contend.js";
import { release, renewEventuallyND, renewND } from "leasehold/inner/delta/paper/renew.js";
import { ReaderSite } from "leasehold/inner/delta/paper/shared.js";
import type { Site } from "leasehold/inner/delta/paper/site.js";
import { Idle } from "leasehold/inner/delta/paper/states.js";
import { DeltaGrant } from "leasehold/inner/delta/provider/provider.js";
import { elapsedMs } from "leasehold/inner/common/both-clocks.js";
import type { Caller } from "./cancelled.js";
import { type Holding, holder } from "./holder.js";
import { leaseMsOf, type PartsStage, type ProviderStage } from "../stage/stage.js";

export const resource = "r";

const passDigits = 16;

/** Leases as users see them: the conditional lease, or the paper's lease split at its waits. */
export function providedLease(stage: ProviderStage): Promise<void> {
  return holder(stage, (caller) => attempt(stage, caller));
}

async function attempt(stage: ProviderStage, caller?: Caller): Promise<Holding | undefined> {
  const { plan, party, random, provider } = stage;
  const ttlMs = leaseMsOf(stage);
  const timeoutMs = random.pick([1, 40]) * plan.delayMs;
  const request = { resource, ttlMs, timeoutMs, contended: false, waiting: false };
  const ticket =
    provider.guarantees.attach && random.chance(plan.detachRate) ? [...stage.tickets].at(-1) : undefined;
  if (ticket !== undefined) stage.claims.delete(ticket.claim);
  const attempting = ticket ? provider.adopt(request, ticket, caller) : provider.attempt(request, caller);
  const outcome = await party.alive(attempting);
  if (outcome.kind === "held") await party.sleep(outcome.retryInMs);
  if (outcome.kind === "failed") {
    if (outcome.error.code === "HANDLE_SPENT") stage.tickets.delete(ticket!);
    await party.sleep(plan.delayMs * random.next());
  }
  if (outcome.kind !== "granted") return undefined;
  const { grant } = outcome;
  if (!(grant instanceof DeltaGrant)) throw new TypeError("a grant of another provider");
  const { tenure } = grant;
  if (ticket !== undefined) {
    stage.counters.adopted += 1;
    stage.log(`${party.writer} takes over ${ticket.token}`);
    stage.tell((observer) => observer.adopted?.(ticket.token));
  }
  // Not the grant's own method, because that ends an expired tenure: a look must change nothing.
  const leftMs = () => Math.max(0, tenure.hold.leaseMs - elapsedMs(tenure.hold.begun, party.look()));
  return {
    token: grant.token,
    shared: false,
    remainingMs: () => (tenure.lost === undefined ? leftMs() : 0),
    renew: () => provider.renew(grant, ttlMs),
    release: () =>
      provider.guarantees.attach && random.chance(plan.detachRate)
        ? detach(stage, grant)
        : provider.release(grant),
    renewalMayEnd: false,
  };
}

/** Until the lease is over, nobody has it unless somebody takes it over. */
async function detach(stage: ProviderStage, grant: DeltaGrant): Promise<void> {
  const { counters, party, provider, random, tickets } = stage;
  const { hold } = grant.tenure;
  const remainingMs = () => Math.max(0, hold.leaseMs - elapsedMs(hold.begun, party.look()));
  if (grant.tenure.lost !== undefined || remainingMs() === 0) {
    await provider.release(grant);
    return;
  }
  const pass = `${random.below(2 ** 48)}`.padStart(passDigits, "0");
  if (!(await party.alive(provider.detach(grant, pass)))) return;
  counters.detached += 1;
  stage.log(`${party.writer} detaches ${grant.token}`);
  const claim = { party, token: grant.token, shared: false, remainingMs };
  stage.claims.add(claim);
  tickets.add({ resource, token: grant.token, pass, claim });
}

/** As in the figures: contend (Fig. 2), and each kind of renewal where it belongs. */
export function figures(stage: PartsStage): Promise<void> {
  const site = stage.parts.site(resource, leaseMsOf(stage));
  const renew = stage.plan.stableFromMs === 0 ? renewND : renewEventuallyND;
  return holder(stage, (caller) => contended(stage, site, renew, caller));
}

/** Readers and writers (section 10): each process is one or the other. */
export function readersAndWriters(stage: PartsStage): Promise<void> {
  const { party, parts } = stage;
  const leaseMs = leaseMsOf(stage);
  const site = party.index === 0 ? parts.site(resource, leaseMs) : parts.readerSite(resource, leaseMs);
  return holder(stage, (caller) => contended(stage, site, renewEventuallyND, caller));
}

async function contended(
  { party, parts }: PartsStage,
  site: Site,
  renew: typeof renewND,
  caller?: Caller,
): Promise<Holding | undefined> {
  const shared = site instanceof ReaderSite;
  const state = await party.alive(parts.run(contend(site, new Idle()), caller?.signal));
  if (state.state === "idle") return undefined;
  let held = state;
  let isOver = false;
  return {
    token: held.record.epoch,
    shared,
    renewalMayEnd: true,
    remainingMs: () => (isOver ? 0 : held.remainingMs(party.look())),
    async renew(renewer) {
      const next = await party.alive(parts.run(renew(site, held), renewer?.signal));
      if (next.state === "hold") held = next;
      else isOver = true;
      return !isOver;
    },
    async release(releaser) {
      // After a failed renewal the record is unknown.
      if (isOver) return;
      isOver = true;
      await party.alive(parts.run(release(site, held), releaser?.signal));
    },
  };
}
