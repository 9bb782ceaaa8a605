import { Acceptor } from "../../../packages/leasehold/src/flease/protocol/acceptor.js";
import { ownerName } from "../../../packages/leasehold/src/flease/protocol/ballot.js";
import { FleaseClock, emptyReading } from "../../../packages/leasehold/src/flease/protocol/clock.js";
import type { Reading } from "../../../packages/leasehold/src/flease/protocol/clock.js";
import { Kind, Message, copyMessage } from "../../../packages/leasehold/src/flease/protocol/message.js";
import { Proposer } from "../../../packages/leasehold/src/flease/protocol/proposer.js";
import type { ProposerSink } from "../../../packages/leasehold/src/flease/protocol/proposer-ports.js";
import { fleaseSettings } from "../../../packages/leasehold/src/flease/protocol/settings.js";
import type { FleaseSettings } from "../../../packages/leasehold/src/flease/protocol/settings.js";
import type { Instance } from "../../../packages/leasehold/src/flease/protocol/instance.js";
import { cellsOf } from "../../../packages/leasehold/src/flease/views/joint-cells.js";
import { firstView, viewAtFirstStart } from "../../../packages/leasehold/src/flease/views/view.js";
import { Views } from "../../../packages/leasehold/src/flease/views/views.js";
import { ballotText, printReply, printRequest, printView, startWallMs, timeText } from "./print.js";

/** The one resource of a script. */
const resource = "r";

/** A participant: two clocks set by hand, and its current view. */
class Node {
  readonly name: string;
  readonly views: Views;
  readonly #skewMs: number;
  #clock: FleaseClock;
  wall: number;
  mono: number;

  constructor(name: string, settings: FleaseSettings, timeMs: number, isNewcomer = false) {
    this.name = name;
    this.#skewMs = settings.maxClockSkewMs;
    this.wall = startWallMs + timeMs;
    this.mono = 10_000 + timeMs;
    this.#clock = this.#startClock();
    const kept = isNewcomer ? viewAtFirstStart(firstView(settings), "existing") : undefined;
    this.views = new Views(settings, name, kept, this.now(), () => true);
  }

  #startClock(): FleaseClock {
    return new FleaseClock(this.mono, this.wall, this.#skewMs, 0);
  }

  /** Starts a new process, whose clock module starts anew. */
  bootClock(): void {
    this.#clock = this.#startClock();
  }

  now(): Reading {
    return this.#clock.read(this.mono, this.wall, emptyReading());
  }
}

class AcceptorNode extends Node {
  acceptor: Acceptor | undefined;
}

class ProposerNode extends Node {
  incarnation = 0;
  proposer: Proposer | undefined;
  /** The number of the token of its last tenure. Its program presents it to the guarded resource. */
  tokenNumber = 0;
  /** The number of broadcasts sent of each kind, used to name them. */
  readonly sent = new Map<Kind, number>();

  get instance(): Instance | undefined {
    return this.proposer?.instanceOf(resource);
  }
}

/** One broadcast of a proposer. It stays in flight forever: it may arrive late, repeatedly or never. */
interface Broadcast {
  readonly name: string;
  readonly from: ProposerNode;
  readonly message: Message;
  readonly targets: Set<number>;
  /** The newest reply of each acceptor. */
  readonly replies: Map<number, Message>;
}

const kindNames: Partial<Record<Kind, string>> = {
  [Kind.read]: "read",
  [Kind.write]: "write",
  [Kind.acquire]: "acq",
  [Kind.release]: "rel",
};

/**
 * A cluster whose messages and clocks are moved by hand. It runs the real acceptors and proposers, delivers
 * only on command, and records all events.
 */
export class World {
  readonly #settings: FleaseSettings;
  readonly #acceptors: AcceptorNode[];
  readonly #proposers = new Map<string, ProposerNode>();
  readonly #broadcasts = new Map<string, Broadcast>();
  readonly #sameIncarnation: boolean;
  #time = 0;
  #output: string[] = [];
  #holders = "none";
  /** The greatest token with which anybody has written to the guarded resource. */
  #tokenNumberMax = 0;
  /** The greatest number of simultaneous holders so far. */
  holdersMax = 0;

  constructor(names: readonly string[], options: Record<string, number>, sameIncarnation: boolean) {
    this.#sameIncarnation = sameIncarnation;
    this.#settings = fleaseSettings({
      members: names,
      maxClockSkewMs: options["skew"] ?? 10,
      clockRateError: options["rate"] ?? 0,
      ttlMaxMs: options["ttlMax"] ?? 1_000,
      rpcTimeoutMs: options["timeout"] ?? 100,
    });
    const waitMs = Math.ceil(Math.max(this.#settings.waitWallMs, this.#settings.waitRateMs));
    this.#time = -waitMs;
    this.#acceptors = this.#settings.members.map(
      (name) => new AcceptorNode(name, this.#settings, this.#time),
    );
    for (const node of this.#acceptors) node.acceptor = new Acceptor(this.#settings, node.now());
    this.advance(waitMs, new Map());
  }

  /** The lines recorded since the last call. */
  takeOutput(): string[] {
    const output = this.#output;
    this.#output = [];
    return output;
  }

  addProposers(names: readonly string[]): void {
    for (const name of names) {
      const node = new ProposerNode(name, this.#settings, this.#time);
      this.#proposers.set(name, node);
      this.#bootProposer(node);
    }
  }

  /** Starts a process that is no member yet: it doesn't answer before a view counts it. */
  addNewcomer(name: string): void {
    const node = new AcceptorNode(name, this.#settings, this.#time, true);
    node.acceptor = new Acceptor(this.#settings, node.now());
    this.#acceptors.push(node);
    this.#sayState(node);
  }

  // Clocks

  /** Moves the wall clock of one participant. */
  setWall(name: string, aheadMs: number): void {
    const node = this.#node(name);
    node.wall = startWallMs + this.#time + aheadMs;
    if (node instanceof ProposerNode && node.instance === undefined) node.bootClock();
    this.#say(`${name}: wall clock ${timeText(node.wall)}, true time ${this.#time}`);
  }

  /** Lets time pass. The clocks of the participants in `own` move by another amount. */
  advance(byMs: number, own: ReadonlyMap<string, number>): void {
    this.#time += byMs;
    for (const node of this.#nodes()) {
      const ownMs = own.get(node.name) ?? byMs;
      node.wall += ownMs;
      node.mono += ownMs;
    }
    this.#say(`time ${this.#time}`);
    for (const node of this.#acceptors) {
      if (node.acceptor === undefined || node.acceptor.ready) continue;
      node.acceptor.wake(node.now());
      this.#sayState(node);
    }
    this.#lookAtViews();
  }

  /** Puts the machine to sleep: the system clock goes on, the steady one stands still. */
  suspend(name: string, forMs: number): void {
    const node = this.#node(name);
    this.advance(forMs, new Map([[name, 0]]));
    node.wall += forMs;
  }

  // Members

  /** A member begins a change, after inviting the new members. */
  change(name: string, members: readonly string[]): void {
    const { views } = this.#node(name);
    for (const { name: other, views: its } of this.#acceptors)
      if (members.includes(other) && !views.view.members.includes(other))
        this.#say(`${other}: ${its.invite(views.view.number + 1) ? "invited" : "not invited"}`);
    const next = { members, cellSize: members.length };
    const why = views.whyNoChange(next);
    if (why === undefined) views.change(next, this.#node(name).now());
    else this.#say(`${name}: no change, ${why}`);
    if (why === undefined) this.#entered(this.#node(name));
  }

  /**
   * Sends a participant's view, and which members have left the view before for good, to the participants
   * named.
   */
  tell(name: string, others: readonly string[]): void {
    const note = this.#node(name).views.note();
    for (const node of this.#nodes()) {
      if (node.name === name || !(others.length === 0 || others.includes(node.name))) continue;
      if (node.views.hear(note, node.now())) this.#entered(node);
    }
    this.#lookAtViews();
  }

  /** Participants check several times a second whether they may enter the view after a joint one. */
  #lookAtViews(): void {
    for (const node of this.#nodes()) {
      const before = node.views.unsettled().length;
      if (node.views.look(node.now())) this.#entered(node);
      else if (node.views.unsettled().length < before)
        this.#say(`${node.name}: has been out of the view before for a full wait`);
    }
  }

  #entered(node: Node): void {
    const { view, barrier } = node.views;
    this.#say(`${node.name}: enters ${printView(view)}`);
    if (node instanceof AcceptorNode) node.acceptor?.enterView(view.stamp, barrier);
    if (node instanceof ProposerNode)
      node.proposer?.enterView(
        view.stamp,
        cellsOf(
          view,
          this.#acceptors.map((each) => each.name),
        ),
        node.now(),
      );
  }

  // Acceptors

  crash(name: string): void {
    const node = this.#node(name);
    if (node instanceof AcceptorNode) node.acceptor = undefined;
    if (node instanceof ProposerNode) node.proposer = undefined;
  }

  restart(name: string): void {
    const node = this.#node(name);
    node.bootClock();
    if (node instanceof AcceptorNode) {
      node.acceptor = new Acceptor(this.#settings, node.now());
      // The view of a member outlives a restart.
      node.acceptor.enterView(node.views.view.stamp, node.views.barrier);
      this.#sayState(node);
    }
    if (node instanceof ProposerNode) this.#bootProposer(node);
  }

  discard(name: string): void {
    const node = this.#node(name);
    if (node instanceof AcceptorNode) node.acceptor?.discardIdle(node.now(), 100);
    this.show(name);
  }

  /** Breaks a lease: the acceptor bars its holder. */
  bar(name: string, holder: string): void {
    const node = this.#node(name);
    const owner = this.#proposer(holder).proposer?.owner ?? "";
    if (!(node instanceof AcceptorNode) || node.acceptor === undefined) return;
    const barred = node.acceptor.bar(resource, owner, node.now());
    if (barred) this.show(name);
    else this.#say(`${name}: knows no unfinished lease of ${owner}`);
  }

  show(name: string): void {
    const node = this.#node(name);
    if (!(node instanceof AcceptorNode) || node.acceptor === undefined) return;
    const { acceptor } = node;
    const entry = acceptor.entry(resource);
    if (entry === undefined) {
      this.#say(`${name}: keeps nothing of ${resource}, floor ${ballotText(acceptor.floor)}`);
      return;
    }
    const lease =
      entry.leaseOwner === ""
        ? "no lease"
        : `lease of ${entry.leaseOwner} in ${ballotText(entry.leaseNumber)}/${entry.leaseSequence} until ${timeText(entry.leaseExpiresWallMs)}`;
    const finished = entry.released ? ", released" : acceptor.isOver(entry, node.now()) ? ", over" : "";
    this.#say(
      `${name}: promised ${ballotText(entry.promisedNumber)}, ${lease}${finished}${entry.barredOwner === "" ? "" : `, ${entry.barredOwner} is barred`}`,
    );
  }

  // Proposers

  act(name: string, action: string, options: Record<string, number>): void {
    const node = this.#proposer(name);
    const { proposer, instance } = node;
    const now = node.now();
    const ttl = options["ttl"] ?? this.#settings.ttlMaxMs;
    if (proposer === undefined) this.#say(`${name} is down`);
    else if (action === "fast" || action === "two-phase") this.#acquire(node, ttl, action === "fast");
    else if (action === "tick") proposer.tick(now);
    else if (instance === undefined) this.#say(`${name} has nothing to ${action}`);
    else if (action === "renew") proposer.renew(instance, ttl, now);
    else if (action === "release") proposer.release(instance, now);
    else if (action === "cancel") proposer.cancel(instance);
    else throw new Error(`no such action: ${action}`);
  }

  #acquire(node: ProposerNode, ttlMs: number, fast: boolean): void {
    if (node.instance?.holding === true) this.#say(`${node.name} holds it already`);
    else if (node.instance !== undefined) this.#say(`${node.name} is at it already`);
    else node.proposer!.acquire(resource, ttlMs, 100 * this.#settings.ttlMaxMs, fast, node.now());
  }

  /**
   * The program writes to the guarded resource with its last token, whatever it believes; the resource checks
   * tokens.
   */
  use(name: string): void {
    const { tokenNumber } = this.#proposer(name);
    const token = ballotText(tokenNumber);
    if (tokenNumber < this.#tokenNumberMax)
      this.#say(`${name} writes with token ${token}: refused, ${ballotText(this.#tokenNumberMax)} was here`);
    else this.#say(`${name} writes with token ${token}: done`);
    this.#tokenNumberMax = Math.max(this.#tokenNumberMax, tokenNumber);
  }

  // Messages

  /**
   * Delivers the request to the acceptors named; their answers are in flight from then on. False if there is
   * no such broadcast.
   */
  deliver(broadcastName: string, to: readonly string[]): boolean {
    const broadcast = this.#broadcast(broadcastName);
    if (broadcast === undefined) return false;
    for (const [index, node] of this.#targets(to, broadcast.targets)) {
      if (!broadcast.targets.has(index)) throw new Error(`${broadcastName} to ${node.name} was dropped`);
      if (node.acceptor === undefined) {
        this.#say(`${node.name} is down`);
        continue;
      }
      const reply = new Message();
      if (!node.views.mayVote) {
        this.#say(`${node.name} has no vote`);
        continue;
      }
      if (node.acceptor.receive(broadcast.message, node.now(), reply)) {
        broadcast.replies.set(index, reply);
        this.#say(`${node.name} -> ${broadcast.from.name}  ${printReply(reply)}`);
      } else if (!node.acceptor.ready) {
        this.#say(`${node.name} is silent`);
      } else {
        this.show(node.name);
      }
    }
    return true;
  }

  /**
   * Returns the newest answers of the acceptors named to the proposer that asked, unless the proposer has
   * been replaced meanwhile.
   */
  return(broadcastName: string, from: readonly string[]): void {
    const broadcast = this.#broadcast(broadcastName);
    if (broadcast === undefined) return;
    const { proposer } = broadcast.from;
    for (const [index, node] of this.#targets(from, broadcast.targets)) {
      const reply = broadcast.replies.get(index);
      if (reply === undefined) {
        continue;
      }
      if (proposer?.owner === broadcast.message.owner)
        proposer.receive(index, copyMessage(reply), broadcast.from.now());
      else this.#say(`(the answer of ${node.name} finds no ${broadcast.message.owner})`);
    }
  }

  drop(broadcastName: string, to: readonly string[]): void {
    const broadcast = this.#broadcast(broadcastName);
    if (broadcast === undefined) return;
    for (const [index] of this.#targets(to, broadcast.targets)) broadcast.targets.delete(index);
  }

  // The oracle

  /** Asks every program whether it holds the resource, as it would ask itself, and records changes. */
  checkHolders(): string {
    const holders: string[] = [];
    for (const node of this.#proposers.values()) {
      const { proposer, instance } = node;
      if (proposer !== undefined && instance !== undefined && proposer.isHeld(instance, node.now()))
        holders.push(node.name);
    }
    this.holdersMax = Math.max(this.holdersMax, holders.length);
    const text = holders.length === 0 ? "none" : holders.join(" ");
    if (text !== this.#holders)
      this.#say(`HOLDERS ${text}${holders.length > 1 ? "   !!! TWO HOLDERS !!!" : ""}`);
    this.#holders = text;
    return text;
  }

  // Bookkeeping

  #bootProposer(node: ProposerNode): void {
    if (node.incarnation === 0 || !this.#sameIncarnation) node.incarnation += 1;
    const owner = ownerName(node.name, String(node.incarnation));
    const sink = this.#sinkOf(node);
    node.proposer = new Proposer(this.#settings, owner, 1, sink, sink);
    if (node.sent.size > 0) this.#say(`${node.name}: starts as ${owner}`);
  }

  #sinkOf(node: ProposerNode): ProposerSink {
    const { name } = node;
    let open: Broadcast | undefined;
    let last = Infinity;
    return {
      send: (to, message) => {
        // A proposer sends to the members one after the other: a message to the first one opens the next
        // broadcast.
        if (to <= last) open = this.#open(node, message);
        last = to;
        open?.targets.add(to);
      },
      reaches: () => true,
      acquired: (instance) => {
        node.tokenNumber = instance.tokenNumber;
        this.#say(
          `${name}: acquired, token ${ballotText(instance.tokenNumber)}, until ${timeText(instance.holdExpiresWallMs)}`,
        );
      },
      refused: (_slot, holder) => this.#say(`${name}: refused, ${holder} has it`),
      failed: (_slot, why) => this.#say(`${name}: no answer (${why})`),
      renewed: (instance, longer) =>
        this.#say(
          longer ? `${name}: renewed until ${timeText(instance.holdExpiresWallMs)}` : `${name}: not renewed`,
        ),
      lapsed: (_slot, why) => this.#say(`${name}: the tenure is over (${why})`),
    };
  }

  #open(node: ProposerNode, message: Message): Broadcast {
    const count = (node.sent.get(message.kind) ?? 0) + 1;
    node.sent.set(message.kind, count);
    const name = `${node.name}.${kindNames[message.kind]}${count}`;
    const broadcast = {
      name,
      from: node,
      message: copyMessage(message),
      targets: new Set<number>(),
      replies: new Map(),
    };
    this.#broadcasts.set(name, broadcast);
    this.#say(`${name} sent: ${printRequest(message)}`);
    return broadcast;
  }

  #sayState(node: AcceptorNode): void {
    const { acceptor, name } = node;
    if (acceptor === undefined) return;
    const remaining = acceptor.recoveryWaitLeftMs(node.now());
    if (acceptor.ready) this.#say(`${name}: ready, floor ${ballotText(acceptor.floor)}`);
    else this.#say(`${name}: silent for ${remaining} more`);
  }

  #broadcast(name: string): Broadcast | undefined {
    const broadcast = this.#broadcasts.get(name);
    if (broadcast === undefined) this.#say(`(there is no ${name})`);
    return broadcast;
  }

  #nodes(): Node[] {
    return [...this.#acceptors, ...this.#proposers.values()];
  }

  /** The acceptors of these names; without names, all those that the broadcast is for. */
  #targets(names: readonly string[], all: ReadonlySet<number>): [number, AcceptorNode][] {
    if (names.length === 0) return [...this.#acceptors.entries()].filter(([index]) => all.has(index));
    return names.map((name) => {
      const index = this.#acceptors.findIndex((node) => node.name === name);
      if (index === -1) throw new Error(`no such acceptor: ${name}`);
      return [index, this.#acceptors[index]!];
    });
  }

  #proposer(name: string): ProposerNode {
    const node = this.#proposers.get(name);
    if (node === undefined) throw new Error(`no such proposer: ${name}`);
    return node;
  }

  #node(name: string): AcceptorNode | ProposerNode {
    return this.#acceptors.find((node) => node.name === name) ?? this.#proposer(name);
  }

  #say(line: string): void {
    this.#output.push(line);
  }
}
