import { LeaseholdError } from "../../lease/errors.js";
import { type Protocol, lookAtClocks } from "../effects.js";
import type {
  AskResult,
  AttemptResult,
  AttemptWish,
  LeaseProtocol,
  Listing,
  ProtocolEnvironment,
  HolderView,
} from "../lease-protocol.js";
import { stretched } from "../../common/clock-rates.js";
import { listFarm, lookAtFarm } from "../quorum-read.js";
import { Observations } from "../observations.js";
import type { Asked } from "../record/record.js";
import { type Hold, Tenure } from "../tenure.js";
import { claim } from "./contend.js";
import { paperPromise } from "./paper-promise.js";
import { RequestsUnderWay, leaveRequest, requestTo } from "./holder-request.js";
import { release, renewEventuallyND } from "./renew.js";
import { Nonces, Site } from "./site.js";
import type { Held } from "./states.js";

/** Resources remembered. Forgetting one is safe: a process that waits for its end restarts the wait. */
const sitesMax = 10_000;

/** Operations of a take-over after the wait: a read, a write, the pause of two, and another read. */
const claimOperations = 5;

/**
 * Operations, apart from two pauses, from the write of one renewal to the end of the next, including the
 * check for requests between them.
 */
const operationsApart = 6;

/**
 * The shortest lease, in δ. A hold begins with a write, and is known after a pause of 2δ and a read. Then
 * come a check for requests, and the next renewal: a read, a write, the same pause, and another read.
 */
export function paperLeaseDelaysMin(clockRateError: number): number {
  return Math.ceil(operationsApart + 2 * stretched(2, clockRateError));
}

/** A tenure won by contending. */
export class PaperTenure extends Tenure {
  readonly site: Site;
  held: Held;
  /** A renewal failed, so the present record in the register is unknown. */
  isUnknown = false;
  /** The last request handled: requests stay in their register. */
  lastAsked: Asked | undefined;

  constructor(site: Site, held: Held) {
    super(site.resource, held.record.epoch, holdOf(held));
    this.site = site;
    this.held = held;
  }
}

/** The state that one process keeps of a resource between attempts. */
interface Watch {
  /** Tracks how long each record has been unchanged. */
  readonly site: Site;
  /**
   * Additional wait after a failed claim, ms: contenders that start waiting at the same moment would collide
   * repeatedly.
   */
  backOffMs: number;
}

/**
 * The paper's Δ-lease, one of the two algorithms behind leases: for farms with stores that can only write.
 * `contend` (Fig. 2) is split at its waits, so that an attempt ends soon and the next one continues from
 * there. Renewal is that of Fig. 5.
 */
export class PaperLease implements LeaseProtocol<PaperTenure> {
  readonly promise: LeaseProtocol["promise"];
  readonly takeoverMsMax: number;
  readonly leaseDelaysMin: number;
  readonly #environment: ProtocolEnvironment;
  readonly #observations: Observations;
  readonly #nonces = new Nonces();
  readonly #requests = new RequestsUnderWay();
  /** The most recently used resource is last. */
  readonly #watches = new Map<string, Watch>();

  constructor(environment: ProtocolEnvironment) {
    const { leaseMsMax, delayMs, pollMs, clockRateError } = environment.settings;
    this.#environment = environment;
    this.#observations = new Observations(clockRateError);
    this.leaseDelaysMin = paperLeaseDelaysMin(clockRateError);
    this.takeoverMsMax =
      stretched(leaseMsMax + 6 * delayMs, clockRateError) + pollMs + claimOperations * delayMs;
    this.promise = paperPromise(environment);
  }

  *attempt({ resource, leaseMs, deadlineMs, data }: AttemptWish): Protocol<AttemptResult<PaperTenure>> {
    const watch = this.#watchOf(resource, leaseMs);
    const { site } = watch;
    site.data = data;
    for (;;) {
      const { now } = yield lookAtClocks;
      const cur = yield* site.register.read(now); //                  Fig. 2, lines 1 and 6
      if (cur.cancelled) return ended;
      if (cur.kind === "unanswered") return { kind: "failed", error: cur.error };
      const obstacle = site.obstacle(cur, watch.backOffMs); //        7
      if (obstacle === undefined) {
        const held = yield* claim(site, cur); //                      8 to 12
        watch.backOffMs = held.state === "hold" ? 0 : site.backOffMs();
        if (held.state === "hold") return { kind: "granted", tenure: new PaperTenure(site, held) };
        return held.because === "cancelled" ? ended : this.#held(undefined, site.delayMs);
      }
      // A free or never written register has no known holder, so its wait is part of the attempt, as far as
      // the deadline allows.
      const leftMs = Math.max(0, obstacle.overAtMs - cur.ended.monotonicMs);
      const holder = obstacle.record?.state === "held" ? obstacle.record.writer : undefined;
      if (holder !== undefined || cur.ended.monotonicMs + leftMs >= deadlineMs)
        return this.#held(holder, leftMs);
      const waited = yield { kind: "delay", delayMs: leftMs }; //     5
      if (waited.cancelled) return ended;
    }
  }

  *renew(tenure: PaperTenure, leaseMs: number): Protocol<boolean> {
    const { now } = yield lookAtClocks;
    if (tenure.remainingMs(now) === 0 || tenure.isBroken) return false;
    tenure.site.leaseMs = leaseMs;
    const state = yield* renewEventuallyND(tenure.site, tenure.held);
    if (state.state === "idle") {
      // Either the bound on delays was exceeded or there is a successor: the hold can no longer be trusted.
      tenure.isUnknown = true;
      tenure.lost ??= "expired";
      return false;
    }
    const before = tenure.hold;
    tenure.held = state;
    tenure.hold = holdOf(state);
    if ((yield* this.#readRequests(tenure)) && !tenure.isBroken) return true;
    // The lease was broken before this renewal, or may have been: it ends at its previous end.
    tenure.hold = before;
    return false;
  }

  *release(tenure: PaperTenure): Protocol<void> {
    tenure.lost ??= "released";
    // A record in an unknown state expires by itself.
    if (!tenure.isUnknown) yield* release(tenure.site, tenure.held);
  }

  *look(resource: string, timeoutMs: number): Protocol<HolderView> {
    const holderView = yield* lookAtFarm(this.#environment, this.#observations, resource, timeoutMs);
    const { record } = holderView;
    if (record === undefined) return holderView;
    const { asked } = yield* requestTo(this.#environment, resource, record.epoch);
    return asked === undefined ? holderView : { ...holderView, record: { ...record, asked } };
  }

  *ask(resource: string, asked: Asked, timeoutMs: number): Protocol<AskResult> {
    const holderView = yield* lookAtFarm(this.#environment, this.#observations, resource, timeoutMs);
    return yield* leaveRequest(this.#environment, this.#requests, resource, asked, holderView);
  }

  list(prefix: string, timeoutMs: number): Protocol<Listing> {
    return listFarm(this.#environment, this.#observations, prefix, timeoutMs);
  }

  /**
   * Requests are announced like leases: without an announcement there is none. Returns false when there may
   * be one that could not be read.
   */
  *#readRequests(tenure: PaperTenure): Protocol<boolean> {
    const { register } = tenure.site;
    if (!register.hasNews) return true;
    const { lastNews } = register;
    const { asked, stores } = yield* requestTo(this.#environment, tenure.resource, tenure.token);
    register.markRead(stores, lastNews);
    const last = tenure.lastAsked;
    if (asked !== undefined && (asked.by !== last?.by || asked.broken !== last.broken)) {
      tenure.lastAsked = asked;
      tenure.asked = asked;
    }
    return stores.length > 0;
  }

  #held(holder: string | undefined, leftMs: number): AttemptResult<PaperTenure> {
    const retryInMs = Math.max(1, Math.min(this.#environment.settings.pollMs, leftMs));
    return { kind: "held", retryInMs, ...(holder !== undefined && { holder }) };
  }

  #watchOf(resource: string, leaseMs: number): Watch {
    const watch = this.#watches.get(resource) ?? {
      site: new Site({ environment: this.#environment, resource, leaseMs, nonces: this.#nonces }),
      backOffMs: 0,
    };
    watch.site.leaseMs = leaseMs;
    this.#watches.delete(resource);
    this.#watches.set(resource, watch);
    if (this.#watches.size > sitesMax) this.#watches.delete(this.#watches.keys().next().value!);
    return watch;
  }
}

const ended: AttemptResult<PaperTenure> = {
  kind: "failed",
  error: new LeaseholdError("TIMEOUT", "the caller cancelled the attempt"),
};

function holdOf(held: Held): Hold {
  return { begun: held.begun, leaseMs: held.record.leaseMs };
}
