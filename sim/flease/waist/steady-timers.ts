import { Deadlines } from "../../../src/lease/deadlines.js";
import type { DeadlineItem } from "../../../src/lease/deadlines.js";
import type { Timer, Timers } from "../../../src/lease/ports.js";
import { EventCode, Task } from "../../kit/events.js";
import type { SimNode } from "../node.js";
import type { World } from "../world.js";

interface SteadyTimer extends DeadlineItem, Timer {
  readonly run: () => void;
}

/**
 * The timers of one process. They wait by its steady clock, so that they are late when it runs slowly, and stand still
 * when it does. Each that falls due is an event of its own: what waits for it continues before the next.
 */
export class SteadyTimers implements Timers {
  readonly #world: World;
  readonly #node: SimNode;
  readonly #deadlines = new Deadlines<SteadyTimer>();
  readonly #wake: Task;

  constructor(world: World, node: SimNode) {
    this.#world = world;
    this.#node = node;
    this.#wake = new Task(EventCode.timer, () => this.#onWake());
  }

  after(delayMs: number, run: () => void): Timer {
    const timer: SteadyTimer = {
      dueMs: 0,
      heapIndex: -1,
      heapSequence: 0,
      run,
      cancel: () => {
        if (this.#deadlines.cancel(timer)) this.rearm();
      },
    };
    this.#deadlines.schedule(timer, this.#node.clock.monoAt(this.#world.nowMs) + Math.max(0, delayMs));
    this.#world.stir(this.#node);
    this.rearm();
    return timer;
  }

  /** Sets the next wake-up, by the steady clock as it runs now. */
  rearm(): void {
    const world = this.#world;
    const dueMs = this.#node.clock.timeOfMono(this.#deadlines.nextDueMs());
    if (dueMs === Infinity) world.cancel(this.#wake);
    else world.scheduleAt(this.#wake, Math.max(world.nowMs, dueMs, this.#node.pausedUntilMs));
  }

  /** The process has died. */
  end(): void {
    this.#world.cancel(this.#wake);
  }

  #onWake(): void {
    if (this.#node.deferred(this.#wake)) return;
    this.#node.step(undefined, (now) => this.#deadlines.popDue(now.mono)?.run());
    this.rearm();
  }
}
