import { leavesRoom } from "../../protocol/quotas.js";
import type { World } from "../../../common/ports.js";
import { Calls } from "./calls.js";
import type { Counters } from "./counters.js";
import type { Link, LinkPorts, MessageHandler } from "./link.js";
import { loopbackLink } from "./loopback.js";
import type { ClockStamp } from "../wire/codec.js";
import { ownerName } from "../../protocol/ballot.js";
import type { Identity } from "../wire/identity.js";
import type { Role } from "../../../runtime/security/roles.js";
import type { TransportHandler } from "./transport-handler.js";
import type { TransportOptions } from "./transport-options.js";

/**
 * Rounds of loopback in one flush. A message to ourselves leads to more: a request, its answer, the next
 * phase's request and answer. The bound only keeps a mistake from spinning; the rest follows in the next
 * turn.
 */
const LOOPBACK_ROUNDS_MAX = 8;

/**
 * All links of a transport: which peers are connected, which links to flush at the end of the turn, and
 * which have gone silent.
 */
export class Links implements LinkPorts {
  readonly role: Role;
  readonly view: number;
  readonly messages: MessageHandler;
  readonly counters: Counters;
  readonly linkBytesMax: number;
  readonly calls: Calls;
  /** A member's link to itself. */
  readonly loopback: Link | undefined;

  readonly #silentTicksMax: number;
  readonly #clientsMax: number;
  readonly #byKey = new Map<string, Link>();
  readonly #dirty: Link[] = [];
  readonly #stamp: ClockStamp = { monoMs: 0, loMs: 0, hiMs: 0 };
  #loopbackDirty = false;
  #flush: NodeJS.Immediate | undefined;
  #flushing = false;
  #clients = 0;
  /** Client links for each account. */
  readonly #clientsOf = new Map<string, number>();

  constructor(
    identity: Identity,
    world: World,
    handler: TransportHandler,
    counters: Counters,
    options: TransportOptions,
  ) {
    this.role = identity.role;
    this.view = identity.view;
    this.messages = handler.messages;
    this.counters = counters;
    this.linkBytesMax = options.linkBytesMax;
    this.#silentTicksMax = options.silentHeartbeatsMax;
    this.#clientsMax = options.clientsMax;
    this.calls = new Calls(handler, counters, world.timers);
    this.loopback = this.role === "member" ? loopbackLink(this, world.clock, identity) : undefined;
  }

  /**
   * Whether one more client is admitted: a single account gets most of the places, and never the last of
   * them.
   */
  hasRoomFor(account: string): boolean {
    return leavesRoom(this.#clientsOf.get(account) ?? 0, this.#clientsMax - this.#clients);
  }

  #countClient({ role, account }: Link, more: 1 | -1): void {
    if (role === "member") return;
    this.#clients += more;
    const count = (this.#clientsOf.get(account) ?? 0) + more;
    if (count === 0) this.#clientsOf.delete(account);
    else this.#clientsOf.set(account, count);
  }

  values(): Iterable<Link> {
    return this.#byKey.values();
  }

  get(peer: Identity): Link | undefined {
    return this.#byKey.get(linkKeyOf(peer));
  }

  /** The link to a member of this name. */
  member(nodeId: string): Link | undefined {
    return this.#byKey.get(linkKeyOf({ role: "member", nodeId, incarnation: "" }));
  }

  /**
   * Adds a link after its handshake. An older link of the same peer is closed first, because the peer knows
   * best which one it uses.
   */
  add(link: Link): void {
    const key = linkKeyOf(link.peer);
    const older = this.#byKey.get(key);
    if (older !== undefined) {
      this.counters["connections.replaced"] += 1;
      older.close("replaced by a newer connection of the same peer");
    }
    this.#byKey.set(key, link);
    this.#countClient(link, 1);
    this.counters["connections.opened"] += 1;
  }

  remove(link: Link, reason: string): void {
    this.counters["connections.closed"] += 1;
    if (this.#byKey.get(linkKeyOf(link.peer)) === link) this.#byKey.delete(linkKeyOf(link.peer));
    this.#countClient(link, -1);
    this.calls.linkClosed(link, reason);
  }

  markDirty(link: Link): void {
    if (link === this.loopback) this.#loopbackDirty = true;
    else this.#dirty.push(link);
    if (!this.#flushing) this.#flush ??= setImmediate(this.flush);
  }

  /** Sends this turn's output, with one write for each peer. */
  readonly flush = (): void => {
    clearImmediate(this.#flush);
    this.#flush = undefined;
    this.#flushing = true;
    try {
      // Loopback first, because its answers may be for other peers.
      this.#flushLoopback();
      this.#flushDirty();
    } finally {
      this.#flushing = false;
      if (this.#loopbackDirty) this.#flush = setImmediate(this.flush);
    }
  };

  #flushLoopback(): void {
    for (let round = 0; this.#loopbackDirty && round < LOOPBACK_ROUNDS_MAX; round += 1) {
      this.#loopbackDirty = false;
      this.messages.stamp(this.#stamp);
      this.loopback!.flush(this.#stamp);
    }
  }

  #flushDirty(): void {
    const dirty = this.#dirty;
    if (dirty.length === 0) return;
    this.messages.stamp(this.#stamp);
    for (const link of dirty) link.flush(this.#stamp);
    dirty.length = 0;
  }

  /** Called once per heartbeat: idle links send an empty batch, and silent ones are closed. */
  tick(): void {
    for (const link of this.#byKey.values()) {
      // Counted in ticks, not in time: a suspended process wakes with one tick, before it has read the
      // waiting input.
      if (link.tick() >= this.#silentTicksMax) {
        this.counters["connections.silent"] += 1;
        link.close(`nothing was heard for ${this.#silentTicksMax} heartbeats`);
      }
    }
  }

  /** Cancels the pending flush and the loopback. */
  stop(): void {
    this.loopback?.close("closed");
    clearImmediate(this.#flush);
    this.#flush = undefined;
  }
}

/** The key that is unique among connections: a member's id, and for others their incarnation too. */
function linkKeyOf({ role, nodeId, incarnation }: Pick<Identity, "role" | "nodeId" | "incarnation">): string {
  return role === "member" ? `member ${nodeId}` : `${role} ${ownerName(nodeId, incarnation)}`;
}
