import { getOrInsert } from "../../common/maps.js";
import { notListed } from "./message.js";
import { type Payer, Quotas, weightOf } from "./quotas.js";

/**
 * Waiters that an acceptor remembers for one resource. Further waiters retry by themselves when the lease is
 * over.
 */
const waitersPerResourceMax = 10_000;

/**
 * Places for all waiters of an acceptor, about forty megabytes. A waiter takes one place for a resource with
 * a short name, and several for a longer one.
 */
const placesMax = 100_000;

const encoder = new TextEncoder();

/** The waiters for one resource, in the order of arrival. */
class WaitingList {
  readonly resource: string;
  /** Places that each waiter takes. */
  readonly places: number;
  /** Ticket by peer, ascending. */
  readonly tickets = new Map<number, number>();
  #nextTicket = 0;
  /** When the first waiter was notified that the resource is free, unless the resource was acquired since. */
  notifiedMono = -Infinity;
  /**
   * The waiter to be notified before all others: the holder hands over to it, or its last request came too
   * late.
   */
  favoured: number | undefined;
  /** The last peer that got the resource here, if it was on the list. */
  taker: number | undefined;
  /** Other acceptors granted the resource: no waiter is notified before this time, or before its release. */
  elsewhereUntilMono = -Infinity;

  constructor(resource: string) {
    this.resource = resource;
    this.places = weightOf(encoder.encode(resource).length);
  }

  get first(): number | undefined {
    return this.favoured ?? this.tickets.keys().next().value;
  }

  add(peer: number): void {
    this.tickets.set(peer, this.#nextTicket);
    this.#nextTicket += 1;
  }

  /** How many waiters are ahead of a peer; some that have left may be counted. */
  aheadOf(peer: number): number {
    if (peer === this.favoured) return 0;
    const [first] = this.tickets.values();
    return Math.min(this.tickets.get(peer)! - first!, this.tickets.size - 1);
  }
}

/** The resources that one peer waits for, and the account that pays for its places. */
interface Waiting {
  readonly payer: Payer;
  readonly lists: Set<WaitingList>;
}

/**
 * Lists of waiters for each resource: first come, first notified. They are not part of the protocol: an
 * acceptor that forgets them, or a lost hint, costs a waiter time and never safety.
 *
 * A notified waiter stays first in line until it gets the resource, passes, or lets `patienceMs` go by. Until
 * then, participants not on the list are refused. So is the last holder, which would otherwise always win,
 * because it needs no notification.
 */
export class Waiters {
  readonly #patienceMs: number;
  readonly #lists = new Map<string, WaitingList>();
  readonly #byPeer = new Map<number, Waiting>();
  /** Accounts share the places, because names cost nothing to invent. */
  readonly quotas: Quotas;
  #total = 0;
  #sweep: Iterator<[string, WaitingList]> | undefined;

  constructor(patienceMs: number, places = placesMax) {
    this.#patienceMs = patienceMs;
    this.quotas = new Quotas(places);
  }

  get size(): number {
    return this.#total;
  }

  sizeOf(resource: string): number {
    return this.#lists.get(resource)?.tickets.size ?? 0;
  }

  /**
   * Puts a peer on the list, unless it is there already, and charges its owner's account. Returns how many
   * are ahead of it, or `notListed`.
   */
  add(resource: string, peer: number, owner: string): number {
    const list = this.#lists.get(resource) ?? new WaitingList(resource);
    if (list.tickets.has(peer)) return list.aheadOf(peer);
    if (list.tickets.size >= waitersPerResourceMax) return notListed;
    const payer = this.#byPeer.get(peer)?.payer ?? this.quotas.payerOf(owner);
    if (!this.quotas.allows(payer, list.places)) return notListed;
    this.quotas.charge(payer, list.places);
    getOrInsert(this.#byPeer, peer, () => ({ payer, lists: new Set() })).lists.add(list);
    this.#lists.set(resource, list);
    list.add(peer);
    this.#total += 1;
    return list.aheadOf(peer);
  }

  /**
   * The first waiter for a free resource, to be notified now; `undefined` if there is none, or if it was
   * notified recently.
   */
  next(resource: string, mono: number): number | undefined {
    const list = this.#lists.get(resource);
    if (list === undefined || this.#isPatient(list, mono) || mono < list.elsewhereUntilMono) return undefined;
    if (list.notifiedMono !== -Infinity) this.#drop(list, list.first!); // It did not come in time.
    list.notifiedMono = mono;
    return list.first;
  }

  /** The peer has stopped waiting or has disconnected. */
  remove(resource: string, peer: number): void {
    const list = this.#lists.get(resource);
    if (list?.tickets.has(peer) !== true) return;
    if (list.first === peer) list.notifiedMono = -Infinity;
    this.#drop(list, peer);
  }

  /**
   * Removes the peer, which has got the resource. A notified waiter whose request came too late will be
   * notified again.
   */
  taken(resource: string, peer: number): void {
    if (this.#total === 0) return;
    const list = this.#lists.get(resource);
    if (list === undefined) return;
    list.notifiedMono = list.elsewhereUntilMono = -Infinity;
    list.taker = list.tickets.has(peer) ? peer : undefined;
    this.remove(resource, peer);
  }

  /**
   * The peer got the resource here but not at a majority, and keeps waiting, at its old place if it was on
   * the list. No waiter is notified before the resource is released, or before `untilMono`.
   */
  lost(resource: string, peer: number, owner: string, untilMono: number): void {
    this.add(resource, peer, owner);
    const list = this.#lists.get(resource);
    if (list === undefined) return;
    if (list.taker === peer && list.tickets.has(peer)) list.favoured ??= peer;
    list.taker = undefined;
    list.elsewhereUntilMono = untilMono;
  }

  /** The resource was released, whichever acceptors had granted it. */
  released(resource: string): void {
    const list = this.#total === 0 ? undefined : this.#lists.get(resource);
    if (list !== undefined) list.elsewhereUntilMono = -Infinity;
  }

  /**
   * Makes the first of these peers on the list the next to be notified (E3). False when none of them waits.
   */
  favour(resource: string, peers: ReadonlySet<number>): boolean {
    const list = this.#lists.get(resource);
    const peer = [...(list?.tickets.keys() ?? [])].find((each) => peers.has(each));
    if (list === undefined || peer === undefined) return false;
    if (list.first !== peer) list.notifiedMono = -Infinity; // The notified waiter keeps its place and loses its priority.
    list.favoured = peer;
    return true;
  }

  /** Removes a disconnected peer. */
  forget(peer: number): void {
    for (const { resource } of this.#byPeer.get(peer)?.lists ?? []) this.remove(resource, peer);
  }

  /** Removes all peers. */
  clear(): void {
    for (const peer of this.#byPeer.keys()) this.forget(peer);
    this.quotas.everybodyGone();
  }

  /** Whether a peer must leave the resource to a recently notified waiter. */
  standsBack(resource: string, peer: number, mono: number): boolean {
    if (this.#total === 0) return false;
    const list = this.#lists.get(resource);
    return list !== undefined && this.#isPatient(list, mono) && !list.tickets.has(peer);
  }

  /** Some of the awaited resources, continuing where the last call ended. */
  *sweep(limit: number): Generator<string> {
    for (let looked = 0; looked < limit; looked += 1) {
      this.#sweep ??= this.#lists.entries();
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = undefined;
        return;
      }
      yield next.value[0];
    }
  }

  #isPatient(list: WaitingList, mono: number): boolean {
    return mono < list.notifiedMono + this.#patienceMs;
  }

  #drop(list: WaitingList, peer: number): void {
    list.tickets.delete(peer);
    if (list.favoured === peer) list.favoured = undefined;
    this.#total -= 1;
    if (list.tickets.size === 0) this.#lists.delete(list.resource);
    const { payer, lists } = this.#byPeer.get(peer)!;
    this.quotas.charge(payer, -list.places);
    lists.delete(list);
    if (lists.size === 0) this.#byPeer.delete(peer);
  }
}
