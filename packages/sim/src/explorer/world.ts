import type { Bounds } from "./bounds.js";
import { boundMax, limitOf } from "./bounds.js";
import { boundedMoves } from "./model.js";
import type { BoundedMove, Hold, Model } from "./model.js";
import { Steps, acceptors, inFlight, replyIn, senderIn } from "./steps.js";
import type { StepResult } from "./steps.js";

/** The violation in a state. */
export interface Wrong {
  readonly invariant: "I1" | "I2" | "I4" | "I12";
  readonly text: string;
}

/** All orders of the acceptors. The first leaves them as they are. */
const orders = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const;

const bitsPerCount = 4;

const noOne = -1;

/**
 * The small world: its states, each a row of numbers, and the states that can follow each. A row holds
 * acceptors, proposers, the true time, counts of bounded moves (of acceptors, of each proposer), the set of
 * requests ever sent, for each proposer the set of replies that can still matter, and the greatest token. Any
 * request ever sent can reach any acceptor at any time, repeatedly, or never. The same is true of replies.
 */
export class SmallWorld<Acceptor, Proposer, Request, Reply> {
  readonly width: number;
  readonly steps: Steps<Acceptor, Proposer, Request, Reply>;
  readonly #model: Model<Acceptor, Proposer, Request, Reply>;
  readonly #bounds: Bounds;
  readonly #proposers: number;
  readonly #proposersAt = acceptors;
  readonly #timeAt: number;
  readonly #countsAt: number;
  readonly #requestsAt: number;
  readonly #repliesAt: number;
  readonly #tokenAt: number;
  /** The current state, a state that follows it, and that one in its standard form. */
  #row: Int32Array;
  readonly #next: Int32Array;
  readonly #best: Int32Array;
  readonly #other: Int32Array;
  readonly #holds: Hold[] = [];
  /** Describes the step to `#next`, for a report. */
  #describe: (() => string) | undefined;
  #isDescribing = false;
  #order: readonly number[] = orders[0];
  #emit: (row: Int32Array, wrong: Wrong | undefined) => void = () => undefined;
  /** Steps that were tried, whether or not they led to a new state. */
  transitions = 0;

  constructor(model: Model<Acceptor, Proposer, Request, Reply>, bounds: Bounds) {
    this.steps = new Steps(model);
    this.#model = model;
    this.#bounds = bounds;
    this.#proposers = model.proposers;
    for (let proposer = 0; proposer < model.proposers; proposer += 1)
      for (const kind of boundedMoves)
        if (limitOf(bounds, kind, proposer) > boundMax)
          throw new RangeError(`${kind}: at most ${boundMax} are counted`);
    this.#timeAt = this.#proposersAt + model.proposers;
    this.#countsAt = this.#timeAt + 1;
    this.#requestsAt = this.#countsAt + 1 + model.proposers;
    this.#repliesAt = this.#requestsAt + 1;
    this.#tokenAt = this.#repliesAt + model.proposers;
    this.width = this.#tokenAt + 2;
    this.#row = new Int32Array(this.width);
    this.#next = new Int32Array(this.width);
    this.#best = new Int32Array(this.width);
    this.#other = new Int32Array(this.width);
  }

  initial(): Int32Array {
    const row = new Int32Array(this.width);
    const ready = this.steps.acceptors.idOf(this.#model.readyAcceptor());
    for (let index = 0; index < acceptors; index += 1) row[index] = ready;
    for (let index = 0; index < this.#proposers; index += 1)
      row[this.#proposersAt + index] = this.steps.proposers.idOf(this.#model.startProposer(index));
    return row;
  }

  /** Calls `emit` with every state that can follow, in its standard form. The row is reused. */
  follow(row: Int32Array, emit: (row: Int32Array, wrong: Wrong | undefined) => void): void {
    this.#row = row;
    this.#emit = emit;
    this.#passTime();
    this.#handleRequests();
    this.#moveAcceptors();
    for (let proposer = 0; proposer < this.#proposers; proposer += 1) {
      this.#handleReplies(proposer);
      this.#moveProposer(proposer);
    }
  }

  /** The same, with a description of the step, and the new numbers of the acceptors. */
  describe(row: Int32Array, emit: (row: Int32Array, step: string, order: readonly number[]) => void): void {
    this.#isDescribing = true;
    this.follow(row, (next) => emit(next, this.#describe?.() ?? "", this.#order));
    this.#isDescribing = false;
  }

  // Moves

  #passTime(): void {
    const time = this.#row[this.#timeAt]!;
    if (time >= this.#bounds.timeMax) return;
    this.#next.set(this.#row);
    this.#next[this.#timeAt] = time + 1;
    this.#done(() => `time ${time + 1}`);
  }

  #handleRequests(): void {
    const requests = this.steps.sets.members(this.#row[this.#requestsAt]!);
    for (let acceptor = 0; acceptor < acceptors; acceptor += 1) {
      if (this.#sameAsBefore(acceptor)) continue;
      for (const request of requests) this.#atEachReading((at) => this.#handle(acceptor, request, at));
    }
  }

  #handle(acceptor: number, request: number, at: number): void {
    const before = this.#row[acceptor]!;
    const { after, reply } = this.steps.handle(before, request, at);
    const to = this.#model.senderOf(this.steps.requests.at(request));
    if (reply !== noOne && this.steps.isRefusal(reply) && !this.#bounds.lateRefusals) {
      this.#atEachReading((heardAt) => this.#refuse(acceptor, request, reply, to, heardAt));
      return;
    }
    const repliesBefore = this.#row[this.#repliesAt + to]!;
    let replies = repliesBefore;
    if (reply !== noOne) {
      const grown = this.steps.sets.with(repliesBefore, inFlight(reply, acceptor));
      replies = this.steps.relevant(grown, this.#row[this.#proposersAt + to]!);
    }
    if (after === before && replies === repliesBefore) return;
    this.#next.set(this.#row);
    this.#next[acceptor] = after;
    this.#next[this.#repliesAt + to] = replies;
    this.#done(() => {
      const answer = reply === noOne ? "no answer" : this.#model.describeReply(this.steps.replies.at(reply));
      return `a${acceptor} gets ${this.#requestText(request)} at ${at}: ${answer}`;
    });
  }

  /** A refusal that reaches the proposer at once. It leaves the acceptor as it is. */
  #refuse(acceptor: number, request: number, reply: number, to: number, at: number): void {
    const step = this.steps.receive(this.#row[this.#proposersAt + to]!, acceptor, reply, at);
    this.#step(to, step, () => {
      const why = this.#model.describeReply(this.steps.replies.at(reply));
      return `a${acceptor} refuses ${this.#requestText(request)}: ${why}, and p${to} hears it at ${at}`;
    });
  }

  #moveAcceptors(): void {
    for (let acceptor = 0; acceptor < acceptors; acceptor += 1) {
      if (this.#sameAsBefore(acceptor)) continue;
      if (this.#count("crash", 0) < this.#bounds.crashes) this.#crash(acceptor);
      for (const [index, move] of this.#model.acceptorMoves.entries()) {
        const { kind } = move;
        if (kind !== undefined && this.#count(kind, 0) >= limitOf(this.#bounds, kind, 0)) continue;
        this.#atEachReading((at) => {
          const after = this.steps.moveAcceptor(move, index, this.#row[acceptor]!, at);
          if (after === noOne) return;
          this.#next.set(this.#row);
          this.#next[acceptor] = after;
          if (kind !== undefined) this.#countOne(kind, 0);
          this.#done(() => `a${acceptor} ${move.name} at ${at}`);
        });
      }
    }
  }

  #crash(acceptor: number): void {
    const time = this.#row[this.#timeAt]!;
    const { clockDifferenceMax, restartStepBackMax } = this.#bounds;
    for (let at = time - restartStepBackMax; at <= time + clockDifferenceMax; at += 1) {
      this.#next.set(this.#row);
      this.#next[acceptor] = this.steps.acceptors.idOf(this.#model.startAcceptor(at));
      this.#countOne("crash", 0);
      this.#done(() => `a${acceptor} crashes and starts again at ${at}`);
    }
  }

  #handleReplies(proposer: number): void {
    for (const flight of this.steps.sets.members(this.#row[this.#repliesAt + proposer]!)) {
      const from = senderIn(flight);
      const reply = replyIn(flight);
      this.#atEachReading((at) => {
        const step = this.steps.receive(this.#row[this.#proposersAt + proposer]!, from, reply, at);
        this.#step(proposer, step, () => {
          const text = this.#model.describeReply(this.steps.replies.at(reply));
          return `p${proposer} gets ${text} of a${from} at ${at}`;
        });
      });
    }
  }

  #moveProposer(proposer: number): void {
    const before = this.#row[this.#proposersAt + proposer]!;
    for (const [index, move] of this.#model.proposerMoves.entries()) {
      const { kind } = move;
      if (kind !== undefined && this.#count(kind, proposer) >= limitOf(this.#bounds, kind, proposer))
        continue;
      this.#atEachReading((at) => {
        const step = this.steps.moveProposer(move, index, before, at);
        if (step !== undefined) this.#step(proposer, step, () => `p${proposer} ${move.name} at ${at}`, kind);
      });
    }
  }

  #step(proposer: number, step: StepResult, describe: () => string, kind?: BoundedMove): void {
    const next = this.#next;
    if (
      step.after === this.#row[this.#proposersAt + proposer] &&
      step.sent.length === 0 &&
      kind === undefined
    )
      return;
    next.set(this.#row);
    next[this.#proposersAt + proposer] = step.after;
    if (kind !== undefined) this.#countOne(kind, proposer);
    let requests = next[this.#requestsAt]!;
    for (const request of step.sent) requests = this.steps.sets.with(requests, request);
    next[this.#requestsAt] = requests;
    next[this.#repliesAt + proposer] = this.steps.relevant(next[this.#repliesAt + proposer]!, step.after);
    const wrong = step.began === undefined ? undefined : this.#noteToken(step.began);
    this.#done(describe, wrong);
  }

  /** I2. Tokens take two words of the row. */
  #noteToken(token: number): Wrong | undefined {
    if (!this.#bounds.checkTokens) return undefined;
    const next = this.#next;
    const greatest = next[this.#tokenAt]! * wordSize + next[this.#tokenAt + 1]!;
    next[this.#tokenAt] = Math.floor(token / wordSize);
    next[this.#tokenAt + 1] = token % wordSize;
    if (token > greatest) return undefined;
    return { invariant: "I2", text: `a tenure begins with token ${token} after one with ${greatest}` };
  }

  // Small things

  /** The acceptor is in the same state as its predecessor, which could have done the same. */
  #sameAsBefore(acceptor: number): boolean {
    if (acceptor === 0 || this.#row[acceptor] !== this.#row[acceptor - 1]) return false;
    return this.#interchangeable(acceptor - 1, acceptor);
  }

  /** Whether swapping the two changes no proposer and no reply. */
  #interchangeable(one: number, other: number): boolean {
    const index = orders.findIndex((order) => order[one] === other && order[other] === one);
    const order = orders[index]!;
    for (let proposer = 0; proposer < this.#proposers; proposer += 1) {
      const state = this.#row[this.#proposersAt + proposer]!;
      const replies = this.#row[this.#repliesAt + proposer]!;
      if (this.steps.renamed(state, order, index) !== state) return false;
      if (this.steps.renamedReplies(replies, order, index) !== replies) return false;
    }
    return true;
  }

  #atEachReading(act: (at: number) => void): void {
    const time = this.#row[this.#timeAt]!;
    for (let at = time; at <= time + this.#bounds.clockDifferenceMax; at += 1) act(at);
  }

  /** Counts of acceptors' moves are kept together, as are those of each proposer. */
  #countWord(kind: BoundedMove, proposer: number): number {
    const ofAcceptors = kind === "crash" || kind === "bar" || kind === "discard";
    return this.#countsAt + (ofAcceptors ? 0 : 1 + proposer);
  }

  #count(kind: BoundedMove, proposer: number): number {
    const shift = (boundedMoves.indexOf(kind) % 3) * bitsPerCount;
    return (this.#row[this.#countWord(kind, proposer)]! >>> shift) & boundMax;
  }

  #countOne(kind: BoundedMove, proposer: number): void {
    const shift = (boundedMoves.indexOf(kind) % 3) * bitsPerCount;
    this.#next[this.#countWord(kind, proposer)]! += 1 << shift;
  }

  #requestText(request: number): string {
    return this.#model.describeRequest(this.steps.requests.at(request));
  }

  /** A step is complete. */
  #done(describe: () => string, wrong?: Wrong): void {
    this.transitions += 1;
    if (this.#isDescribing) this.#describe = describe;
    this.#standardise();
    this.#emit(this.#best, wrong);
  }

  /**
   * Acceptors' names do not matter. Among all states that differ only in names, the standard form is the one
   * in which the acceptors' numbers ascend and the rest is smallest.
   */
  #standardise(): void {
    const next = this.#next;
    let found = false;
    for (let index = 0; index < orders.length; index += 1) {
      const order = orders[index]!;
      const other = this.#other;
      for (let acceptor = 0; acceptor < acceptors; acceptor += 1) other[order[acceptor]!] = next[acceptor]!;
      if (other[0]! > other[1]! || other[1]! > other[2]!) continue;
      for (let at = this.#proposersAt; at < this.width; at += 1) other[at] = next[at]!;
      for (let proposer = 0; proposer < this.#proposers; proposer += 1) {
        const stateAt = this.#proposersAt + proposer;
        other[stateAt] = this.steps.renamed(next[stateAt]!, order, index);
        const repliesAt = this.#repliesAt + proposer;
        other[repliesAt] = this.steps.renamedReplies(next[repliesAt]!, order, index);
      }
      if (found && !isBelow(other, this.#best)) continue;
      this.#best.set(other);
      this.#order = order;
      found = true;
    }
  }

  // Invariants

  /** Checks a state; the invariants are those of section 5. */
  check(row: Int32Array): Wrong | undefined {
    const time = row[this.#timeAt]!;
    const holds = this.#holds;
    holds.length = 0;
    for (let proposer = 0; proposer < this.#proposers; proposer += 1) {
      const hold = this.steps.holdOf(row[this.#proposersAt + proposer]!, time);
      if (hold !== undefined) holds.push(hold);
    }
    if (holds.length > 1)
      return { invariant: "I1", text: `${holds.map(describeHold).join(" and ")} both hold` };
    const hold = holds[0];
    if (hold === undefined) return undefined;
    if (this.#isGivenBack(row, hold))
      return { invariant: "I12", text: `${describeHold(hold)} holds what it released` };
    if (this.#bounds.checkGuards && !this.#isGuarded(row, hold))
      return { invariant: "I4", text: `the hold of ${describeHold(hold)} is not guarded by a majority` };
    return undefined;
  }

  #isGivenBack(row: Int32Array, hold: Hold): boolean {
    const requests = this.steps.sets.members(row[this.#requestsAt]!);
    return requests.some((request) => this.#model.releases(this.steps.requests.at(request), hold));
  }

  #isGuarded(row: Int32Array, hold: Hold): boolean {
    let guards = 0;
    for (let acceptor = 0; acceptor < acceptors; acceptor += 1)
      if (this.#model.guards(this.steps.acceptors.at(row[acceptor]!), hold)) guards += 1;
    return guards > acceptors / 2;
  }
}

const wordSize = 2 ** 30;

function describeHold({ owner, token, until }: Hold): string {
  return `${owner} (token ${token}, until ${until})`;
}

function isBelow(left: Int32Array, right: Int32Array): boolean {
  for (let at = 0; at < left.length; at += 1) if (left[at] !== right[at]) return left[at]! < right[at]!;
  return false;
}
