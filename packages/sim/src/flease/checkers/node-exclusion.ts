import { getOrInsert } from "leasehold/inner/common/maps.js";
import {
  ProgramClock,
  RenewingThread,
  SharedThreads,
  SharedValidity,
} from "leasehold/inner/flease/threads.js";
import { Exclusion } from "../../kit/checkers/exclusion.js";
import type { Hold, Observer, FleaseReport, WorldView } from "../stage/observer.js";
import type { NodeView } from "../stage/node.js";

/** The two threads of a node that renews in a worker: one writes to shared memory, the other reads. */
class Threads {
  readonly node: NodeView;
  readonly #view: WorldView;
  readonly #threads = new SharedThreads();
  readonly #renewing: RenewingThread;
  readonly #validities = new Map<string, SharedValidity>();
  /** By resource: the end on the steady clock that was written last. */
  readonly #extended = new Map<string, number>();
  #clock: ProgramClock | undefined;

  constructor(view: WorldView, node: NodeView) {
    this.#view = view;
    this.node = node;
    this.#renewing = new RenewingThread(this.#threads, node.owner);
  }

  /** The renewing thread has read its clocks. */
  note(): void {
    this.#renewing.note(this.node.look(), this.node.owner);
  }

  /**
   * A grant, or the renewal of one. The clock is written first: with a newer end and an older clock the
   * program would believe in a longer hold.
   */
  extend({ instance }: Hold): void {
    if (
      this.#extended.get(instance.resource) === instance.holdExpiresMonoMs &&
      this.#validities.has(instance.resource)
    )
      return;
    this.note();
    this.#clockOfEpoch();
    this.#extended.set(instance.resource, instance.holdExpiresMonoMs);
    const validity = getOrInsert(this.#validities, instance.resource, () => new SharedValidity());
    validity.extend(instance.holdExpiresWallMs, instance.holdExpiresMonoMs, Infinity);
  }

  finish(resource: string): void {
    this.#validities.get(resource)?.finish("released");
    this.#validities.delete(resource);
  }

  /** The program looks at its lease. */
  look(): void {
    this.#clockOfEpoch().read();
  }

  reliesOn(resource: string): boolean {
    const validity = this.#validities.get(resource);
    if (validity === undefined || this.node.sleep.deceives) return false;
    const clock = this.#clockOfEpoch();
    return validity.remainingMs(() => clock.peek()) > 0;
  }

  #clockOfEpoch(): ProgramClock {
    const { epoch } = this.#threads;
    if (this.#clock?.epoch === epoch) return this.#clock;
    // A new epoch has no grants yet: earlier grants are over.
    this.#validities.clear();
    const { clock, peer } = this.node;
    const monoMs = clock.monoAt(this.#view.nowMs);
    const start = { epoch, monoMs, carriedMs: peer!.clock.carriedMs(monoMs) };
    const own = {
      monotonicMs: () => clock.monoAt(this.#view.nowMs),
      wallMs: () => clock.wallAt(this.#view.nowMs),
    };
    return (this.#clock = new ProgramClock(this.#threads, start, this.#view.settings, own));
  }
}

/**
 * I1: no two nodes have one resource at one instant. A node has a resource while it holds the lease by its
 * own clocks, or while its program relies on it. Where a worker thread renews, the program's thread decides
 * from shared memory.
 */
export class NodeExclusion implements Observer {
  readonly #view: WorldView;
  readonly #exclusion: Exclusion<NodeView>;
  readonly #threads = new Map<NodeView, Threads>();
  /** Refilled at each look. */
  readonly #having: NodeView[] = [];

  constructor(view: WorldView, report: FleaseReport) {
    this.#view = view;
    this.#exclusion = new Exclusion({ isHeld: () => true, nameOf: ({ name }) => name }, (text) =>
      report("I1", text),
    );
  }

  started(node: NodeView): void {
    this.#threads.set(node, new Threads(this.#view, node));
  }

  crashing(node: NodeView): void {
    this.#threads.delete(node);
  }

  renamed(node: NodeView): void {
    this.#threads.get(node)?.note();
  }

  clockRead(node: NodeView): void {
    this.#threads.get(node)?.note();
  }

  closed(node: NodeView, resource: string): void {
    this.#threads.get(node)?.finish(resource);
  }

  looked(resource: string, holds: readonly Hold[], actor: NodeView | undefined): void {
    const acting = actor && this.#threads.get(actor);
    if (acting !== undefined) this.#publish(acting, resource, holds);
    const having = this.#having;
    having.length = 0;
    for (const { node, valid } of holds) if (valid) having.push(node);
    for (const threads of this.#threads.values())
      if (threads.reliesOn(resource) && !having.includes(threads.node)) having.push(threads.node);
    this.#exclusion.look(resource, having);
  }

  #publish(acting: Threads, resource: string, holds: readonly Hold[]): void {
    const hold = holds.find(({ node, valid }) => valid && node === acting.node);
    if (hold === undefined) {
      acting.finish(resource);
      return;
    }
    acting.extend(hold);
    acting.look();
  }
}
