import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import type { AttemptFailure } from "leasehold/inner/flease/protocol/proposer-ports.js";
import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import { EventCode, Task } from "../kit/events.js";
import type { ProgramNode, InstanceProgram } from "./stage/node.js";
import type { Stage } from "./stage/stage.js";

/**
 * The delay between an event and the program's reaction, because it learns of the event in the middle of a
 * step.
 */
const soonMs = 0.05;

/** A failed renewal is repeated after this share of the lease. */
const renewAgainAfter = 0.1;

/** Some tenures are much shorter than their lease: this share of them, down to this share of it. */
const briefTenures = 0.3;
const briefest = 0.001;

/** After the last fault programs hold for only a few renewals, so that the resource changes hands. */
const calmReleaseRate = 0.4;

/**
 * A program in one node that wants one resource. As the workload decides, it acquires, renews, releases,
 * cancels, is late or forgets. It makes only calls that a program may make.
 */
export class Agent implements InstanceProgram {
  readonly resource: string;
  readonly #world: Stage;
  readonly #node: ProgramNode;
  readonly #turn: Task;
  #state: "idle" | "acquiring" | "holding" | "lost" = "idle";
  #instance: Instance | undefined;
  #fast = false;
  #ttlMs = 0;
  #servedInCalm = false;
  /** Waits to be notified of a release, and then tries again. */
  #waits = false;

  constructor(world: Stage, node: ProgramNode, resource: string) {
    this.#world = world;
    this.#node = node;
    this.resource = resource;
    this.#turn = new Task(EventCode.agent, () => this.#onTurn());
  }

  /** The node has started. */
  begin(): void {
    this.#state = "idle";
    this.#instance = undefined;
    this.#think();
  }

  /** The node has crashed. */
  end(): void {
    this.#world.cancel(this.#turn);
  }

  #onTurn(): void {
    if (this.#node.deferred(this.#turn)) return;
    this.#node.step(this.resource, (now) => {
      if (this.#state === "idle") this.#acquire(now);
      else if (this.#state === "acquiring") this.#cancel();
      else if (this.#state === "holding") this.#hold(now);
      else this.#release(now);
    });
  }

  #acquire(now: Reading): void {
    const { random, workload, settings, calm } = this.#world;
    const { proposer, fault } = this.#node.peer!;
    if (fault !== undefined || proposer.instanceOf(this.resource) !== undefined) {
      this.#think();
      return;
    }
    this.#ttlMs = this.#drawTtlMs();
    const patienceMs = calm ? 2 * settings.ttlMaxMs : random.next() * workload.patienceMaxMs;
    this.#fast = random.chance(workload.fastRate);
    this.#waits = calm || random.chance(workload.waitingRate);
    this.#state = "acquiring";
    const instance = proposer.acquire(this.resource, this.#ttlMs, patienceMs, this.#fast, now, this.#waits);
    this.#instance = instance;
    this.#node.assign(instance, this);
    if (!calm && random.chance(workload.cancelRate)) this.#again(random.exponential(settings.rpcTimeoutMs));
  }

  #cancel(): void {
    this.#world.counters.cancellations += 1;
    this.#node.peer!.proposer.cancel(this.#instance!);
  }

  #hold(now: Reading): void {
    const { random, workload, calm, settings } = this.#world;
    const { proposer } = this.#node.peer!;
    const instance = this.#instance!;
    const releaseRate = calm ? Math.max(calmReleaseRate, workload.releaseRate) : workload.releaseRate;
    if (random.chance(releaseRate)) {
      this.#release(now);
    } else if (proposer.isHeld(instance, now)) {
      this.#ttlMs = this.#drawTtlMs();
      proposer.renew(instance, this.#ttlMs, now);
      this.#nextRenewal();
    } else if (this.#state === "holding") {
      // Only a faulty proposer loses a lease without reporting it. Gives it time for another mistake.
      this.#again(random.between(0, settings.ttlMaxMs));
      this.#state = "lost";
    }
  }

  #release(now: Reading): void {
    const { proposer } = this.#node.peer!;
    const instance = this.#instance!;
    this.#world.tenures.end(this.#node, this.resource, "released");
    proposer.release(instance, now);
    this.#world.counters.releases += 1;
    if (proposer.instanceOf(this.resource) === instance) {
      // The mistake P12: the acceptors are notified first, and the program stops only later.
      this.#state = "lost";
      this.#again(this.#world.settings.ttlMaxMs);
      return;
    }
    this.#instance = undefined;
    this.#state = "idle";
    this.#think();
  }

  #nextRenewal(): void {
    const { random, workload, calm } = this.#world;
    const lazy = !calm && random.chance(workload.lazyRate);
    this.#again(this.#ttlMs * (lazy ? random.between(0.7, 1.3) : random.between(0.2, 0.34)));
  }

  #drawTtlMs(): number {
    const { random, settings, workload } = this.#world;
    if (!workload.mixedTtl) return settings.ttlMaxMs;
    return Math.floor(random.between(settings.ttlMinMs, settings.ttlMaxMs));
  }

  #think(): void {
    // With waiting programs in the run, each caller wants its resource only once more after the faults: all
    // must get it.
    if (this.#servedInCalm && this.#world.hasWaist) return;
    const { calm, random, settings, workload } = this.#world;
    const thinkMs = random.exponential(workload.thinkMeanMs);
    // If nobody wants the resource, that is no lack of progress.
    this.#again(calm ? Math.min(thinkMs, settings.ttlMaxMs) : thinkMs);
  }

  #again(delayMs: number): void {
    this.#world.schedule(this.#turn, delayMs);
  }

  // Outcomes, reported in the middle of a step of the node

  acquired(instance: Instance, fast: boolean): void {
    if (this.#fast && !fast) this.#world.counters.fastLosses += 1;
    this.#state = "holding";
    this.#servedInCalm ||= this.#world.calm;
    this.#instance = instance;
    const { random } = this.#world;
    if (random.chance(briefTenures)) this.#again(this.#ttlMs * random.magnitude(briefest, 0.3));
    else this.#nextRenewal();
  }

  refused(retryInMs: number): void {
    this.#over();
    this.#again(retryInMs);
  }

  /** The resource may be free. False when nobody here waits for it. */
  hinted(): boolean {
    if (this.#state !== "idle" || !this.#waits) return false;
    this.#again(soonMs);
    return true;
  }

  failed(_why: AttemptFailure): void {
    this.#over();
    this.#think();
  }

  renewed(longer: boolean): void {
    if (!longer && this.#state === "holding") this.#again(this.#ttlMs * renewAgainAfter);
  }

  lapsed(): void {
    const { random, workload, settings } = this.#world;
    this.#world.tenures.end(this.#node, this.resource, "lapsed");
    this.#state = "lost";
    this.#again(random.chance(workload.lazyRate) ? random.between(0, settings.ttlMaxMs) : soonMs);
  }

  #over(): void {
    if (this.#fast) this.#world.counters.fastLosses += 1;
    this.#instance = undefined;
    this.#state = "idle";
    for (const closed of this.#world.observers.closed) closed(this.#node, this.resource);
  }
}
