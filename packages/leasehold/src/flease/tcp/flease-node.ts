import type { World } from "../../common/ports.js";
import type { LeaseholdError } from "../../lease/errors.js";
import type { EventLog } from "../../runtime/event-log.js";
import { eventLog, type LogEvents } from "../../runtime/log-events.js";
import type { Logger } from "../../runtime/logger.js";
import type { Role } from "../../runtime/security/roles.js";
import { DataPublisher } from "../admin/data-publisher.js";
import type { FleasePeer } from "../peer.js";
import { ownerName } from "../protocol/ballot.js";
import { cellFunctionVersion } from "../protocol/cells.js";
import type { Reading } from "../protocol/clock.js";
import { FleaseProvider } from "../provider.js";
import type { FleaseDriver } from "../provider.js";
import { FleaseRunner } from "../runner.js";
import type { Cluster } from "../views/cluster.js";
import { TcpMedium } from "./medium.js";
import { MemberCalls } from "./member-calls.js";
import { MemberDialer } from "./member-dialer.js";
import { Membership } from "./membership.js";
import { PeerConnections } from "./peer-connections.js";
import { PeerMessages } from "./peer-messages.js";
import { ServedCalls } from "./served-calls.js";
import { memberStatus } from "./status.js";
import type { Link } from "./transport/link.js";
import { listenAgain } from "./transport/listen-again.js";
import { Transport } from "./transport/transport.js";
import type { TransportHandler } from "./transport/transport-handler.js";
import { transportDefaults, type TransportOptions } from "./transport/transport-options.js";
import type { MemberStatus } from "./types.js";
import { NodeViews } from "./views/node-views.js";
import type { ViewKeeping } from "./views/node-views.js";
import type { Claims } from "./wire/identity.js";

export interface FleaseNodeOptions {
  readonly world: World;
  readonly cluster: Cluster;
  readonly role: Role;
  readonly nodeId: string;
  readonly logger: Logger;
  /** A label shown with this participant's leases, at most 256 bytes. */
  readonly label?: string;
  readonly transport?: Partial<TransportOptions>;
  /** Storage of a member's view. A member without it cannot take part in changes of the members. */
  readonly viewKeeping?: ViewKeeping | undefined;
}

/**
 * A participant over TCP, composed of a peer on its runner, a transport and its handlers, and the parts that
 * dial and call the members. It opens and closes these, and gives all of them a new incarnation after a clock
 * fault.
 */
export class FleaseNode implements TransportHandler, FleaseDriver {
  readonly cluster: Cluster;
  readonly nodeId: string;
  readonly role: Role;
  readonly label: string | undefined;
  readonly events: EventLog<LogEvents>;
  /** The peer's medium: which link leads to which peer. */
  readonly medium = new TcpMedium();
  readonly messages = new PeerMessages(this);
  readonly connections = new PeerConnections(this);
  readonly calls: ServedCalls;
  readonly dialer: MemberDialer;
  readonly membership: Membership;
  readonly views: NodeViews;
  readonly runner: FleaseRunner;
  readonly peer: FleasePeer;
  readonly publisher: DataPublisher;
  readonly provider: FleaseProvider;
  /** A clock fault replaces it. */
  transport: Transport;
  /** Called whenever a member has connected, disconnected or refused. */
  onMembersChanged: () => void = () => {};
  readonly #options: FleaseNodeOptions;
  readonly #memberCalls: MemberCalls;
  readonly #ending = new AbortController();
  #listening: string | undefined;
  #closed: Promise<void> | undefined;
  readonly status = (): MemberStatus => memberStatus(this, this.#listening ?? "");

  constructor(options: FleaseNodeOptions) {
    const { cluster, label, logger, nodeId, role, world } = options;
    this.#options = options;
    this.cluster = cluster;
    this.nodeId = nodeId;
    this.role = role;
    this.label = label;
    this.events = eventLog(logger, () => world.clock.monotonicMs());
    this.dialer = new MemberDialer(cluster, () => this.transport);
    this.transport = this.#makeTransport();
    const { heartbeatMs = transportDefaults.heartbeatMs } = options.transport ?? {};
    this.membership = new Membership(this, heartbeatMs, (cause, text) =>
      this.events.limited("member-duplicate", cause, text, { member: nodeId }),
    );
    this.views = new NodeViews(this, options.viewKeeping);
    this.runner = new FleaseRunner({
      views: this.views.port(),
      settings: cluster.settings,
      acceptor: role === "member",
      world,
      medium: this.medium,
      owner: () => ownerName(nodeId, this.transport.identity.incarnation),
      clockFault: (reason) => this.#beginAgain(reason),
      maintained: (now) => this.#maintain(now),
      restsUntil: (mono) => role !== "member" || this.membership.isSettledUntil(mono),
    });
    this.peer = this.runner.peer;
    this.#memberCalls = new MemberCalls(this, world);
    this.#countMembers();
    this.publisher = new DataPublisher(
      { of: (resource) => this.peer.cells.of(resource) },
      {
        link: (member) => this.link(member),
        ask: (member, method, params, timeoutMs) => this.ask(member, method, params, timeoutMs),
        nowMs: () => world.clock.monotonicMs(),
      },
    );
    this.provider = new FleaseProvider(this);
    this.calls = new ServedCalls(this, world);
    this.connections.placeLoopback();
    this.runner.maintain();
  }

  /** Starts listening, for a member; resolves to the address. */
  async listen(address: string): Promise<string> {
    this.#listening = await this.transport.listen(address);
    return this.#listening;
  }

  /** Connects to all other members and nobody else. `found` holds addresses at which members were reached. */
  dialMembers(found: ReadonlyMap<string, string> = new Map()): void {
    const { members } = this.cluster.settings;
    this.#countMembers();
    const voters = this.views.voters().map((index) => members[index]!);
    this.dialer.dial(
      voters.filter((id) => id !== this.nodeId || this.role !== "member"),
      found,
    );
    this.connections.placeKnown();
    this.membership.confirmAnew(this.now().mono);
  }

  /** A new member is confirmed like the others, because it must be able to vote before it counts. */
  #countMembers(): void {
    const joins = this.role === "member" && !this.views.isVoter(this.nodeId);
    this.membership.duplicates.members = this.views.voters().length + (joins ? 1 : 0);
  }

  /** Aborts when this participant is closed. */
  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    return this.#closed;
  }

  async #shutDown(): Promise<void> {
    this.#ending.abort();
    this.runner.end();
    this.calls.close();
    await this.transport.close();
    this.#options.transport?.credentials?.close();
  }

  // The driver of the provider, and the hosts of the parts

  now(): Reading {
    return this.runner.now();
  }

  /** The link to a member, by its index in the cluster. */
  link(member: number): Link | undefined {
    return this.medium.member(member);
  }

  linkTo = (id: string): Link | undefined => this.transport.linkPorts.member(id);

  reachable(): number {
    return this.views.voters().filter((index) => this.link(index) !== undefined).length;
  }

  refusal(): LeaseholdError | undefined {
    return this.dialer.refusalOfMajority(this.views.voters().length);
  }

  address(member: number): string {
    return this.cluster.addresses[member]!;
  }

  /** The reason why a member is not connected. */
  whyUnlinked(member: number): LeaseholdError {
    return this.dialer.whyUnlinked(member);
  }

  ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown> {
    return this.#memberCalls.ask(member, method, params, timeoutMs);
  }

  // Incarnations

  /** Begins as another incarnation, which every peer learns by a new connection (3.2, 3.10). */
  #beginAgain(reason: string): void {
    this.events.log("clock-fault", `clock fault: ${reason}; every lease of this process is lost`, { reason });
    const before = this.transport;
    // Messages to ourselves in flight belong to the former clock, which the new one would contradict.
    before.loopback?.close("clock fault");
    this.medium.clear();
    this.peer.everybodyGone();
    this.messages.restarted();
    this.membership.restarted();
    this.calls.restarted();
    this.transport = this.#makeTransport();
    this.connections.placeLoopback();
    void this.#reconnect(before);
  }

  async #reconnect(before: Transport): Promise<void> {
    // Another fault may follow meanwhile, with its own transport and its own call.
    const { transport } = this;
    const isWanted = () => this.#closed === undefined && this.transport === transport;
    await before.close();
    if (!isWanted()) return;
    this.dialMembers();
    if (this.#listening === undefined) return;
    await listenAgain(transport, this.#listening, isWanted, this.#options.world.timers, this.events);
  }

  #makeTransport(): Transport {
    const { cluster, nodeId, role } = this;
    const claims: Claims = {
      role,
      nodeId,
      cluster: cluster.name,
      configHash: cluster.configHash,
      view: cluster.settings.view,
      cellFunction: cellFunctionVersion,
    };
    return new Transport(claims, this.#options.world, this, this.#options.transport);
  }

  #maintain(now: Reading): void {
    // Called after the acceptor may have become ready: from then on every connected member counts, even one
    // that disconnects at this moment.
    const { acceptor } = this.peer;
    if (acceptor && this.membership.maintain(now, acceptor.ready)) acceptor.beginRecoveryWait(now);
    this.views.maintain(now);
    this.calls.maintain(now);
    this.publisher.maintain();
  }
}
