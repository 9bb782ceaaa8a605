import type { BothClocks } from "../../../packages/leasehold/src/common/both-clocks.js";
import { readBothClocks } from "../../../packages/leasehold/src/common/both-clocks.js";
import type { Timer, World } from "../../../packages/leasehold/src/common/ports.js";
import { ConditionalLease } from "../../../packages/leasehold/src/delta/conditional/conditional-lease.js";
import { Driver } from "../../../packages/leasehold/src/delta/driver.js";
import type {
  LeaseProtocol,
  ProtocolEnvironment,
} from "../../../packages/leasehold/src/delta/lease-protocol.js";
import { PaperLease } from "../../../packages/leasehold/src/delta/paper/paper-lease.js";
import type { Store, StoreAnswer, StoreRequest } from "../../../packages/leasehold/src/delta/store.js";
import type { Tenure } from "../../../packages/leasehold/src/delta/tenure.js";
import type { VirtualWorld } from "../../../packages/leasehold/src/testing/virtual-world.js";

/** Called with each answer of a store when the process gets it. */
export type StoreListener = (
  process: string,
  store: number,
  request: StoreRequest,
  answer: StoreAnswer,
) => void;

/**
 * One process of a script, with clocks that may run too fast or too slow. While it is stopped, its clocks go
 * on; timers and answers of stores reach it when it continues.
 */
export class ScriptProcess {
  readonly name: string;
  readonly driver: Driver;
  readonly protocol: LeaseProtocol;
  readonly #world: World;
  #isStopped = false;
  #isDead = false;
  #late: (() => void)[] = [];
  tenure: Tenure | undefined;

  constructor(
    base: VirtualWorld,
    rate: number,
    environment: ProtocolEnvironment,
    stores: readonly Store[],
    listener: StoreListener,
  ) {
    this.name = environment.writer;
    const startWallMs = base.clock.wallMs();
    const steadyMs = () => base.clock.monotonicMs() * rate;
    this.#world = {
      clock: { monotonicMs: steadyMs, wallMs: () => startWallMs + steadyMs() },
      timers: { after: (delayMs, run) => this.#after(base, delayMs / rate, run) },
      random: base.random,
    };
    const traced = stores.map((store, index) => this.#traced(store, index, listener));
    this.driver = new Driver(traced, this.#world);
    const isAtomic = stores.every(({ traits }) => traits.kind === "atomic");
    const Lease = isAtomic ? ConditionalLease : PaperLease;
    this.protocol = new Lease(environment) as LeaseProtocol;
  }

  now(): BothClocks {
    return readBothClocks(this.#world.clock);
  }

  /** Whether its program would find the resource held if it asked now. A dead process doesn't ask. */
  get isHolding(): boolean {
    return !this.#isDead && this.tenure !== undefined && this.tenure.remainingMs(this.now()) > 0;
  }

  stop(): void {
    this.#isStopped = true;
  }

  continue(): void {
    this.#isStopped = false;
    for (const run of this.#late.splice(0)) run();
  }

  /** Messages already sent stay sent; the process gets no answers any more. */
  crash(): void {
    this.#isDead = this.#isStopped = true;
  }

  #deliver(run: () => void): void {
    if (this.#isStopped) this.#late.push(run);
    else run();
  }

  #after(base: VirtualWorld, delayMs: number, run: () => void): Timer {
    let isCancelled = false;
    const timer = base.timers.after(delayMs, () =>
      this.#deliver(() => {
        if (!isCancelled) run();
      }),
    );
    const cancel = () => {
      isCancelled = true;
      timer.cancel();
    };
    return { cancel };
  }

  #traced(store: Store, index: number, listener: StoreListener): Store {
    return {
      traits: store.traits,
      perform: async (request) => {
        const answer = await store.perform(request);
        await new Promise<void>((resolve) => {
          this.#deliver(resolve);
        });
        listener(this.name, index, request, answer);
        return answer;
      },
      close: () => store.close(),
    };
  }
}
