import { cellsOf } from "leasehold/inner/flease/views/joint-cells.js";
import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import type { Cell } from "leasehold/inner/flease/protocol/quorum.js";
import { isQuorum } from "leasehold/inner/flease/protocol/quorum.js";
import { fleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import { firstView, jointView, viewAfter, viewAtFirstStart } from "leasehold/inner/flease/views/view.js";
import { Views } from "leasehold/inner/flease/views/views.js";
import type { KeptView, View } from "leasehold/inner/flease/views/view.js";

/**
 * One change of the members in a small world, explored completely. Views and quorums are the product's. An
 * acceptor is reduced to its guard, and a proposer to one attempt in one round trip. Clocks agree, and time
 * runs in ticks. Any message may arrive at any time or never: a member that knows that it may enter a view
 * may enter it, and may learn of the joint view after everybody else has left it.
 */
export interface ViewsWorld {
  /** Members before and after, by indices of four nodes. */
  readonly before: readonly number[];
  readonly after: readonly number[];
  readonly timeMax: number;
  /** A lease, and each wait, in ticks. */
  readonly leaseTicks: number;
  readonly waitTicks: number;
  /** Restarts of all nodes together: a node forgets its guard, and is silent for a wait. */
  readonly restarts: number;
  /** A restart may lose the persisted view. */
  readonly losses?: boolean;
}

interface Node {
  readonly view: number;
  /** The persisted view; plus 3 if an earlier one was lost. */
  readonly kept: number;
  readonly entered: number;
  /** The holder of the guard, from 1; 0 for none. And the time of its request. */
  readonly guard: number;
  readonly guardSent: number;
  readonly silentUntil: number;
}

const attempts = 2;

const lostOnce = 3;

interface Attempt {
  readonly phase: "none" | "trying" | "decided" | "done";
  readonly view: number;
  readonly sent: number;
  /** Nodes, as bits. */
  readonly acks: number;
}

interface State {
  readonly time: number;
  /** Earlier members that are known to have been out of their view for a full wait, as bits. */
  readonly settled: number;
  readonly restarts: number;
  readonly nodes: readonly Node[];
  readonly attempts: readonly Attempt[];
}

export interface ViewsExploration {
  readonly states: number;
  /** The state in which two hold. */
  readonly finding: string | undefined;
}

/** A failed attempt, or one whose lease is over. */
const done: Attempt = { phase: "done", view: 0, sent: 0, acks: 0 };

const phases = ["none", "trying", "decided", "done"];

const ids = ["a", "b", "c", "d"];
const startMs = Date.UTC(2030, 0, 1);

function readingAt(tick: number): Reading {
  const wall = startMs + tick;
  return { mono: tick, wall, lo: wall, hi: wall, clocksDisagree: false };
}

/** Explores every state, or ends at the first in which two hold. */
export function exploreViews(world: ViewsWorld): ViewsExploration {
  return new ViewsExplorer(world).run();
}

class ViewsExplorer {
  readonly #world: ViewsWorld;
  readonly #settings;
  readonly #views: readonly View[];
  /** The cell of each view, and the position of each node in it. */
  readonly #cells: readonly Cell[];
  readonly #seen = new Map<number, Set<number>>();
  readonly #looks = new Map<number, number>();
  readonly #deliveries = new Map<number, Partial<Node>>();
  #open: State[] = [];
  #states = 0;

  constructor(world: ViewsWorld) {
    this.#world = world;
    const settings = fleaseSettings({
      members: ids,
      maxClockSkewMs: 2,
      clockRateError: 0,
      ttlMaxMs: 100,
      rpcTimeoutMs: 10,
    });
    this.#settings = { ...settings, waitWallMs: world.waitTicks, waitRateMs: world.waitTicks };
    const membership = (members: readonly number[]) => ({
      members: members.map((index) => ids[index]!),
      cellSize: members.length,
    });
    const first = { ...firstView(settings), ...membership(world.before) };
    const joint = jointView(first, membership(world.after), first.members[0]!);
    // The view that the member that begins the change enters: the joint view, unless a mistake is planted.
    const begins = new Views(
      this.#settings,
      first.members[0]!,
      { view: first, barrier: 0 },
      readingAt(0),
      () => true,
    );
    begins.change(membership(world.after), readingAt(0));
    this.#views = [first, begins.view, viewAfter(joint)];
    this.#cells = this.#views.map((view) => cellsOf(view, ids).of("r"));
  }

  run(): ViewsExploration {
    const node = { view: 0, kept: 0, entered: 0, guard: 0, guardSent: 0, silentUntil: 0 };
    const attempt: Attempt = { phase: "none", view: 0, sent: 0, acks: 0 };
    this.#reach({
      time: 0,
      settled: 0,
      restarts: 0,
      nodes: ids.map(() => node),
      attempts: Array.from({ length: attempts }, () => attempt),
    });
    for (let state = this.#open.pop(); state !== undefined; state = this.#open.pop()) {
      if (state.attempts.every((each) => this.#holds(each, state.time)))
        return { states: this.#states, finding: JSON.stringify(state) };
      this.#follow(state);
    }
    return { states: this.#states, finding: undefined };
  }

  #holds({ phase, sent }: Attempt, time: number): boolean {
    return phase === "decided" && time < sent + this.#world.leaseTicks;
  }

  #follow(state: State): void {
    const { time } = state;
    if (time < this.#world.timeMax) this.#reach({ ...state, time: time + 1 });
    for (const index of ids.keys()) this.#moveNode(state, index);
    for (const [index, attempt] of state.attempts.entries()) this.#moveAttempt(state, index, attempt);
  }

  #moveNode(state: State, index: number): void {
    const { time, nodes } = state;
    const node = nodes[index]!;
    const become = (after: Partial<Node>, more: Partial<State> = {}) =>
      this.#reach({ ...state, ...more, nodes: nodes.with(index, { ...node, ...after }) });
    if (node.view === 0) become({ ...this.#delivered(index, node, 1, time) });
    if (nodes.some(({ view }) => view === 2) && node.view < 2)
      become({ ...this.#delivered(index, node, 2, time) });
    const looked = this.#look(index, node, state.settled, time);
    if (looked.settled !== state.settled || looked.view !== node.view)
      become({ view: looked.view, kept: looked.kept, entered: looked.entered }, { settled: looked.settled });
    if (state.restarts < this.#world.restarts) {
      const view = this.#restarted(index, node, time);
      const silentUntil = time + this.#world.waitTicks;
      const anew = { entered: time, guard: 0, guardSent: 0, silentUntil };
      become({ ...anew, view }, { restarts: state.restarts + 1 });
      if (this.#world.losses === true)
        become({ ...anew, view: 0, kept: lostOnce }, { restarts: state.restarts + 1 });
    }
  }

  #viewsOf(index: number, kept: number, entered: number, keep: (kept: KeptView) => void): Views {
    const view = this.#views[kept % lostOnce]!;
    const isWhole = kept < lostOnce;
    const started = isWhole
      ? { view, barrier: 0 }
      : { ...viewAtFirstStart(this.#views[0]!, "existing"), view };
    return new Views(this.#settings, ids[index]!, started, readingAt(entered), (each) => {
      keep(each);
      return true;
    });
  }

  #numberOf(view: View): number {
    return view.number - this.#views[0]!.number;
  }

  /** A node after delivery of a view. Keyed by its view, its persisted view, the view sent, and the time. */
  #delivered(index: number, node: Node, sent: number, time: number): Partial<Node> {
    const key = ((node.view * 6 + node.kept) * 4 + sent) * 16 + time;
    let found = this.#deliveries.get(key);
    if (found === undefined)
      this.#deliveries.set(key, (found = this.#deliver(index, node, this.#views[sent]!, time)));
    return found;
  }

  #deliver(index: number, node: Node, view: View, time: number): Partial<Node> {
    let { kept } = node;
    const offset = offsetOf(kept);
    const keep = (each: KeptView) => (kept = offset + this.#numberOf(each.view));
    const views = this.#viewsOf(index, offset + node.view, node.entered, keep);
    views.hear({ view, barrier: 0, settled: new Map() }, readingAt(time));
    return { view: this.#numberOf(views.view), kept, entered: time };
  }

  #restarted(index: number, node: Node, time: number): number {
    return this.#numberOf(this.#viewsOf(index, node.kept, time, () => undefined).view);
  }

  #look(index: number, node: Node, settled: number, time: number) {
    const key = (((index * 3 + node.view) * 16 + node.entered) * 16 + settled) * 16 + time;
    let found = this.#looks.get(key);
    if (found === undefined) this.#looks.set(key, (found = this.#lookAnew(index, node, settled, time)));
    const view = found & 3;
    const entered = view === node.view ? node.entered : time;
    const kept = (found & 4) === 0 ? node.kept : offsetOf(node.kept) + view;
    return { view, kept, entered, settled: found >>> 3 };
  }

  #lookAnew(index: number, node: Node, settled: number, time: number): number {
    let wasKept = 0;
    const views = this.#viewsOf(index, node.view, node.entered, () => (wasKept = 4));
    const present = this.#views[node.view]!;
    const others = ids.filter((_, each) => (settled >>> each) & 1);
    views.hear({ view: present, barrier: 0, settled: new Map(others.map((id) => [id, 0])) }, readingAt(time));
    const before = present.before?.members ?? [];
    const went = views.look(readingAt(time));
    let known = settled;
    // A node in the next view no longer needs to know the settled members: its knowledge was sufficient.
    if (!went && before.length > 0)
      for (const [each, id] of ids.entries())
        if (before.includes(id) && !views.unsettled().includes(id)) known |= 1 << each;
    return (known << 3) | wasKept | this.#numberOf(views.view);
  }

  #moveAttempt(state: State, index: number, attempt: Attempt): void {
    const { time, nodes } = state;
    const become = (after: Attempt, guarded = nodes) =>
      this.#reach({ ...state, nodes: guarded, attempts: state.attempts.with(index, after) });
    if (attempt.phase === "none") {
      const known = nodes.some(({ view }) => view === 2) ? [0, 1, 2] : [0, 1];
      for (const view of known) become({ phase: "trying", view, sent: time, acks: 0 });
      return;
    }
    if (
      attempt.phase === "decided" ||
      attempt.phase === "done" ||
      time >= attempt.sent + this.#world.leaseTicks
    )
      return;
    const cell = this.#cells[attempt.view]!;
    const set = cell.members.reduce(
      (bits, member, position) => bits | (((attempt.acks >>> member) & 1) << position),
      0,
    );
    if (isQuorum(cell, set)) become({ ...attempt, phase: "decided" });
    for (const member of cell.members) {
      const node = nodes[member]!;
      const isFree = node.guard === 0 || time >= node.guardSent + this.#world.leaseTicks;
      const answers = node.view === attempt.view && time >= node.silentUntil && this.#mayVote(node);
      if (!answers || !(isFree || node.guard === index + 1)) continue;
      const acks = attempt.acks | (1 << member);
      become(
        { ...attempt, acks },
        nodes.with(member, { ...node, guard: index + 1, guardSent: attempt.sent }),
      );
    }
  }

  #mayVote({ view, kept }: Node): boolean {
    return kept < lostOnce || this.#viewsOf(0, lostOnce + view, 0, () => undefined).mayVote;
  }

  /** Fields that no later step reads. They would only make equal states look different. */
  #normal(state: State): State {
    const { time } = state;
    const isOver = (sent: number) => time >= sent + this.#world.leaseTicks;
    const attempts = state.attempts.map((attempt) =>
      attempt.phase !== "none" && isOver(attempt.sent) ? done : attempt,
    );
    const nodes = state.nodes.map((node, index): Node => {
      const isFree = node.guard === 0 || isOver(node.guardSent);
      const waits =
        node.view === 1 && this.#world.before.includes(index) && ((state.settled >>> index) & 1) === 0;
      return {
        ...node,
        entered: waits ? node.entered : 0,
        guard: isFree ? 0 : node.guard,
        guardSent: isFree ? 0 : node.guardSent,
        silentUntil: time >= node.silentUntil ? 0 : node.silentUntil,
      };
    });
    return { ...state, attempts, nodes };
  }

  #reach(next: State): void {
    const state = this.#normal(next);
    const { time, settled, restarts } = state;
    let high = 0;
    let low = (time * 16 + settled) * 4 + restarts;
    for (const { view, kept, entered, guard, guardSent, silentUntil } of state.nodes) {
      high = ((((high * 3 + view) * 8 + entered) * 3 + guard) * 8 + guardSent) * 12 + silentUntil;
      low = low * 6 + kept;
    }
    for (const { phase, view, sent, acks } of state.attempts) {
      low = (((low * 4 + phases.indexOf(phase)) * 3 + view) * 8 + sent) * 16 + acks;
    }
    let seen = this.#seen.get(high);
    if (seen === undefined) this.#seen.set(high, (seen = new Set()));
    if (seen.has(low)) return;
    seen.add(low);
    this.#states += 1;
    this.#open.push(state);
  }
}

function offsetOf(kept: number): number {
  return kept < lostOnce ? 0 : lostOnce;
}
