import type { Event } from "leasehold/etcd/gen/etcd/kv_pb.js";
import { keyOf } from "@leasehold/core/inner/state/keys.js";
import type { CoreWorld } from "../world/world.js";

/**
 * A watch receives each change of its keys once, in order of revision, whole revisions at a time, without a
 * gap.
 */
export class Watches {
  readonly #world: CoreWorld;

  constructor(world: CoreWorld) {
    this.#world = world;
  }

  /** @returns the next revision */
  heard(prefix: string, next: number, events: readonly Event[]): number {
    if (events.length === 0) return next;
    const last = Number(events.at(-1)!.kv!.modRevision);
    const expected = this.#changes(prefix, next, last);
    const got = events.map(({ kv, type }) => `${keyOf(kv!.key)}@${kv!.modRevision}/${type}`);
    if (got.join() !== expected.join())
      this.#world.report("watch", `from ${next} on came ${got.join()}, and not ${expected.join()}`);
    return last + 1;
  }

  /** Clients resume there: nothing before it may be missing. @returns the next revision */
  toldOfProgress(prefix: string, next: number, revision: number): number {
    const untold = this.#changes(prefix, next, revision);
    if (untold.length > 0) this.#world.report("watch", `progress up to ${revision} without ${untold.join()}`);
    return Math.max(next, revision + 1);
  }

  /** Nothing is missing at the end. */
  upToDate(prefix: string, next: number): void {
    const missing = this.#changes(prefix, next, Infinity);
    if (missing.length > 0) this.#world.report("watch", `never came, from ${next} on: ${missing.join()}`);
  }

  #changes(prefix: string, from: number, to: number): string[] {
    return this.#world.reference.changes
      .filter(({ key, modified }) => modified >= from && modified <= to && key.startsWith(prefix))
      .map(({ key, modified, version }) => `${key}@${modified}/${version === 0 ? 1 : 0}`);
  }
}
