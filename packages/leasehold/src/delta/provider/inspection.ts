import { formatDuration } from "../../lease/duration.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Timer, Timers } from "../../common/ports.js";
import type { Inspection, Watching } from "../../lease/provider.js";
import type { Explanation, HolderAction, MemberView, ResourceHint } from "../../lease/types.js";
import { PrefixView } from "../../lease/prefix-view.js";
import { WatchSet } from "../../lease/watch-set.js";
import type { BothClocks } from "../../common/both-clocks.js";
import type { Protocol } from "../effects.js";
import type { Farm } from "../farm/farm.js";
import { noMajority } from "../failures.js";
import { holderHintOf, resourceHintOf } from "../holder-view.js";
import type { LeaseProtocol, HolderView, StoreView } from "../lease-protocol.js";

/** Minimum interval of a watch's listings, ms: each lists everything below its prefix at every store. */
const watchMsMin = 100;

/** Timeout of one listing of a watch. */
const watchTimeoutMs = 30_000;

export interface DeltaInspectionParts {
  readonly farm: Farm;
  readonly protocol: LeaseProtocol;
  readonly pollMs: number;
  /** The requesting participant. */
  readonly holder: string;
  readonly timers: Timers;
  run<Result>(protocol: Protocol<Result>): Promise<Result>;
  list(prefix: string, timeoutMs: number): Promise<ResourceHint[]>;
  now(): BothClocks;
}

/** Watches and queries on a farm. Stores don't report changes, so a watch polls a list. */
export class DeltaInspection implements Inspection {
  readonly #parts: DeltaInspectionParts;
  readonly #watches = new WatchSet();

  constructor(parts: DeltaInspectionParts) {
    this.#parts = parts;
  }

  watch(
    prefix: string,
    report: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
  ): Watching {
    return this.#watches.add(new PollingWatch(this.#parts, prefix, report, failed));
  }

  async explain(resource: string, timeoutMs: number): Promise<Explanation> {
    const { run, protocol, farm } = this.#parts;
    const holderView = await run(protocol.look(resource, timeoutMs));
    const answered = holderView.stores.filter(({ kind }) => kind === "answered").length;
    const explanation = {
      ...resourceHintOf(resource, holderView),
      quorum: answered >= farm.majority,
      broken: holderView.record?.asked?.broken === true,
      // A waiter leaves no trace in a store, so waiters are unknown.
      waiting: 0,
      members: holderView.stores.map((store, index) => this.#viewOf(store, index)),
    };
    return { ...explanation, reasons: reasonsOf(explanation, farm.size, answered) };
  }

  async requestRelease(resource: string, timeoutMs: number): Promise<HolderAction> {
    const { holderView, stores } = await this.#ask(resource, false, timeoutMs);
    return actionOf(holderView, stores > 0);
  }

  async breakLease(resource: string, timeoutMs: number): Promise<HolderAction> {
    const { size, majority } = this.#parts.farm;
    const { holderView, stores } = await this.#ask(resource, true, timeoutMs);
    return actionOf(holderView, stores > size - majority);
  }

  close(): void {
    this.#watches.close();
  }

  async #ask(resource: string, broken: boolean, timeoutMs: number) {
    const { run, protocol, farm, holder } = this.#parts;
    if (protocol.ask === undefined) throw new LeaseholdError("UNSUPPORTED");
    const result = await run(protocol.ask(resource, { by: holder, broken }, timeoutMs));
    if (result.holderView.state !== "unknown") return result;
    const errors = result.holderView.stores.map((store) =>
      store.kind === "silent" ? store.error : undefined,
    );
    const answered = errors.filter((error) => error === undefined).length;
    throw noMajority(farm.size, farm.majority, answered, errors);
  }

  #viewOf(holderView: StoreView, store: number): MemberView {
    const { farm } = this.#parts;
    const name = farm.nameOf(store);
    const common = { id: name, address: name };
    if (holderView.kind === "silent") {
      const isRecovering = farm.stateOf(store) === "recovering";
      // The store's name is already in `id`.
      const reason = holderView.error.message.replace(`${name}: `, "");
      if (!isRecovering) return { ...common, state: "unreachable", reason };
      const readyInMs = farm.readyInMs(store, this.#parts.now().monotonicMs);
      return { ...common, state: "recovering", reason, readyInMs };
    }
    const { record, live, remainingMs } = holderView;
    if (record === undefined) return { ...common, state: "ready" };
    const leaseState = record.state === "free" ? "released" : live ? "live" : "over";
    const lease = { holder: record.writer, token: record.epoch, state: leaseState, remainingMs } as const;
    return { ...common, state: "ready", lease };
  }
}

/** One watch: lists its prefix periodically. */
class PollingWatch implements Watching {
  readonly #parts: DeltaInspectionParts;
  readonly #prefix: string;
  readonly #view: PrefixView;
  readonly #failed: (error: LeaseholdError) => void;
  #timer: Timer | undefined;

  constructor(
    parts: DeltaInspectionParts,
    prefix: string,
    report: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
  ) {
    this.#parts = parts;
    this.#prefix = prefix;
    this.#failed = failed;
    this.#view = new PrefixView(report);
    this.#lookIn(0);
  }

  stop(): void {
    this.#view.stop();
    this.#timer?.cancel();
  }

  #lookIn(delayMs: number): void {
    this.#timer = this.#parts.timers.after(delayMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    try {
      this.#view.list(await this.#parts.list(this.#prefix, watchTimeoutMs));
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      if (error.code === "WATCH_TOO_WIDE" && !this.#view.isStopped) {
        this.stop();
        this.#failed(error);
      }
      // Otherwise too few stores answered to know what is held. Nothing is reported, and the next listing may
      // succeed.
    }
    if (!this.#view.isStopped) this.#lookIn(Math.max(watchMsMin, this.#parts.pollMs));
  }
}

function actionOf(holderView: HolderView, done: boolean): HolderAction {
  const { holder, token, remainingMs } = holderHintOf(holderView);
  if (holder === undefined || token === undefined) return { done: false };
  return { done, holder, token, ...(remainingMs !== undefined && { remainingMs }) };
}

/** Why a resource can't be acquired, or that it can, as sentences. */
function reasonsOf(explanation: Omit<Explanation, "reasons">, size: number, answered: number): string[] {
  const { state, holder, label, remainingMs = 0, broken, confirmed, quorum, members } = explanation;
  const who = label === undefined ? `${holder}` : `${holder} (${label})`;
  const left = formatDuration(Math.round(remainingMs));
  const reasons: string[] = [];
  if (state === "free") reasons.push("it is free");
  else if (state === "unknown") reasons.push("the holder is unknown");
  else if (broken) reasons.push(`held by ${who}, whose lease was broken: it expires in at most ${left}`);
  else if (confirmed !== true)
    reasons.push(
      `a minority of the stores has a record of ${who}: an attempt in flight, or the remains of one`,
    );
  else reasons.push(`held by ${who}, which expires in at most ${left} unless it is renewed`);
  if (!quorum) reasons.push(`no quorum: ${answered} of the ${size} stores answer`);
  for (const { id, state: how, reason, readyInMs } of members) {
    if (how === "recovering")
      reasons.push(`${id} takes part in ${formatDuration(Math.round(readyInMs ?? 0))}`);
    else if (how !== "ready") reasons.push(`${id} cannot be asked: ${reason ?? "it does not answer"}`);
  }
  return reasons;
}
