import { foundLost, LeaseholdError } from "../lease/errors.js";
import type {
  AttemptOutcome,
  AttemptRequest,
  AttemptTaker,
  Cancellation,
  Grant,
  Provider,
  ProviderEvents,
  ReleaseRequest,
  RenewalTaker,
} from "../lease/provider.js";
import type { Guarantees, HolderHint, ResourceHint } from "../lease/types.js";
import { majorityOf } from "../common/majority.js";
import { votersOf } from "./views/view.js";
import { busyRetryMs } from "./admission.js";
import { nodeIdOf } from "./protocol/ballot.js";
import type { Reading } from "./protocol/clock.js";
import { FleaseGrant, PendingAttempt, RequestedRenewal } from "./grant.js";
import { fleaseGuarantees } from "./guarantees.js";
import type { DataPublisher } from "./admin/data-publisher.js";
import type { AdminDriver } from "./admin/driver.js";
import { leftMs } from "./admin/hints.js";
import { FleaseInspection } from "./admin/inspection.js";
import type { Lapse, AttemptFailure } from "./protocol/proposer-ports.js";
import { renewalsPerTurn, RenewalQueue } from "./renewal-queue.js";
import type { FleasePeer, PeerOutcomes } from "./peer.js";
import type { FleaseRunner } from "./runner.js";
import { OperationKind } from "./protocol/instance.js";
import type { ClockStart } from "./threads.js";
import type { InstanceMaker } from "./protocol/instance.js";

/** A provider's ports: the peer's runner, and the admin RPCs to the members. */
export interface FleaseDriver extends AdminDriver {
  /** An observer only asks, and acquires nothing. */
  readonly role?: "member" | "client" | "observer";
  readonly runner: Pick<FleaseRunner, "peer" | "world" | "now" | "reading" | "poke">;
  /** Sends members the public data of a tenure; absent where nobody would keep it. */
  readonly publisher?: Pick<DataPublisher, "publish" | "forget"> | undefined;
  /** How many members are connected, for error messages. */
  reachable(): number;
  close(): Promise<void>;
}

const observes = "an observer takes no leases: open with the role of a client";

function renewsTooLate(): LeaseholdError {
  return new LeaseholdError(
    "OVERLOADED",
    "this participant holds more than it can renew in time at present, and begins nothing new",
  );
}

/** Continued when the step in progress is over. */
const settled = Promise.resolve();

/**
 * Leases among peers, as a ground for the waist: turns its calls into operations of a proposer, and their
 * outcomes into promises.
 */
export class FleaseProvider implements Provider, PeerOutcomes<FleaseGrant> {
  readonly guarantees: Guarantees;
  readonly inspection: FleaseInspection;
  readonly #driver: FleaseDriver;
  readonly #runner: FleaseDriver["runner"];
  readonly #peer: FleasePeer;
  /** Ended attempts. Their callers are notified after the step that ended them. */
  #ended: PendingAttempt[] = [];
  /** Ended renewals, likewise. */
  #renewed: RequestedRenewal[] = [];
  /** Renewals of grants that have not been released. */
  readonly #renewals = new RenewalQueue<RequestedRenewal>();
  #renewalsPutOff = false;
  /**
   * By resource: until when, on the steady clock, a program may rely on a tenure that a clock ended early.
   * Acceptors keep other participants out, but not this one.
   */
  readonly #promisedUntilMono = new Map<string, number>();
  #closed = false;
  #events: ProviderEvents | undefined;

  constructor(driver: FleaseDriver) {
    this.#driver = driver;
    this.#runner = driver.runner;
    this.#peer = driver.runner.peer;
    this.guarantees = { ...fleaseGuarantees(this.#peer.settings), data: driver.publisher !== undefined };
    this.inspection = new FleaseInspection(driver);
    this.#peer.attach(this);
  }

  get holder(): string {
    return this.#peer.proposer.owner;
  }

  attach(events: ProviderEvents): void {
    this.#events = events;
  }

  attempt(request: AttemptRequest, cancellation?: Cancellation): Promise<AttemptOutcome> {
    return new Promise((settled) => {
      const taker: AttemptTaker = {
        cancelled: cancellation?.cancelled === true,
        onCancel: undefined,
        settled,
      };
      this.begin(request, taker);
      if (cancellation !== undefined) cancellation.onCancel = () => taker.onCancel?.();
    });
  }

  begin(request: AttemptRequest, taker: AttemptTaker): void {
    const pending = new PendingAttempt(taker, request.data);
    const now = this.#runner.now();
    const refusal = this.#whyNotNow(now);
    if (refusal !== undefined) {
      this.#settleLater(pending, refusal);
      return;
    }
    const { proposer } = this.#peer;
    const { resource, ttlMs, timeoutMs, contended, waiting } = request;
    const promisedMs = this.#promisedMs(resource, now);
    if (promisedMs > 0) {
      this.#settleLater(pending, { kind: "held", holder: this.holder, retryInMs: promisedMs });
      return;
    }
    // A tenure, even a lapsed one, keeps its instance until its grant is released, so a new attempt releases
    // it first.
    const earlier = proposer.instanceOf(resource);
    if (earlier !== undefined && earlier.operation.kind === OperationKind.none)
      this.#letGo(FleaseGrant.of(earlier), now);
    const instance = proposer.acquire(resource, ttlMs, timeoutMs, !contended, now, waiting);
    FleaseGrant.of(instance).request = pending;
    taker.onCancel = () => {
      proposer.cancel(instance);
      this.#runner.poke();
    };
    if (taker.cancelled) taker.onCancel();
    this.#runner.poke();
  }

  #promisedMs(resource: string, { mono }: Reading): number {
    if (this.#promisedUntilMono.size === 0) return 0;
    const leftMs = (this.#promisedUntilMono.get(resource) ?? 0) - mono;
    if (leftMs <= 0) this.#promisedUntilMono.delete(resource);
    return leftMs;
  }

  /** Why no attempt begins at present. */
  #whyNotNow(now: Reading): AttemptOutcome | undefined {
    // Members refuse an observer's requests anyway; this check reports the mistake at once, at its source.
    if (this.#driver.role === "observer")
      return { kind: "failed", error: new LeaseholdError("PERMISSION_DENIED", observes) };
    const { fault } = this.#peer;
    if (fault !== undefined) return { kind: "failed", error: new LeaseholdError("CLOCK_SKEW", fault) };
    if (this.#renewals.isLate(now.mono) && this.#reachesMajority)
      return { kind: "failed", error: renewsTooLate(), retryInMs: busyRetryMs };
    return undefined;
  }

  /**
   * Deferred: a taker may make further requests, and the proposer must not be called in the middle of a step.
   */
  #settleLater(pending: PendingAttempt, outcome: AttemptOutcome): void {
    pending.outcome = outcome;
    if (this.#ended.push(pending) === 1) void settled.then(this.#reportOutcomes);
  }

  /** Notifies each caller whose attempt has ended, in the order of ending. */
  readonly #reportOutcomes = (): void => {
    const ended = this.#ended;
    this.#ended = [];
    for (const { taker, data, outcome } of ended) {
      if (data !== undefined && outcome!.kind === "granted")
        this.#publishData(data, FleaseGrant.of(outcome!.grant));
      taker.settled(outcome!);
    }
  };

  #publishData(data: string, grant: FleaseGrant): void {
    if (this.#keeps(grant)) this.#driver.publisher?.publish(grant.resource, grant.token, data);
  }

  /** Whether the grant has not been released. */
  #keeps(grant: FleaseGrant): boolean {
    return this.#peer.proposer.instances.at(grant.index) === grant;
  }

  renew(grant: Grant, ttlMs: number): Promise<boolean> {
    return new Promise((renewed) => this.beginRenewal(grant, ttlMs, { renewed }));
  }

  beginRenewal(grant: Grant, ttlMs: number, taker: RenewalTaker): void {
    const held = FleaseGrant.of(grant);
    const renewal = new RequestedRenewal(held, taker, ttlMs);
    held.request = renewal;
    if (!this.#keeps(held) || this.#closed) {
      this.#settleRenewal(held, false);
      return;
    }
    this.#renewals.add(renewal, held.holdExpiresMonoMs, ttlMs);
    this.#wantRenewals();
  }

  forgoRenewal(grant: Grant): void {
    const held = FleaseGrant.of(grant);
    const { renewal } = held;
    if (renewal !== undefined && this.#renewals.remove(renewal)) this.#settleRenewal(held, false);
  }

  /** Like `#settleLater`. */
  #settleRenewal(held: FleaseGrant, extended: boolean): void {
    const { renewal } = held;
    if (renewal === undefined) return;
    held.request = undefined;
    renewal.extended = extended;
    if (this.#renewed.push(renewal) === 1) void settled.then(this.#reportRenewals);
  }

  readonly #reportRenewals = (): void => {
    const ended = this.#renewed;
    this.#renewed = [];
    for (const { taker, extended } of ended) taker.renewed(extended);
  };

  /**
   * Deferred: the proposer must not be called in the middle of a step, and of one turn's renewals those whose
   * leases end first go first.
   */
  #wantRenewals(): void {
    if (this.#renewalsPutOff || !this.#renewals.mayBegin) return;
    this.#renewalsPutOff = true;
    void settled.then(this.#beginRenewals);
  }

  /** Begins as many as one turn may. The rest wait until the answers received so far have been read. */
  readonly #beginRenewals = (): void => {
    const peer = this.#peer;
    const { world } = this.#runner;
    // One reading for all. The requested leases count from it, so an old reading requests less.
    const now = this.#runner.now();
    for (let begun = 0; begun < renewalsPerTurn; begun += 1) {
      const renewal = this.#renewals.next();
      if (renewal === undefined) break;
      const instance = renewal.grant;
      const leftMs = instance.holdExpiresMonoMs - now.mono;
      if (leftMs < peer.proposer.pacing.roundTripMs && this.#renewals.isCrowded)
        this.renewed(instance, false);
      else peer.proposer.renew(instance, renewal.ttlMs, now);
    }
    this.#runner.poke();
    // Still deferred while they begin: a renewal that ends at once must not start a second round within this
    // one.
    this.#renewalsPutOff = this.#renewals.mayBegin;
    if (this.#renewalsPutOff) world.timers.after(0, this.#beginRenewals);
  };

  release(grant: Grant, isUnused = false): Promise<void> | undefined {
    const held = FleaseGrant.of(grant);
    if (this.#keeps(held)) {
      if (!isUnused && held.runsOut) this.#notePromise(held);
      // An old reading is enough: it only chooses which former ballots the release names, and an old one
      // names more.
      this.#letGo(held, this.#runner.reading);
      this.#runner.poke();
    }
    return undefined;
  }

  /**
   * When a grant ends without another renewal, on the wall clock and on the steady clock, and whether its
   * lease was broken; undefined if it has already ended.
   */
  validity(grant: Grant): { expiresWallMs: number; expiresMonoMs: number; broken: boolean } | undefined {
    const { holding, holdExpiresWallMs, holdExpiresMonoMs, barred } = FleaseGrant.of(grant);
    if (!holding) return undefined;
    return { expiresWallMs: holdExpiresWallMs, expiresMonoMs: holdExpiresMonoMs, broken: barred };
  }

  /** The data with which other threads make the same readings as this peer. */
  clockStart(epoch: number): ClockStart {
    const monoMs = this.#runner.now().mono;
    return { epoch, monoMs, carriedMs: this.#peer.clock.carriedMs(monoMs) };
  }

  /** Another thread has found that the clocks disagree: everything held is lost. */
  distrustClocks(): void {
    this.#peer.clock.distrust();
  }

  /**
   * A check ended the grant early. Its release notifies nobody, because the program may still rely on the
   * time it was granted.
   */
  letRunOut(grant: Grant): void {
    const held = FleaseGrant.of(grant);
    if (this.#keeps(held)) held.letRunOut();
  }

  async query(resource: string, timeoutMs: number): Promise<HolderHint> {
    const peer = this.#peer;
    const answer = await new Promise<Parameters<Parameters<typeof peer.queries.ask>[4]>[0]>((done) => {
      peer.queries.ask(resource, peer.proposer.owner, timeoutMs, this.#runner.now(), done);
      this.#runner.poke();
    });
    if (!answer.answered) return { state: "unknown" };
    if (!answer.held) return { state: "free", confirmed: true };
    const { owner, token, until, confirmed } = answer;
    const dataMs = Math.min(timeoutMs, peer.settings.rpcTimeoutMs);
    const data = await this.inspection.dataOf(resource, BigInt(token), dataMs);
    const remainingMs = leftMs(until, this.#runner.now().wall, peer.settings.ttlMaxMs);
    return { state: "held", confirmed, holder: owner, token: BigInt(token), remainingMs, ...data };
  }

  list(prefix: string, timeoutMs: number, onIncomplete?: (why: string) => void): Promise<ResourceHint[]> {
    return this.inspection.list(prefix, timeoutMs, onIncomplete);
  }

  /** Pending operations end now, because nothing wakes the peer from here on. */
  close(): Promise<void> {
    this.#closed = true;
    this.inspection.close();
    this.#peer.queries.closeAll(this.#runner.now());
    for (const instance of this.#peer.proposer.instances.values()) {
      const grant = FleaseGrant.of(instance);
      this.forgoRenewal(grant);
      this.#settleRenewal(grant, false);
    }
    return this.#driver.close();
  }

  #notePromise({ resource, holdExpiresMonoMs }: FleaseGrant): void {
    const { reading } = this.#runner;
    for (const other of this.#promisedUntilMono.keys()) this.#promisedMs(other, reading);
    this.#promisedUntilMono.set(resource, holdExpiresMonoMs);
  }

  #letGo(grant: FleaseGrant, now: Reading): void {
    this.forgoRenewal(grant);
    this.#driver.publisher?.forget(grant.resource);
    this.#peer.proposer.release(grant, now);
  }

  /** A member reports a request for a resource that is held here. */
  releaseRequested(request: ReleaseRequest): void {
    this.#events?.releaseRequested?.(request);
  }

  // The peer calls these in the middle of a step: none may call it back

  readonly instance: InstanceMaker<FleaseGrant> = (index, resource, cell, page) =>
    new FleaseGrant(index, resource, cell, page, this.#runner);

  /** An acceptor reports that the resource was released. */
  hinted(resource: string): boolean {
    return this.#events?.hint(resource) ?? false;
  }

  acquired(grant: FleaseGrant): void {
    this.#settle(grant, { kind: "granted", grant });
  }

  refused(grant: FleaseGrant, holder: string, retryInMs: number): void {
    this.#settle(grant, { kind: "held", holder, retryInMs });
  }

  failed(grant: FleaseGrant, why: AttemptFailure, fullBy: string): void {
    const error = this.#errorFor(why, fullBy);
    this.#settle(grant, {
      kind: "failed",
      error,
      ...(why === "busy" && { retryInMs: busyRetryMs }),
    });
  }

  renewed(grant: FleaseGrant, longer: boolean): void {
    this.#renewals.ended();
    this.#settleRenewal(grant, longer);
    this.#wantRenewals();
  }

  lapsed(grant: FleaseGrant, why: Lapse): void {
    grant.lossReason = why === "barred" ? "broken" : why;
    this.forgoRenewal(grant);
    const error = foundLost(grant.resource, grant.lossReason);
    // Deferred: the waist will answer with a release, and the proposer must not be called in the middle of a
    // step.
    void Promise.resolve().then(() => this.#events?.lost(grant, error));
  }

  #settle(grant: FleaseGrant, outcome: AttemptOutcome): void {
    const pending = grant.request;
    if (!(pending instanceof PendingAttempt)) return;
    grant.request = undefined;
    pending.taker.onCancel = undefined;
    this.#settleLater(pending, outcome);
  }

  get #reachesMajority(): boolean {
    return this.#driver.reachable() >= majorityOf(votersOf(this.#peer.views.view).length);
  }

  #whyNoQuorum(): string {
    const total = votersOf(this.#peer.views.view).length;
    const connected = this.#driver.reachable();
    const silent =
      connected >= majorityOf(total) ? "; those that have just started are silent for a while" : "";
    return `no majority of the ${total} members answered in time: ${connected} are connected${silent}`;
  }

  #whyFull(fullBy: string): string {
    const ours = nodeIdOf(this.holder);
    if (fullBy === ours)
      return `the members keep as many resources for ${JSON.stringify(ours)} as they may: release some, or use fewer names`;
    return `the members keep as many resources as they may, the most of them for ${JSON.stringify(fullBy)}`;
  }

  #errorFor(why: AttemptFailure, fullBy: string): LeaseholdError {
    switch (why) {
      case "no-quorum":
        return this.#driver.refusal() ?? new LeaseholdError("NO_QUORUM", this.#whyNoQuorum());
      case "out-of-bounds":
        return new LeaseholdError(
          "CLOCK_SKEW",
          "the members refuse this participant's times: its clock and theirs are too far apart",
        );
      case "full":
        return new LeaseholdError("RESOURCES_FULL", this.#whyFull(fullBy));
      case "busy":
        return new LeaseholdError("OVERLOADED", "the members have more to do than they can do in time");
      case "contention":
        return new LeaseholdError("TIMEOUT", "others competed for the resource all the time");
      case "cancelled":
        return new LeaseholdError("TIMEOUT", "the attempt was ended by its caller");
      case "barred":
        return new LeaseholdError("LEASE_BROKEN");
      case "clock-fault":
        return new LeaseholdError("CLOCK_SKEW", this.#peer.fault);
    }
  }
}
