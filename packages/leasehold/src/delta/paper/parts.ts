import { keptAlive } from "../../common/keep-alive.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Timer } from "../../common/ports.js";
import type { Driver } from "../driver.js";
import type { BothClocks } from "../../common/both-clocks.js";
import type { Protocol } from "../effects.js";
import type { Farm } from "../farm/farm.js";
import type { ProtocolEnvironment } from "../lease-protocol.js";
import { Consensus } from "./consensus.js";
import { LeaderOracle } from "./leader-oracle.js";
import { RankedRegister } from "./ranked-register.js";
import { type Codec, RegularRegister } from "./register.js";
import { ReaderSite } from "./shared.js";
import { Nonces, Site, type SiteOptions } from "./site.js";
import type { Stamp } from "../record/stamp.js";

/** Looks at the farm per validity period of one look. */
const looksPerLease = 4;

/** Separates the parts' registers from others: the leases of `open` on the same stores follow other rules. */
const prefix = "paper/";

/** A farm on which the parts of the paper run separately. */
export class FarmParts {
  readonly #driver: Driver;
  readonly #farm: Farm;
  readonly #environment: ProtocolEnvironment;
  readonly #nonces = new Nonces();
  #timer: Timer | undefined;

  constructor(driver: Driver, farm: Farm, environment: ProtocolEnvironment) {
    this.#driver = driver;
    this.#farm = farm;
    this.#environment = environment;
    this.#tend();
  }

  /** Name and incarnation of this process: the writer of its records. */
  get writer(): string {
    return this.#environment.writer;
  }

  /** A regular register for the program's own timestamped values (section 3). */
  register<Value extends Stamp>(name: string, codec: Codec<Value>): RegularRegister<Value> {
    const { farm, settings } = this.#environment;
    return new RegularRegister({ farm, name: prefix + name, codec, delayMs: settings.delayMs });
  }

  /**
   * This process's contender for a resource, with leases of `leaseMs` milliseconds: more than 0, at most the
   * address's `ttlMax`, which is the default.
   *
   * @throws LeaseholdError `INVALID_DURATION` for any other `leaseMs`.
   */
  site(resource: string, leaseMs = this.#environment.settings.leaseMsMax): Site {
    return new Site(this.#siteOptions(resource, leaseMs));
  }

  /**
   * The same for a reader, which shares the resource with other readers (section 10). Throws as {@link site}
   * does.
   */
  readerSite(resource: string, leaseMs = this.#environment.settings.leaseMsMax): ReaderSite {
    return new ReaderSite(this.#siteOptions(resource, leaseMs));
  }

  /** Fig. 7: `run(oracle.run())` takes part, `oracle.isLeader(now())` reads the state. */
  leaderOracle(resource: string): LeaderOracle {
    return new LeaderOracle(this.site(resource));
  }

  /** All stores have to compare and set. */
  rankedRegister(name: string): RankedRegister {
    const { farm, settings } = this.#environment;
    return new RankedRegister({ farm, name: prefix + name, timeoutMs: settings.delayMs });
  }

  /** Fig. 8. All stores have to compare and set. */
  consensus(name: string, isLeader: (now: BothClocks) => boolean): Consensus {
    const { farm, settings, writer } = this.#environment;
    const { delayMs } = settings;
    return new Consensus({
      farm,
      name: prefix + name,
      timeoutMs: delayMs,
      writer,
      nonces: this.#nonces,
      isLeader,
      pollMs: delayMs,
    });
  }

  /**
   * Runs an algorithm to its end. The signal ends its waits, and the algorithm withdraws any write that it
   * may have left.
   */
  async run<Result>(algorithm: Protocol<Result>, signal?: AbortSignal): Promise<Result> {
    const cancellation = {
      cancelled: signal?.aborted ?? false,
      onCancel: undefined as (() => void) | undefined,
    };
    const cancel = () => {
      cancellation.cancelled = true;
      cancellation.onCancel?.();
    };
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const running = () => this.#driver.run(algorithm, { filter: this.#farm, cancellation });
      return await keptAlive(this.#driver.world.keepAlive, running);
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** A reading of both clocks. */
  now(): BothClocks {
    return this.#driver.now();
  }

  /** Cancels all algorithms, and closes the stores. Held leases expire by themselves. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#farm.leave(this.#driver);
    await this.#driver.close();
  }

  /** The farm's longest lease determines how long a store that has forgotten has to wait. */
  #siteOptions(resource: string, leaseMs: number): SiteOptions {
    const environment = this.#environment;
    const { leaseMsMax } = environment.settings;
    if (!(leaseMs > 0 && leaseMs <= leaseMsMax))
      throw new LeaseholdError(
        "INVALID_DURATION",
        `a lease must be longer than 0 ms and at most the farm's ${leaseMsMax} ms; this one is ${leaseMs} ms`,
      );
    return { environment, resource: prefix + resource, leaseMs, nonces: this.#nonces };
  }

  #tend(): void {
    void this.#farm.tend(this.#driver);
    const everyMs = this.#environment.settings.leaseMsMax / looksPerLease;
    this.#timer = this.#driver.world.timers.after(everyMs, () => this.#tend());
  }
}
