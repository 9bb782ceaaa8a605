import { formatDuration } from "../lease/duration.js";
import { least } from "../common/lists.js";
import type { Timer, Timers } from "../common/ports.js";
import { PrefixView } from "../lease/prefix-view.js";
import type { Inspection, Watching } from "../lease/provider.js";
import type { Explanation, HolderAction, ResourceHint } from "../lease/types.js";
import { cutOff, describeTenure, type MemoryGround, type MemoryTenure } from "./memory-ground.js";
import type { ProcessSwitch } from "./process-switch.js";

/** The interval at which a disconnected participant checks its connection. */
const retryMs = 100;

/** One watch. */
interface MemoryWatch {
  readonly prefix: string;
  readonly view: PrefixView;
}

/** Watches and queries on a {@link MemoryGround}. */
export class MemoryInspection implements Inspection {
  readonly #ground: MemoryGround;
  readonly #holder: string;
  readonly #timers: Timers;
  readonly #process: ProcessSwitch;
  readonly #watches = new Set<MemoryWatch>();
  #timer: Timer | undefined;
  #isLooking = false;

  constructor(ground: MemoryGround, holder: string, timers: Timers, process: ProcessSwitch) {
    this.#ground = ground;
    this.#holder = holder;
    this.#timers = timers;
    this.#process = process;
  }

  watch(prefix: string, report: (hint: ResourceHint) => void): Watching {
    const watch = { prefix, view: new PrefixView(report) };
    this.#watches.add(watch);
    this.look();
    return {
      stop: () => {
        this.#watches.delete(watch);
        watch.view.stop();
        if (this.#watches.size === 0) this.close();
      },
    };
  }

  /** Schedules one report to the watches, with all changes up to then. */
  look(): void {
    if (this.#watches.size === 0 || this.#isLooking) return;
    this.#isLooking = true;
    this.#wakeIn(0);
  }

  close(): void {
    this.#timer?.cancel();
    this.#isLooking = false;
    this.#watches.clear();
  }

  async explain(resource: string, timeoutMs: number): Promise<Explanation> {
    const common = { resource, waiting: this.#ground.waiting(resource), members: [] };
    if (!(await this.#process.reaches(this.#timers, timeoutMs))) {
      const reasons = [`${this.#holder} is cut off from its cluster`];
      return { ...common, state: "unknown", quorum: false, broken: false, reasons };
    }
    const tenure = this.#ground.find(resource);
    if (tenure === undefined) {
      return {
        ...common,
        state: "free",
        confirmed: true,
        quorum: true,
        broken: false,
        reasons: ["it is free"],
      };
    }
    const until = `${tenure.broken ? "at the latest" : "unless it is renewed,"} in ${formatDuration(tenure.leftMs())}`;
    const reasons = [`${tenure.owner.holder} holds it; its lease expires ${until}`];
    return { ...common, ...describeTenure(tenure), quorum: true, broken: tenure.broken, reasons };
  }

  async requestRelease(resource: string, timeoutMs: number): Promise<HolderAction> {
    return this.#act(await this.#find(resource, timeoutMs), false);
  }

  async breakLease(resource: string, timeoutMs: number): Promise<HolderAction> {
    const tenure = await this.#find(resource, timeoutMs);
    if (tenure !== undefined) tenure.broken = true;
    return this.#act(tenure, true);
  }

  #act(tenure: MemoryTenure | undefined, broken: boolean): HolderAction {
    if (tenure === undefined) return { done: false };
    tenure.owner.onAsked({ resource: tenure.resource, by: this.#holder, broken });
    return {
      done: true,
      holder: tenure.owner.holder,
      token: tenure.token,
      remainingMs: tenure.leftMs(),
    };
  }

  async #find(resource: string, timeoutMs: number): Promise<MemoryTenure | undefined> {
    if (await this.#process.reaches(this.#timers, timeoutMs)) return this.#ground.find(resource);
    throw cutOff(this.#holder);
  }

  #wakeIn(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#timers.after(delayMs, () => this.#reportAll());
  }

  #reportAll(): void {
    this.#isLooking = false;
    if (!this.#process.isConnected) {
      this.#wakeIn(retryMs);
      return;
    }
    let nextEndMs = Infinity;
    for (const watch of this.#watches) {
      const hints = this.#ground.list(watch.prefix);
      nextEndMs = least([nextEndMs, ...hints.map(({ remainingMs = Infinity }) => remainingMs)]);
      watch.view.list(hints);
    }
    // Only polling detects an expiry, or that a participant is connected again.
    if (this.#watches.size > 0) this.#wakeIn(Math.min(nextEndMs, 10 * retryMs));
  }
}
