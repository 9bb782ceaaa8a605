import { holdIsValid } from "leasehold/inner/flease/protocol/expiry.js";
import type { MachineNode } from "./stage/node.js";
import type { Stage } from "./stage/stage.js";

/**
 * The sleep of one machine, and what its clocks do while its node does not look. The assumptions exclude one
 * case (section 1), so the world avoids it: a change of the clocks that no reading can detect. This happens
 * when all wall clocks step back by exactly the time that a faulty steady clock lost, or when a machine wakes
 * up with such a wall clock.
 */
export class Sleep {
  /** The machine is suspended: nothing happens there, and its steady clock stands still. */
  isOn = false;
  readonly #world: Stage;
  readonly #node: MachineNode;
  #stepsBackSeen = 0;

  constructor(world: Stage, node: MachineNode) {
    this.#world = world;
    this.#node = node;
  }

  begin(forMs: number): void {
    const world = this.#world;
    const node = this.#node;
    world.story?.(`${node.name} is suspended for ${Math.round(forMs)} ms`);
    world.counters.suspensions += 1;
    this.isOn = true;
    node.pausedUntilMs = world.nowMs + forMs;
    node.clock.setRate(world.nowMs, 0);
  }

  /** If the clocks were read at this moment they would agree. */
  clocksSeemToAgree(): boolean {
    const { nowMs, settings } = this.#world;
    const { peer, clock } = this.#node;
    return peer!.clock.apartMs(clock.monoAt(nowMs), clock.wallAt(nowMs)) <= settings.maxClockSkewMs;
  }

  /** The excluded case has occurred at this moment. */
  get deceives(): boolean {
    const { assumptions, sharedWall } = this.#world;
    const { wall, rate } = assumptions;
    const steppedUnseen = !rate && sharedWall.stepsBack !== this.#stepsBackSeen;
    const unseen = wall ? steppedUnseen : rate && this.isOn;
    return unseen && this.clocksSeemToAgree();
  }

  /** Whether a lease of the node is valid by its clocks at this moment. */
  reliesOn(until: number, end: number): boolean {
    return !this.deceives && holdIsValid(until, end, this.#node.look());
  }

  /**
   * Called before the node reads its clocks. Turns an undetectable fault into a detectable one by a larger
   * error of the steady clock.
   */
  look(): void {
    const { settings, sharedWall } = this.#world;
    if (this.#node.peer !== undefined && this.deceives)
      this.#node.clock.jump(2 * settings.maxClockSkewMs + 1);
    this.#stepsBackSeen = sharedWall.stepsBack;
  }
}
