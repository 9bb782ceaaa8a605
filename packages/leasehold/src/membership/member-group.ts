import { watchAbort } from "../common/abort-watch.js";
import type { Timer, World } from "../common/ports.js";
import { LeaseholdError } from "../lease/errors.js";
import { ChangeReader } from "./change-reader.js";
import type { Presence, Registration, Registry } from "./registry.js";
import type { Group, Member, MemberChange } from "./types.js";

/** The largest group that a process can follow; larger ones should be split. */
const membersMax = 10_000;

/** Concurrent readers of a group's changes: each remembers the state of every member. */
const readersMax = 16;

/** One member and, while it is missing, the end of its grace period. */
interface Seen {
  member: Member;
  grace: Timer | undefined;
}

/** A group as its registry reports it. */
export class MemberGroup implements Group {
  readonly group: string;
  readonly #registry: Registry;
  readonly #world: World;
  readonly #graceMs: number;
  readonly #seen = new Map<string, Seen>();
  readonly #readers = new Set<ChangeReader>();
  readonly #stop = new AbortController();
  /** Called when the group has been left. */
  onEnd: () => void = () => undefined;
  readonly #followed: Promise<void>;
  #kept: Promise<void> | undefined;
  #settled: Promise<void> = Promise.resolve();
  #isIn = false;
  #hasEnded = false;
  #error: unknown;

  constructor(group: string, registry: Registry, world: World, graceMs: number) {
    this.group = group;
    this.#registry = registry;
    this.#world = world;
    this.#graceMs = graceMs;
    this.#followed = registry
      .follow(this.#stop.signal, (presence) => this.#apply(presence))
      .catch((error: unknown) => this.#end(error))
      .finally(() => this.#end());
  }

  get isIn(): boolean {
    return this.#isIn;
  }

  get members(): readonly Member[] {
    return [...this.#seen.values()].map(({ member }) => member).toSorted(byName);
  }

  /** Resolves when this process has been registered. Call it once. */
  enter(registration: Registration): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#kept = this.#registry
        .keep(registration, this.#stop.signal, (isIn) => {
          this.#isIn = isIn;
          if (isIn) resolve();
        })
        .catch((error: unknown) => {
          this.#end(error);
          reject(error);
        })
        .finally(() => (this.#isIn = false));
      // If the view has ended, its reason explains why the process can no longer be registered.
      watchAbort(this.#stop.signal, () => reject(this.#error ?? new LeaseholdError("CLOSED")));
    });
  }

  changes(): AsyncIterableIterator<MemberChange, undefined> {
    if (this.#readers.size >= readersMax)
      throw new LeaseholdError(
        "TOO_MANY_WAITERS",
        `this group's changes already have ${readersMax} open readers`,
      );
    const find = (name: string) => this.#seen.get(name)?.member;
    const reader = new ChangeReader(find, () => this.#readers.delete(reader), this.#world.keepAlive);
    this.#readers.add(reader);
    for (const name of this.#seen.keys()) reader.mark(name);
    if (this.#hasEnded) reader.end(this.#error);
    return reader;
  }

  leave(): Promise<void> {
    this.#end();
    return this.#settled;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  #apply({ name, isThere, token, data }: Presence): void {
    if (this.#hasEnded) return;
    const seen = this.#seen.get(name);
    if (isThere) {
      if (seen === undefined && this.#seen.size >= membersMax) {
        const all = `more than ${membersMax} are in ${JSON.stringify(this.group)}`;
        this.#end(new LeaseholdError("WATCH_TOO_WIDE", all));
        return;
      }
      seen?.grace?.cancel();
      const member = { name, token, isMissing: false, ...(data !== undefined && { data }) };
      this.#seen.set(name, { member, grace: undefined });
      this.#mark(name);
    } else if (seen !== undefined && seen.grace === undefined) {
      if (this.#graceMs === 0) {
        this.#remove(name);
        return;
      }
      seen.member = { ...seen.member, isMissing: true };
      seen.grace = this.#world.timers.after(this.#graceMs, () => this.#remove(name));
    }
  }

  #remove(name: string): void {
    this.#seen.delete(name);
    this.#mark(name);
  }

  #mark(name: string): void {
    for (const reader of this.#readers) reader.mark(name);
  }

  #end(error?: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#error = error;
    this.#stop.abort(error ?? new LeaseholdError("CLOSED"));
    for (const { grace } of this.#seen.values()) grace?.cancel();
    this.#seen.clear();
    for (const reader of this.#readers) reader.end(error);
    this.onEnd();
    this.#settled = this.#close();
  }

  async #close(): Promise<void> {
    await Promise.all([this.#kept, this.#followed]);
    this.#registry.close();
  }
}

function byName(one: Member, other: Member): number {
  return one.name < other.name ? -1 : 1;
}
