import type { Reading } from "leasehold/inner/flease/protocol/clock.js";
import type { FleasePeer } from "leasehold/inner/flease/peer.js";
import { AdminRpc } from "leasehold/inner/flease/admin/admin-rpc.js";
import type { AdminHost, AdminLabels, AdminLink } from "leasehold/inner/flease/admin/admin-rpc.js";
import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import type { ReleaseRequest } from "leasehold/inner/lease/provider.js";
import type { Timer, Timers } from "leasehold/inner/common/ports.js";
import type { NodeSide, NodeView, ProgramNode } from "../stage/node.js";
import type { Stage } from "../stage/stage.js";

/** A connection to one incarnation of another node, or to itself. */
class Connection implements AdminLink {
  readonly node: ProgramNode;
  readonly incarnation: number;
  readonly owner: string;

  constructor(node: ProgramNode) {
    this.node = node;
    this.incarnation = node.incarnation;
    this.owner = node.owner;
  }

  get handle(): number {
    return this.node.index;
  }

  get role(): "member" | "client" {
    return this.node.isMember ? "member" : "client";
  }

  get isOpen(): boolean {
    const { node } = this;
    return node.peer !== undefined && node.incarnation === this.incarnation && node.owner === this.owner;
  }
}

interface Pending {
  readonly link: Connection;
  readonly timer: Timer;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** An admin RPC, or the answer to one, as it goes over the network. */
interface Note {
  readonly id: number;
  readonly method?: string;
  readonly params?: object;
  readonly value?: unknown;
  readonly error?: string;
}

/** Labels are empty here. */
const noLabels: AdminLabels<Connection> = {
  set: () => true,
  of: () => undefined,
  gone: () => {},
  sweep: () => {},
};

/** The admin RPCs and answers of one life of a node. */
export class Side implements NodeSide, AdminHost<Connection> {
  readonly calls: AdminRpc<Connection>;
  readonly peer: FleasePeer;
  readonly #world: Stage;
  readonly #node: ProgramNode;
  readonly #timers: Timers;
  readonly #connections: (Connection | undefined)[] = [];
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #works = false;

  constructor(world: Stage, node: ProgramNode, timers: Timers) {
    this.#world = world;
    this.#node = node;
    this.#timers = timers;
    this.peer = node.peer!;
    this.calls = new AdminRpc(this, noLabels);
  }

  now(): Reading {
    return this.#node.runner!.now();
  }

  status(): null {
    return null;
  }

  /** Each step in an event of its own: whatever else happens may happen in between. */
  adminWork(): void {
    if (this.#works) return;
    this.#works = true;
    this.#timers.after(0, () => {
      this.#works = false;
      if (this.calls.work(() => false)) this.adminWork();
    });
  }

  /** The simulated node is its own transport: it makes the connections itself. */
  get transport(): this {
    return this;
  }

  get loopback(): Connection | undefined {
    return this.#node.isMember ? this.#connect(this.#node) : undefined;
  }

  get links(): Connection[] {
    const others = this.#world.nodes.filter((other) => other !== this.#node && other.peer !== undefined);
    return others.map((other) => this.#connect(other));
  }

  get provider(): { releaseRequested(request: ReleaseRequest): void } {
    return { releaseRequested: (request) => this.#node.waist?.provider.releaseRequested(request) };
  }

  /** Asks a member, like a program's driver. */
  async ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown> {
    const to = this.#world.nodes[member]!;
    if (to.peer === undefined) throw unreachable(to.name);
    const link = this.#connect(to);
    if (to === this.#node) return this.calls.answer(link, method, params);
    return this.call(link, method, params, timeoutMs);
  }

  /** Something has arrived. */
  hear(from: ProgramNode, text: string): void {
    const note = JSON.parse(text) as Note;
    if (note.method !== undefined) void this.#answer(this.#connect(from), note.id, note.method, note.params);
    else this.#settle(note);
  }

  /** A node has died or goes on as another owner: connections to what it was are gone. */
  disconnected(node: NodeView): void {
    const link = this.#connections[node.index];
    if (link !== undefined && !link.isOpen) this.#drop(link);
  }

  /** Closes all connections, finally or to continue as another owner. */
  close(): void {
    this.calls.close();
    this.#connections.length = 0;
    for (const id of this.#pending.keys()) this.#settle({ id, error: "the connection was closed" });
  }

  #connect(node: ProgramNode): Connection {
    const known = this.#connections[node.index];
    if (known?.isOpen === true) return known;
    if (known !== undefined) this.#drop(known);
    return (this.#connections[node.index] = new Connection(node));
  }

  #drop(link: Connection): void {
    const { index, name } = link.node;
    this.#connections[index] = undefined;
    this.calls.disconnected(link);
    for (const [id, { link: waiting }] of this.#pending)
      if (waiting === link) this.#settle({ id, error: `${name} is gone` });
    this.#world.stir(this.#node);
  }

  call(link: Connection, method: string, params: object, timeoutMs: number): Promise<unknown> {
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      const timer = this.#timers.after(timeoutMs, () =>
        this.#settle({ id, error: `no answer within ${timeoutMs} ms` }),
      );
      this.#pending.set(id, { link, timer, resolve, reject });
      this.#post(link, { id, method, params });
    });
  }

  async #answer(link: Connection, id: number, method: string, params: object | undefined): Promise<void> {
    try {
      this.#post(link, { id, value: await this.calls.answer(link, method, params) });
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      this.#post(link, { id, error: error.message });
    }
  }

  #post(link: Connection, note: Note): void {
    if (link.isOpen && this.#node.side === this)
      this.#node.whisper(link.node.index, link.incarnation, JSON.stringify(note));
  }

  #settle({ id, value, error }: Note): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    pending.timer.cancel();
    if (error === undefined) pending.resolve(value);
    else pending.reject(unreachable(error));
  }
}

function unreachable(why: string): LeaseholdError {
  return new LeaseholdError("UNREACHABLE", why);
}
