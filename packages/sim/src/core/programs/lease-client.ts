import { CoreError } from "@leasehold/core/inner/state/errors.js";
import { relied } from "leasehold/inner/common/clock-rates.js";
import type { LeaseLife } from "../checkers/lease-life.js";
import type { Refreshes } from "../checkers/refreshes.js";
import type { CoreWorld, Outcome } from "../world/world.js";
import { grant, keepAlive, put, register, revoke } from "../world/requests.js";

/** When a client stops refreshing, because it has died or is cut off. */
const lifeMeanMs = 12_000;
const lateRate = 0.2;
const ttlSecondsMin = 2;
const ttlSecondsMax = 6;

interface Held {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly key: string;
  /** Its key was written with this lease, at this revision. */
  keyRevision: bigint | undefined;
  /** The number of cores when the key was written. */
  cores: number;
  readonly diesMs: number;
}

/** Takes a lease, attaches a key, refreshes at a third of the TTL, and eventually dies. */
export class LeaseClient {
  readonly #world: CoreWorld;
  readonly #life: LeaseLife;
  readonly #refreshes: Refreshes;
  readonly #name: string;
  /** The rate of its steady clock. */
  readonly #rate: number;
  #count = 0;

  constructor(world: CoreWorld, life: LeaseLife, refreshes: Refreshes, name: string, rate: number) {
    this.#world = world;
    this.#life = life;
    this.#refreshes = refreshes;
    this.#name = name;
    this.#rate = rate;
  }

  begin(): void {
    const { plan, random } = this.#world;
    if (this.#world.nowMs > plan.stableFromMs) return;
    this.#world.after(random.exponential(plan.thinkMs), () => this.#grant());
  }

  #grant(): void {
    const { counters, random, servers } = this.#world;
    const ttlSeconds = ttlSecondsMin + random.below(ttlSecondsMax - ttlSecondsMin + 1);
    const sentMs = this.#world.nowMs;
    this.#count += 1;
    // Now and then two clients want the same name at once.
    const request = random.chance(0.4) ? register(`name${random.below(2)}`, ttlSeconds) : grant(ttlSeconds);
    this.#world.call(random.pick(servers), request, (outcome) => {
      if (!isAnswer(outcome) || outcome.$typeName !== "etcdserverpb.LeaseGrantResponse") {
        this.begin();
        return;
      }
      counters.grants += 1;
      const ttlMs = Number(outcome.TTL) * 1_000;
      this.#promised(outcome.ID, sentMs, ttlMs);
      const key = `lease/${this.#name}.${this.#count}`;
      const diesMs = this.#world.nowMs + random.exponential(lifeMeanMs);
      this.#hang({ id: outcome.ID, ttlMs, key, keyRevision: undefined, cores: this.#world.cores, diesMs });
    });
  }

  /** It relies on its lease in the same way as `packages/leasehold/src/etcd`. */
  #promised(id: bigint, sentMs: number, ttlMs: number): void {
    this.#life.promised(id, sentMs, ttlMs);
    this.#life.relied(id, sentMs + relied(ttlMs, this.#world.plan.clockRateError) / this.#rate);
  }

  #hang(held: Held): void {
    const { random, servers } = this.#world;
    this.#world.call(random.pick(servers), put(held.key, this.#name, held.id), (outcome) => {
      if (isAnswer(outcome)) held.keyRevision = outcome.header?.revision;
      held.cores = this.#world.cores;
      this.#goOn(held);
    });
  }

  /** Refreshes mostly in time; now and then just before it is too late, or just after. */
  #goOn(held: Held): void {
    const { random } = this.#world;
    const isLate = random.chance(lateRate);
    this.#world.after(held.ttlMs * (isLate ? random.between(0.9, 1.2) : 1 / 3), () => this.#refresh(held));
  }

  #refresh(held: Held): void {
    const { counters, nowMs, plan, random, servers } = this.#world;
    if (nowMs > Math.min(held.diesMs, plan.stableFromMs)) {
      this.#die(held);
      return;
    }
    const { term } = this.#world.reference;
    this.#world.call(random.pick(servers), keepAlive(held.id), (outcome) => {
      if (!isAnswer(outcome) || outcome.$typeName !== "etcdserverpb.LeaseKeepAliveResponse") {
        this.#goOn(held);
        return;
      }
      if (outcome.TTL <= 0n) {
        this.#life.denied(held.id);
        this.begin();
        return;
      }
      counters.refreshes += 1;
      this.#promised(held.id, nowMs, Number(outcome.TTL) * 1_000);
      this.#refreshes.acknowledged(held.key, this.#keptRevision(held), outcome.header!, term);
      this.#goOn(held);
    });
  }

  /** Undefined also if the core with the key is lost, and its successor is older than the key. */
  #keptRevision({ cores, keyRevision = 0n }: Held): bigint | undefined {
    return keyRevision > 0n && keyRevision <= this.#world.keptSince(cores) ? keyRevision : undefined;
  }

  #die(held: Held): void {
    const { random, servers } = this.#world;
    if (random.chance(0.3)) this.#world.call(random.pick(servers), revoke(held.id), () => this.begin());
    else this.begin();
  }
}

function isAnswer(outcome: Outcome): outcome is Exclude<Outcome, CoreError | "lost"> {
  return outcome !== "lost" && !(outcome instanceof CoreError);
}
