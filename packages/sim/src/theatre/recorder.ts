import { nodeIdOf } from "leasehold/inner/flease/protocol/ballot.js";
import { validForMs } from "leasehold/inner/flease/protocol/expiry.js";
import { Phase } from "leasehold/inner/flease/protocol/instance.js";
import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";
import { sizeOf } from "leasehold/inner/flease/protocol/quorum.js";
import { votersOf } from "leasehold/inner/flease/views/view.js";
import { startWallMs } from "../kit/clocks.js";
import type { SimEvent } from "../kit/events.js";
import { Packet } from "../flease/stage/network.js";
import type { NodeView } from "../flease/stage/node.js";
import type { AcceptorStep, Tenure } from "../flease/stage/observer.js";
import type { WatchedWorld, Watcher } from "../flease/stage/watcher.js";
import type { ClaimState, EntryState, Flight, NodeState, Step } from "./recording.js";
import { handledText, kindNames, sentText } from "./sentences.js";

/** The most steps that are kept. Of a longer run only the last ones stay. */
const stepsMax = 30_000;
const lostShownMs = 15;

/** Records what a run shows. States that have not changed are shared between steps. */
export class Recorder implements Watcher {
  readonly steps: Step[] = [];
  readonly flights: Flight[] = [];
  stepsDropped = 0;
  #world!: WatchedWorld;
  #nodes: readonly NodeState[] = [];
  #cuts: Step["cuts"] = [];
  #texts: string[] = [];
  #isMain = false;

  begins(world: WatchedWorld): void {
    this.#world = world;
  }

  /** Describes what the next step does, instead of its visible effects. */
  say(text: string): void {
    this.#main(text);
  }

  departed(packet: Packet, arrivesMs: number): void {
    this.#flight(packet, arrivesMs, false);
  }

  lost(packet: Packet): void {
    this.#flight(packet, this.#world.nowMs + lostShownMs, true);
  }

  #flight({ from, to, message, resource }: Packet, arrivesMs: number, isLost: boolean): void {
    if (message === undefined) return;
    const kind = kindNames[message.kind]!;
    const isRefusal = message.kind === Kind.nack;
    this.flights.push({ from, to, kind, resource, sentMs: this.#world.nowMs, arrivesMs, isLost, isRefusal });
  }

  sent(from: NodeView, _to: number, message: Message): void {
    const text = sentText(from.name, message);
    if (text !== undefined && !this.#texts.includes(text)) this.#texts.push(text);
  }

  handled({ node, request, reply }: AcceptorStep): void {
    const text = handledText(node.name, request, reply, node.peer?.acceptor?.ready === true);
    if (text !== undefined) this.#texts.push(text);
  }

  tenureBegan({ node, resource }: Tenure): void {
    const { operation, cell } = node.peer!.proposer.instanceOf(resource)!;
    const votes = sizeOf(operation.acks);
    const count = votes === 0 ? "A majority" : `${votes} of ${cell.members.length} members, a majority,`;
    this.#texts = [];
    this.#main(`${node.name} HOLDS ${resource}. ${count} guard it: no other majority can be had.`);
  }

  crashing(node: NodeView): void {
    this.#main(`${node.name} crashes and forgets everything.`);
  }

  started(node: NodeView): void {
    const rest = node.isMember
      ? " It may have forgotten what it guarded, so it answers nobody for a while."
      : "";
    this.#main(`${node.name} starts.${rest}`);
  }

  readied(node: NodeView): void {
    this.#main(`${node.name} is ready: whatever it forgot is over by now.`);
  }

  renamed(node: NodeView): void {
    this.#main(`${node.name} sees that its clocks cannot be right. It gives up all it holds.`);
  }

  viewEntered(node: NodeView): void {
    const { view } = node.peer!.views;
    const kind = view.before === undefined ? "" : "both the old and the new members count, ";
    this.#main(`${node.name} enters view ${view.number}: ${kind}${votersOf(view).join(", ")}.`);
  }

  #main(text: string): void {
    this.#texts.push(text);
    this.#isMain = true;
  }

  happened(event: SimEvent): void {
    const nodes = this.#world.nodes.map((node, at) => shared(this.#nodes[at], this.#stateOf(node)));
    const cuts = this.#cutsNow();
    this.#difference(nodes, cuts);
    if (this.#texts.length === 0 && event instanceof Packet && event.message !== undefined)
      this.#counted(event, nodes);
    this.#nodes = nodes;
    this.#cuts = cuts;
    if (this.#texts.length === 0) return;
    if (this.steps.length >= stepsMax) {
      this.steps.splice(0, stepsMax / 2);
      this.stepsDropped += stepsMax / 2;
    }
    const text = this.#texts.join(" ");
    this.steps.push({ atMs: this.#world.nowMs, text, isMain: this.#isMain, nodes, cuts });
    this.#texts = [];
    this.#isMain = false;
  }

  /** An answer that only counts. */
  #counted({ from, to, message, resource }: Packet, nodes: readonly NodeState[]): void {
    const { kind } = message!;
    const [sender, receiver] = [nodes[from]!, nodes[to]!];
    if (receiver.life === "down" || kind < Kind.promise || kind > Kind.nack) return;
    const claim = receiver.claims.find((each) => each.resource === resource);
    const what = { [Kind.promise]: "promise", [Kind.ack]: "consent" }[kind as number] ?? "refusal";
    const count =
      claim === undefined || kind === Kind.nack || claim.yes === 0
        ? ""
        : `: ${claim.yes}, and it needs ${claim.needed}`;
    this.#texts.push(`${sender.name}'s ${what} reaches ${receiver.name}${count}.`);
  }

  /** Changes that no hook has reported. */
  #difference(nodes: readonly NodeState[], cuts: Step["cuts"]): void {
    const isSaid = this.#texts.length > 0;
    for (const [at, node] of nodes.entries()) {
      const before = this.#nodes[at];
      if (before === undefined || node === before) continue;
      this.#changed(before, node, isSaid);
    }
    if (cuts.length !== this.#cuts.length && !isSaid)
      this.#main(cuts.length > this.#cuts.length ? "The network is cut." : "The network is whole again.");
  }

  #changed(before: NodeState, { name, claims, life, clockMs }: NodeState, isSaid: boolean): void {
    for (const { resource, isHeld } of before.claims) {
      if (!isHeld || claims.some((each) => each.resource === resource && each.isHeld)) continue;
      const isQuiet = life === "down" || life === "frozen" || isSaid;
      if (!isQuiet) this.#main(`${name}'s lease of ${resource} is over by its own clock: it stops.`);
    }
    if (isSaid) return;
    if (life === "frozen" && before.life !== "frozen")
      this.#main(`${name} is frozen: its program stands still.`);
    if (life !== "frozen" && before.life === "frozen")
      this.#main(`${name} goes on, as if no time had passed.`);
    if (Math.abs(clockMs - before.clockMs) > 5)
      this.#main(`The clock of ${name} moves by ${Math.round(clockMs - before.clockMs)} ms.`);
  }

  #cutsNow(): Step["cuts"] {
    const cuts: [number, number][] = [];
    const { nodes, network } = this.#world;
    for (const { index: from } of nodes)
      for (const { index: to } of nodes) if (from !== to && network.isCut(from, to)) cuts.push([from, to]);
    return cuts.length === this.#cuts.length ? this.#cuts : cuts;
  }

  #stateOf(node: NodeView): NodeState {
    const { nowMs } = this.#world;
    const { name, isMember, clock, peer } = node;
    const isReady = peer?.acceptor?.ready !== false;
    const isFrozen = node.paused || node.sleep.isOn;
    const life = peer === undefined ? "down" : isFrozen ? "frozen" : isReady ? "running" : "waiting";
    const clockMs = Math.round(clock.wallAt(nowMs) - startWallMs - nowMs);
    const claims =
      peer === undefined ? [] : [...peer.proposer.instances.values()].map((each) => this.#claim(node, each));
    const view =
      peer === undefined || this.#world.plan.views === undefined ? "" : votersOf(peer.views.view).join(" ");
    return { name, isMember, life, clockMs, rate: clock.rate, view, entries: this.#entries(node), claims };
  }

  #entries({ peer, clock }: NodeView): EntryState[] {
    const { plan, nowMs, settings } = this.#world;
    return plan.resources.flatMap((resource) => {
      const entry = peer?.acceptor?.entry(resource);
      if (entry === undefined) return [];
      const aheadMs = clock.wallAt(nowMs) - nowMs;
      const wallMs = entry.leaseExpiresWallMs + settings.maxClockSkewMs - aheadMs;
      const guardsUntilMs = Math.round(Math.max(wallMs, clock.timeOfMono(entry.leaseExpiresMonoMs)));
      const { released: isReleased, promisedNumber: promised } = entry;
      return [{ resource, promised, holder: nodeIdOf(entry.leaseOwner), isReleased, guardsUntilMs }];
    });
  }

  #claim(node: NodeView, instance: Instance): ClaimState {
    const { operation, resource, holding, holdExpiresWallMs, holdExpiresMonoMs, cell } = instance;
    const left = holding ? validForMs(holdExpiresWallMs, holdExpiresMonoMs, node.look()) : 0;
    const isHeld = left > 0;
    const isBusy = operation.phase !== Phase.idle;
    const asks = operation.phase === Phase.writing || operation.phase === Phase.fast ? "writing" : "asking";
    const doing = isHeld ? (isBusy ? "renewing" : "holding") : isBusy ? asks : "over";
    return {
      resource,
      doing,
      isHeld,
      token: isHeld ? instance.tokenNumber : 0,
      yes: isBusy ? sizeOf(operation.acks) : 0,
      needed: cell.majority,
      untilMs: Math.round(this.#world.nowMs + left),
    };
  }
}

/** The former state, if nothing has changed. */
function shared(before: NodeState | undefined, after: NodeState): NodeState {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(after) ? before : after;
}
