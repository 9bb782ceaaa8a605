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

const resource = "r";

/** Leases as users have them: the conditional lease, or the paper's cut at its waits. */
export function providedLease(stage: ProviderStage): Promise<void> {
  return holder(stage, (caller) => attempt(stage, caller));
}

async function attempt(stage: ProviderStage, caller?: Caller): Promise<Holding | undefined> {
  const { plan, party, random, provider } = stage;
  const ttlMs = leaseMsOf(stage);
  const timeoutMs = random.pick([1, 40]) * plan.delayMs;
  const request = { resource, ttlMs, timeoutMs, contended: false, waiting: false };
  const outcome = await party.alive(provider.attempt(request, caller));
  if (outcome.kind === "held") await party.sleep(outcome.retryInMs);
  if (outcome.kind === "failed") await party.sleep(plan.delayMs * random.next());
  if (outcome.kind !== "granted") return undefined;
  const { grant } = outcome;
  if (!(grant instanceof DeltaGrant)) throw new TypeError("a grant of another provider");
  const { tenure } = grant;
  return {
    token: grant.token,
    shared: false,
    // Not the grant's own method, which ends an expired tenure: a look must change nothing.
    remainingMs: () =>
      tenure.lost === undefined
        ? Math.max(0, tenure.hold.leaseMs - elapsedMs(tenure.hold.begun, party.look()))
        : 0,
    renew: () => provider.renew(grant, ttlMs),
    release: () => provider.release(grant),
    renewalMayEnd: false,
  };
}

/** As in the figures: contend (Fig. 2), and both kinds of renewal, each where it belongs. */
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
