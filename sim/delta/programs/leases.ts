import { ConditionalLease } from "../../../src/delta/conditional/conditional-lease.js";
import type { Protocol } from "../../../src/delta/effects.js";
import { lookAtClocks } from "../../../src/delta/effects.js";
import type { LeaseProtocol } from "../../../src/delta/lease-protocol.js";
import { contend } from "../../../src/delta/paper/contend.js";
import { PaperLease } from "../../../src/delta/paper/paper-lease.js";
import { release, renewEventuallyND, renewND } from "../../../src/delta/paper/renew.js";
import { ReaderSite, contendShared, releaseShared } from "../../../src/delta/paper/shared.js";
import { Nonces, Site } from "../../../src/delta/paper/site.js";
import { Idle } from "../../../src/delta/paper/states.js";
import { type Tenure, elapsedMs } from "../../../src/delta/tenure.js";
import { type Holding, holder } from "./holder.js";
import { type Stage, leaseMsOf, sleep } from "./stage.js";

const resource = "r";

/** Through the interface that providers use: the conditional lease, or the paper's cut at its waits. */
export function providedLease(stage: Stage): Protocol<void> {
  const { environment, plan } = stage;
  const lease: LeaseProtocol =
    plan.ground === "conditional"
      ? (new ConditionalLease(environment) as LeaseProtocol)
      : (new PaperLease(environment) as LeaseProtocol);
  return holder(stage, () => attempt(stage, lease));
}

function* attempt(stage: Stage, lease: LeaseProtocol): Protocol<Holding | undefined> {
  const { plan, random } = stage;
  const leaseMs = leaseMsOf(stage);
  const { now } = yield lookAtClocks;
  const patienceMs = random.pick([1, 40]) * plan.delayMs;
  const result = yield* lease.attempt({ resource, leaseMs, deadlineMs: now.monotonicMs + patienceMs });
  if (result.kind === "held") yield* sleep(result.retryInMs);
  if (result.kind === "unanswered") yield* sleep(plan.delayMs * random.next());
  if (result.kind !== "granted") return undefined;
  const tenure: Tenure = result.tenure;
  return {
    token: tenure.token,
    shared: false,
    // Not `tenure.remainingMs`, which ends the tenure when it is over: a look must not change what happens.
    remainingMs: (reading) =>
      tenure.lost === undefined
        ? Math.max(0, tenure.hold.leaseMs - elapsedMs(tenure.hold.begun, reading))
        : 0,
    renew: () => lease.renew(tenure, leaseMs),
    release: () => lease.release(tenure),
    renewalMayEnd: false,
  };
}

/** As in the figures: contend (Fig. 2), and both kinds of renewal, each where it belongs. */
export function figures(stage: Stage): Protocol<void> {
  const { environment, plan } = stage;
  const site = new Site({ environment, resource, leaseMs: leaseMsOf(stage), nonces: new Nonces() });
  const renew = plan.stableFromMs === 0 ? renewND : renewEventuallyND;
  return holder(stage, () => contended(site, renew, false));
}

/** Readers and writers (section 10): each process is one or the other. */
export function readersAndWriters(stage: Stage): Protocol<void> {
  const { environment, party } = stage;
  const options = { environment, resource, leaseMs: leaseMsOf(stage), nonces: new Nonces() };
  if (party.index === 0) return holder(stage, () => contended(new Site(options), renewEventuallyND, false));
  const site = new ReaderSite(options);
  return holder(stage, () => contended(site, renewEventuallyND, true));
}

function* contended(site: Site, renew: typeof renewND, shared: boolean): Protocol<Holding | undefined> {
  const state = yield* site instanceof ReaderSite
    ? contendShared(site, new Idle())
    : contend(site, new Idle());
  if (state.state === "idle") return undefined;
  let held = state;
  let isOver = false;
  return {
    token: held.record.epoch,
    shared,
    renewalMayEnd: true,
    remainingMs: (now) => (isOver ? 0 : held.remainingMs(now)),
    *renew() {
      const next = yield* renew(site, held);
      if (next.state === "hold") held = next;
      else isOver = true;
      return !isOver;
    },
    *release() {
      // After a renewal that failed nobody knows which record stands there.
      if (isOver) return;
      isOver = true;
      yield* site instanceof ReaderSite ? releaseShared(site, held) : release(site, held);
    },
  };
}
