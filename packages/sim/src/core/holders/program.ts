import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { LeaseManager } from "leasehold/inner/lease/manager/lease-manager.js";
import type { AcquireOptions, Lease, LeaseSet } from "leasehold/inner/lease/types.js";
import type { SimParty } from "../../kit/party.js";
import type { CoreForm } from "../world/plan.js";
import type { Claim, Hold } from "./claims.js";
import { nameOf, several, type HoldersStage } from "./stage.js";

/** The limit of a counted lease, which changes from call to call. */
const limitMax = 3;

const readerRate = 0.7;
const tryRate = 0.3;
const abortRate = 0.15;
/** The share of leases that are not renewed. */
const lapseRate = 0.15;

/** Limits on waiting and holding, in leases. */
const patienceLeases = 6;
const holdLeases = 1.5;

/**
 * Without faults no program holds for longer than this, in leases. Readers are an exception: one of them
 * always holds.
 */
const calmHoldLeases = 0.4;
const calmReadLeases = 1.2;

/** The number of waits in the queue at the end: one caller always waits for longer than its TTL. */
const calmLineTurns = 3;

/** Without faults a caller enters the queue within this time. */
const arrivalMsMax = 6_000;

interface Wanted {
  readonly hold: Hold;
  readonly options: AcquireOptions;
}

interface LookedClaim extends Claim {
  /** The remaining time, ms. */
  look(): number;
}

/** Takes leases in all forms, looks at them while it works, and releases them in time, late or never. */
export class Program {
  readonly #stage: HoldersStage;
  readonly #party: SimParty;
  readonly #leases: LeaseManager;
  readonly #index: number;

  constructor(stage: HoldersStage, party: SimParty, leases: LeaseManager, index: number) {
    this.#stage = stage;
    this.#party = party;
    this.#leases = leases;
    this.#index = index;
  }

  async live(): Promise<void> {
    const { plan, random } = this.#stage;
    while (!this.#stage.isCalm) {
      await this.#party.sleep(random.exponential(plan.thinkMs));
      await this.#turn(random.pick(plan.forms), this.#anyhow(), holdLeases * plan.ttlMs);
    }
    await this.#lastTurns();
  }

  /** After the last fault every program must be served, even a writer while readers hold all the time. */
  async #lastTurns(): Promise<void> {
    const { plan, served, turns } = this.#stage;
    const wait = { wait: Infinity };
    const holdMs = calmHoldLeases * plan.ttlMs;
    const reads = this.#index === 0 && plan.forms.includes("shared");
    const isWanted = () => reads && this.#stage.writersAreLeft;
    while (isWanted()) await this.#turn("shared", { ...wait, mode: "shared" }, calmReadLeases * plan.ttlMs);
    for (const turn of turns) {
      const who = `${this.#party.index}/${this.#index} ${turn}`;
      if (turn === "writer" && reads) continue;
      const form = turn === "writer" ? "shared" : turn;
      // The readers must not hold for longer than the wait, however short its own lease is.
      const mode: AcquireOptions = turn === "writer" ? { mode: "exclusive", autoRenew: false } : {};
      for (let left = turn === "fair" ? calmLineTurns : 1; left > 0 && !served.has(who);)
        if (await this.#turn(form, { ...wait, ...mode }, holdMs)) left -= 1;
      served.add(who);
    }
  }

  /** Random options, now and then with a cancellation or a short wait. */
  #anyhow(): AcquireOptions {
    const { counters } = this.#stage.world;
    const { plan, random } = this.#stage;
    const mind = new AbortController();
    if (random.chance(abortRate)) {
      counters.aborts += 1;
      this.#party.timers.after(random.exponential(plan.ttlMs), () =>
        mind.abort(new LeaseholdError("TIMEOUT")),
      );
    }
    return {
      signal: mind.signal,
      autoRenew: !random.chance(lapseRate),
      wait: random.chance(tryRate) ? 0 : 1 + random.next() * patienceLeases * plan.ttlMs,
    };
  }

  /** @returns whether it acquired */
  async #turn(form: CoreForm, given: AcquireOptions, holdMs: number): Promise<boolean> {
    if (form === "several") return this.#takeSeveral(given, holdMs);
    const { hold, options } = this.#wanted(form, given);
    const call = {};
    if (form === "fair") this.#comes(call);
    try {
      const lease = await this.#party.alive(this.#leases.acquire(nameOf[form], options));
      if (form === "fair") this.#isServed(call, lease);
      await this.#use([this.#claimOf(lease, hold, options.limit, lease)], lease, holdMs);
      return true;
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      return false;
    } finally {
      this.#stage.inLine.delete(call);
    }
  }

  #wanted(form: CoreForm, given: AcquireOptions): Wanted {
    const { plan, random } = this.#stage;
    const options = { ttl: plan.ttlMs, ...given };
    if (form === "counted")
      return { hold: "counted", options: { ...options, limit: 1 + random.below(limitMax) } };
    if (form === "fair") {
      const wait = options.wait === 0 ? plan.ttlMs : options.wait;
      return { hold: "fair", options: { ...options, wait, fair: true } };
    }
    if (form !== "shared") return { hold: form, options };
    const mode = options.mode ?? (random.chance(readerRate) ? "shared" : "exclusive");
    if (mode === "shared") return { hold: "reader", options: { ...options, mode } };
    // A call without a mode is a writer.
    return { hold: "writer", options: { ...options, mode: undefined } };
  }

  async #takeSeveral(given: AcquireOptions, holdMs: number): Promise<boolean> {
    const { plan, random } = this.#stage;
    const shuffled = [...several].sort(() => random.next() - 0.5);
    const names = shuffled.slice(0, 1 + random.below(several.length));
    const { wait, ...options } = given;
    try {
      const all = this.#leases.acquireAll(names, { ttl: plan.ttlMs, wait, ...options });
      const set = await this.#party.alive(all);
      const claims = set.leases.map((lease) => this.#claimOf(lease, "several", 1, set));
      await this.#use(claims, set, holdMs);
      return true;
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      return false;
    }
  }

  /**
   * The claim is as of the last look: a look by the checker would end the lease of a stopped process. The
   * program uses its steady clock, which the system clock's steps do not affect.
   */
  #claimOf(
    { resource, slot, token }: Lease,
    hold: Hold,
    limit: number | undefined,
    held: Pick<Lease, "remaining">,
  ): LookedClaim {
    const party = this.#party;
    let looked = { at: party.look(), leftMs: 0 };
    return {
      process: party.writer,
      resource,
      hold,
      token,
      slot,
      limit: limit ?? 1,
      remainingMs: () => Math.max(0, looked.leftMs - (party.look().monotonicMs - looked.at.monotonicMs)),
      look: () => {
        looked = { at: party.look(), leftMs: held.remaining() };
        return looked.leftMs;
      },
    };
  }

  async #use(claims: readonly LookedClaim[], lease: Lease | LeaseSet, holdMs: number): Promise<void> {
    const { claims: judge, random, world } = this.#stage;
    const look = () => claims.map((claim) => claim.look()).every((leftMs) => leftMs > 0);
    if (!look()) return;
    for (const claim of claims) {
      world.counters[`${claim.hold}Tenures`] += 1;
      judge.begin(claim);
    }
    for (let looks = random.below(4); looks >= 0; looks -= 1) {
      await this.#party.sleep((random.next() * holdMs) / 2);
      if (!look()) {
        world.counters.leasesLost += 1;
        break;
      }
      for (const claim of claims) judge.look(claim);
    }
    for (const claim of claims) judge.end(claim);
    await this.#party.alive(lease.release());
  }

  #comes(call: object): void {
    const { inLine, settledFromMs, world } = this.#stage;
    // A dead process may still reach this line; its call then never ends.
    if (this.#party.isAlive && world.nowMs > settledFromMs) inLine.set(call, world.nowMs);
  }

  #isServed(call: object, { token }: Lease): void {
    const { inLine, lines, world } = this.#stage;
    lines.began(token, this.#party.writer);
    const cameMs = inLine.get(call);
    if (cameMs === undefined) return;
    for (const [other, otherMs] of inLine)
      if (other !== call && otherMs + arrivalMsMax < cameMs)
        world.report("line", `${this.#party.writer} is served, and another has waited for longer`);
  }
}
