import { formatDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import type { Clock, Timers } from "../common/ports.js";
import type { Inspection, Watching } from "../lease/provider.js";
import type { Explanation, HolderAction, ResourceHint } from "../lease/types.js";
import { WatchSet } from "../lease/watch-set.js";
import { type CallLimits, type CoreClient, type Entry, sharedLimits } from "./core-client.js";
import { hintOf, lifeMsMax } from "./hints.js";
import type { Keys } from "./keys.js";
import { PrefixWatch } from "./prefix-watch.js";
import { type Asked, decodeRecord, encodeRecord, tokenOf } from "./record.js";

/** Other clients rarely change a record at the same time: a few retries are enough. */
const replacementsMax = 5;

export interface CoreInspectionParts {
  readonly core: CoreClient;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly keys: Keys;
  /** The name of this participant. */
  readonly holder: string;
}

/** Watches and requests on a consistent core. */
export class CoreInspection implements Inspection {
  readonly #parts: CoreInspectionParts;
  readonly #watches = new WatchSet();

  constructor(parts: CoreInspectionParts) {
    this.#parts = parts;
  }

  watch(prefix: string, told: (hint: ResourceHint) => void): Watching {
    return this.#watches.add(new PrefixWatch(this.#parts, prefix, told));
  }

  async explain(resource: string, timeoutMs: number): Promise<Explanation> {
    const { core, keys } = this.#parts;
    const common = { resource, waiting: 0, members: [], broken: false };
    const limits = this.#limits(timeoutMs);
    let entry: Entry | undefined;
    try {
      ({ entry } = await core.read(keys.of(resource), limits));
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      return { ...common, state: "unknown", quorum: false, reasons: [error.message] };
    }
    if (entry === undefined)
      return { ...common, state: "free", confirmed: true, quorum: true, reasons: ["it is free"] };
    const hint = hintOf(entry, await lifeMsMax(core, entry, limits));
    const broken = decodeRecord(entry.value)?.asked?.broken === true;
    return { ...common, ...hint, quorum: true, broken, reasons: [reasonOf(entry, hint.remainingMs, broken)] };
  }

  requestRelease(resource: string, timeoutMs: number): Promise<HolderAction> {
    return this.#ask(resource, false, this.#limits(timeoutMs));
  }

  breakLease(resource: string, timeoutMs: number): Promise<HolderAction> {
    return this.#ask(resource, true, this.#limits(timeoutMs));
  }

  close(): void {
    this.#watches.close();
  }

  #limits(timeoutMs: number): CallLimits {
    return sharedLimits({ timeoutMs }, this.#parts.clock);
  }

  /**
   * Writes the request into the holder's record. The key keeps its lease and its create revision, so the
   * tenure continues. The holder sees the request by its watch, or at the latest by the read after each
   * refresh, which then does not count.
   */
  async #ask(resource: string, broken: boolean, limits: CallLimits): Promise<HolderAction> {
    const { core, keys, holder } = this.#parts;
    let { entry } = await core.read(keys.of(resource), limits);
    const token = entry === undefined ? undefined : tokenIn(entry);
    for (let tries = 0; tries < replacementsMax && entry !== undefined; tries += 1) {
      // The request was meant for another tenure.
      if (tokenIn(entry) !== token) return { done: false };
      const record = decodeRecord(entry.value);
      if (record === undefined) return { done: false, token: tokenIn(entry) };
      if (isAsked(record.asked, { by: holder, broken })) return this.#done(entry, limits);
      const asked = { by: holder, broken: broken || record.asked?.broken === true };
      ({ entry } = await core.replace(entry, encodeRecord({ ...record, asked }), limits));
    }
    return { done: false, ...(entry !== undefined && token !== undefined && { token }) };
  }

  async #done(entry: Entry, limits: CallLimits): Promise<HolderAction> {
    const lifeMs = await lifeMsMax(this.#parts.core, entry, limits);
    const { state: _state, ...whom } = hintOf(entry, lifeMs);
    return { done: true, ...whom };
  }
}

function tokenIn(entry: Entry): bigint {
  return tokenOf(entry, decodeRecord(entry.value));
}

/** Whether the record already has this request, or one that goes further. */
function isAsked(standing: Asked | undefined, { by, broken }: Asked): boolean {
  if (standing === undefined) return false;
  return broken ? standing.broken && standing.by === by : standing.broken || standing.by === by;
}

function reasonOf(entry: Entry, remainingMs: number | undefined, broken: boolean): string {
  const record = decodeRecord(entry.value);
  if (record === undefined) return `its key ${entry.key} was not written by Leasehold`;
  const who = record.label === "" ? record.holder : `${record.holder} (${record.label})`;
  const left = formatDuration(Math.round(remainingMs ?? 0));
  return broken
    ? `held by ${who}, whose lease was broken: it expires in at most ${left}`
    : `held by ${who}, whose lease expires in at most ${left} unless it is renewed`;
}
