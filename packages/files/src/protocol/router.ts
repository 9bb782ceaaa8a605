import {
  unlessAborted,
  unwatchAbort,
  watchAbort,
  Pauses,
  timeLeft,
  LeaseholdError,
  type Lease,
} from "leasehold/common";
import { FileUncertainError } from "../uncertain.js";
import { isLeaseholdError, TenureOver } from "./failures.js";
import { noBytes, type Operation, type OperationAny, type OperationResult } from "./messages.js";
import type { NamesOperation, NamesResult } from "../names/types.js";
import { namesKey } from "./keys.js";
import { NamesPrimary } from "./names-primary.js";
import { Primary } from "./primary.js";
import type { Outcome, Serving } from "./serving.js";
import { Silence } from "./silence.js";
import type { Tenure } from "./tenure.js";
import type { NodeParts } from "./settings.js";

/** The name of the lease of a file's primary. */
export const leaseOf = (path: string): string => `files/${path}`;

/** How long a node waits for another node's lease to end before it looks for the primary again, ms. */
const waitMs = 300;

/** A healthy primary is found within this time, ms. */
const lookMs = 50;

/** The longest pause after an attempt that found no primary, ms. */
const pauseMsMax = 50;

/** The most files whose primary is this node; beyond that, the least recently used are dropped. */
const primariesMax = 50_000;
/** The most cached locations of primaries. */
const hintsMax = 50_000;

/** Counters for humans. */
export interface RouterCounters {
  reads: number;
  writes: number;
  forwarded: number;
  resets: number;
}

/** One operation for the file's primary. */
interface Call {
  readonly path: string;
  readonly operation: OperationAny;
  readonly bytes: Uint8Array;
  /** ms */
  readonly left: () => number;
  readonly signal: AbortSignal | undefined;
  /** A primary has received the operation and may carry it out. */
  isGiven: boolean;
}

/** Routes each operation to its file's primary. If there is none, this node becomes the primary. */
export class Router {
  readonly counters: RouterCounters = { reads: 0, writes: 0, forwarded: 0, resets: 0 };
  readonly #parts: NodeParts;
  readonly #primaries = new Map<string, Serving>();
  /** Files whose primary this node is about to become. */
  readonly #beginning = new Map<string, Promise<Serving | undefined>>();
  readonly #resetting = new Set<Tenure>();
  readonly #hints = new Map<string, string>();
  readonly #closing = new AbortController();
  readonly #pauses: Pauses;
  readonly #silence: Silence;

  constructor(parts: NodeParts) {
    this.#parts = parts;
    this.#silence = new Silence(parts);
    this.#pauses = new Pauses(parts.world.timers);
  }

  get tenures(): Tenure[] {
    return [...this.#primaries.values()].map(({ tenure }) => tenure);
  }

  /** The primary serving at this node, if any. */
  primaryHere(path: string): Serving | undefined {
    const primary = this.#primaries.get(path);
    if (primary?.tenure.isOver !== true) return primary;
    this.#primaries.delete(path);
    return undefined;
  }

  /**
   * Carries out an operation for another node. `undefined`: the primary is not here, and nothing was done.
   */
  async operateHere(
    path: string,
    operation: OperationAny,
    bytes: Uint8Array,
    timeoutMs: number,
    begins = false,
  ): Promise<Outcome | undefined> {
    if (begins && this.primaryHere(path) === undefined) {
      const { clock } = this.#parts.world;
      const left = timeLeft(() => clock.monotonicMs(), timeoutMs);
      await this.#pauses.within(this.#beginning.get(path) ?? this.#begin(path, left), left());
    }
    const primary = this.primaryHere(path);
    if (primary === undefined) return undefined;
    try {
      return await primary.run(operation, bytes, timeoutMs);
    } catch (error) {
      if (error instanceof TenureOver) return undefined;
      throw error;
    }
  }

  /** Carries out an operation, wherever its primary is. */
  async operate(
    path: string,
    operation: Operation,
    bytes: Uint8Array = noBytes,
    signal?: AbortSignal,
  ): Promise<Outcome<OperationResult>> {
    if (operation.kind === "read") this.counters.reads += 1;
    else if (operation.kind !== "stat" && operation.kind !== "open") this.counters.writes += 1;
    return (await this.#operate(path, operation, bytes, signal)) as Outcome<OperationResult>;
  }

  /** Carries out an operation on names, at their primary. */
  async names(operation: NamesOperation, signal?: AbortSignal): Promise<NamesResult> {
    return (await this.#operate(namesKey, operation, noBytes, signal)).result as NamesResult;
  }

  /** Ends the primary at this node, so that its file can be collected. */
  async forget(path: string): Promise<void> {
    const primary = this.#primaries.get(path);
    this.#primaries.delete(path);
    await primary?.tenure.end();
  }

  async #operate(
    path: string,
    operation: OperationAny,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<Outcome> {
    const { clock } = this.#parts.world;
    const left = timeLeft(() => clock.monotonicMs(), this.#parts.settings.operationTimeoutMs);
    const call: Call = { path, operation, bytes, left, signal, isGiven: false };
    let failure: unknown;
    do {
      signal?.throwIfAborted();
      this.#assertOpen();
      call.isGiven = false;
      try {
        const outcome = await unlessAborted(this.#try(call), signal);
        if (outcome === "primary known") continue;
        if (outcome !== undefined) return outcome;
      } catch (error) {
        if (signal?.aborted === true) throw givenUp(call, error);
        if (!isLeaseholdError(error, "NO_QUORUM", "TIMEOUT", "UNREACHABLE", "LEASE_LOST")) throw error;
        failure = error;
      }
      await this.#pauses.pause(Math.min(left(), this.#parts.world.random.next() * pauseMsMax));
    } while (left() > 0);
    throw new LeaseholdError("NO_QUORUM", `no node became the primary of ${path} in time`, {
      cause: failure,
    });
  }

  /** Ends primaries that no longer serve or have long been idle. */
  tidy(): void {
    const nowMs = this.#parts.world.clock.monotonicMs();
    for (const [path, primary] of this.#primaries) {
      const { tenure } = primary;
      const isUnused = primary.isIdle && nowMs - tenure.usedAtMs > this.#parts.settings.idleMs;
      if (!tenure.isOver && !isUnused) continue;
      this.#primaries.delete(path);
      void tenure.end();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new LeaseholdError("CLOSED"));
    this.#pauses.end();
    this.#silence.close();
    await Promise.allSettled([...this.#resetting].map((tenure) => tenure.end()));
    await Promise.allSettled(this.#beginning.values());
    await Promise.allSettled(this.tenures.map((tenure) => tenure.end()));
    this.#primaries.clear();
  }

  /** Makes one attempt. `undefined`: nothing was done, and a retry may succeed. */
  async #try(call: Call): Promise<Outcome | "primary known" | undefined> {
    const { path, operation, bytes, left } = call;
    if (this.primaryHere(path) !== undefined) {
      call.isGiven = true;
      return this.operateHere(path, operation, bytes, left());
    }
    const hint = this.#hints.get(path);
    if (hint !== undefined) return this.#forward(hint, call);
    if (!this.#mayBePrimary) return this.#tryFromOutside(call);
    const beginning = this.#beginning.get(path) ?? this.#begin(path, left);
    const primary = await this.#pauses.within(beginning, left());
    return primary !== undefined || this.#hints.has(path) ? "primary known" : undefined;
  }

  /** Only nodes with copies can be primaries. */
  get #mayBePrimary(): boolean {
    return this.#parts.nodes.includes(this.#parts.node);
  }

  async #tryFromOutside(call: Call): Promise<Outcome | "primary known" | undefined> {
    const { path, left } = call;
    const { nodes, world } = this.#parts;
    if (await this.#findPrimary(path, left)) return "primary known";
    const node = nodes[Math.floor(world.random.next() * nodes.length)];
    return node === undefined ? undefined : this.#forward(node, call, true);
  }

  async #forward(node: string, call: Call, begins = false): Promise<Outcome | undefined> {
    const { path, operation, bytes, left } = call;
    this.counters.forwarded += 1;
    call.isGiven = true;
    const silent = new AbortController();
    // The change may have been made. This call waits for that primary; other calls look for the next one.
    const watched = this.#silence.watch(node, () => {
      if (this.#hints.get(path) === node) this.#hints.delete(path);
      if (!changes(operation)) silent.abort();
    });
    const passOn = (): void => silent.abort();
    watchAbort(call.signal, passOn);
    try {
      const timeoutMs = left();
      // The primary times out first, so that it can report the outcome.
      const grace = Math.min(this.#parts.settings.answerTimeoutMs, timeoutMs / 4);
      const ask = { path, operation, timeoutMs: timeoutMs - grace, begins };
      const { answer, body } = await this.#parts.peers.ask(node, "operate", ask, {
        body: bytes,
        timeoutMs,
        signal: silent.signal,
      });
      if (answer.result !== null) {
        if (begins) this.#remember(path, node);
        return { result: answer.result, bytes: body };
      }
      this.#hints.delete(path);
      return undefined;
    } catch (error) {
      if (silent.signal.aborted && !changes(operation)) return undefined;
      const isTimeout = isLeaseholdError(error, "TIMEOUT");
      if (isTimeout || isLeaseholdError(error, "UNREACHABLE")) this.#hints.delete(path);
      if (isLeaseholdError(error, "UNREACHABLE")) return undefined;
      // The node is stopping, but a change may have begun before that.
      if (isLeaseholdError(error, "CLOSED") && !changes(operation)) {
        this.#hints.delete(path);
        return undefined;
      }
      if (!isTimeout || !changes(operation)) throw error;
      throw new FileUncertainError(`the primary of ${path}, ${node}, has not answered`, false, {
        cause: error,
      });
    } finally {
      watched();
      unwatchAbort(call.signal, passOn);
    }
  }

  /** Becomes the primary if the lease can be acquired soon. */
  #begin(path: string, left: () => number): Promise<Serving | undefined> {
    const beginning = this.#becomePrimary(path, left).finally(() => this.#beginning.delete(path));
    this.#beginning.set(path, beginning);
    return beginning;
  }

  async #becomePrimary(path: string, left: () => number): Promise<Serving | undefined> {
    const lease = await this.#takeLease(path, left).catch(passing);
    if (lease === undefined) return undefined;
    const primary =
      path === namesKey ? new NamesPrimary(this.#parts, lease) : new Primary(this.#parts, lease, path);
    this.counters.resets += 1;
    this.#resetting.add(primary.tenure);
    try {
      this.#assertOpen();
      await primary.begin();
      this.#assertOpen();
    } catch (error) {
      await primary.tenure.end();
      // The failure concerns the reset's own changes rather than the caller's, or a node was restarted
      // meanwhile.
      if (isLeaseholdError(error, "FILE_UNCERTAIN", "STORE_FORGOTTEN"))
        throw new LeaseholdError("NO_QUORUM", error.message, { cause: error });
      throw error;
    } finally {
      this.#resetting.delete(primary.tenure);
    }
    this.#hints.delete(path);
    this.#makeRoom();
    this.#primaries.set(path, primary);
    return primary;
  }

  async #takeLease(path: string, left: () => number): Promise<Lease | undefined> {
    const { leases, settings } = this.#parts;
    // The disk is empty and may have replaced another one.
    if (!this.#parts.isJoined() || !this.#mayBePrimary) {
      await this.#findPrimary(path, left);
      return undefined;
    }
    const free = await leases.tryAcquire(leaseOf(path), { ttl: settings.ttlMs });
    if (free !== undefined) return free;
    const found = new AbortController();
    const looking = this.#findPrimary(path, left).then((isFound) => {
      if (isFound) found.abort();
      return isFound;
    });
    if ((await this.#pauses.within(looking, lookMs)) === true) return undefined;
    // The holder isn't serving: it is starting, or it is dead or silent and its lease will expire.
    try {
      const wait = Math.min(waitMs, left());
      const signal = AbortSignal.any([this.#closing.signal, found.signal]);
      return await leases.acquire(leaseOf(path), { ttl: settings.ttlMs, wait, signal });
    } catch (error) {
      if ((await looking) || isLeaseholdError(error, "TIMEOUT", "LEASE_HELD")) return undefined;
      throw error;
    }
  }

  /** Looks for a node that is the primary, and caches the result. */
  async #findPrimary(path: string, left: () => number): Promise<boolean> {
    const { nodes, node: self, peers } = this.#parts;
    const timeoutMs = Math.min(left(), waitMs);
    const others = nodes.filter((node) => node !== self);
    try {
      const primary = await Promise.any(
        others.map(async (node) => {
          const { answer } = await peers.ask(node, "primary", { path }, { timeoutMs });
          if (!answer.isHere) throw new TenureOver();
          return node;
        }),
      );
      this.#remember(path, primary);
      return true;
    } catch {
      return false;
    }
  }

  #remember(path: string, node: string): void {
    if (this.#hints.size >= hintsMax) this.#hints.clear();
    this.#hints.set(path, node);
  }

  #makeRoom(): void {
    if (this.#primaries.size < primariesMax) return;
    const unused = [...this.#primaries].find(([, { isIdle }]) => isIdle);
    if (unused === undefined) throw new LeaseholdError("OVERLOADED", "too many files are in use");
    this.#primaries.delete(unused[0]);
    void unused[1].tenure.end();
  }

  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw new LeaseholdError("CLOSED");
  }
}

const reading: ReadonlySet<OperationAny["kind"]> = new Set<OperationAny["kind"]>([
  "read",
  "stat",
  "sync",
  "lookup",
  "files",
  "children",
  "begin",
  "end",
  "unnamed",
  "contents",
  "placement",
  "list",
  "changes",
  "news",
  "complete",
]);
const changes = ({ kind }: OperationAny): boolean => !reading.has(kind);

/** The error of a call that its caller stopped waiting for. */
function givenUp({ path, operation, isGiven }: Call, error: unknown): unknown {
  if (!isGiven || !changes(operation)) return error;
  return new FileUncertainError(`${path}: the caller stopped waiting for the change`, false, {
    cause: error,
  });
}

/** Overload of the leases' members is temporary, so a retry is worthwhile. */
function passing(error: unknown): never {
  if (!isLeaseholdError(error, "OVERLOADED")) throw error;
  throw new LeaseholdError("NO_QUORUM", error.message, { cause: error });
}
