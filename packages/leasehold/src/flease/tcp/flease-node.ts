import { cellFunctionVersion } from "../protocol/cells.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import type { Reading } from "../protocol/clock.js";
import { ownerName } from "../protocol/ballot.js";
import { isRequest } from "../protocol/message.js";
import type { Message } from "../protocol/message.js";
import type { FleasePeer } from "../peer.js";
import { FleaseProvider } from "../provider.js";
import type { FleaseDriver } from "../provider.js";
import { FleaseRunner } from "../runner.js";
import { Refusals } from "./refusals.js";
import { DataTeller } from "../admin/data-teller.js";
import { AdminRpc } from "../admin/admin-rpc.js";
import { writeClusterDocument } from "./cluster.js";
import type { Cluster } from "../views/cluster.js";
import type { Rejection } from "./wire/hello.js";
import { labelKeepLeases, Labels } from "./labels.js";
import type { Link } from "./transport/link.js";
import { listenAgain } from "./transport/listen-again.js";
import { LogLimit } from "../../runtime/log-limit.js";
import { MemberAddresses } from "./member-addresses.js";
import { Membership } from "./membership.js";
import { AdminTurns } from "./admin-turns.js";
import { NodeViews } from "./views/node-views.js";
import type { ViewKeeping } from "./views/node-views.js";
import { memberStatus } from "./status.js";
import { Transport } from "./transport/transport.js";
import { TcpMedium } from "./medium.js";
import { firstClientHandle } from "./unplaced-links.js";
import { transportDefaults, type TransportOptions } from "./transport/transport-options.js";
import type { TransportHandler } from "./transport/transport-handler.js";
import type { ClockStamp, Echo } from "./wire/codec.js";
import type { Claims, Identity } from "./wire/identity.js";
import type { Role } from "../../runtime/security/roles.js";
import type { Logger } from "../../runtime/logger.js";
import type { MemberStatus } from "./types.js";

export interface FleaseNodeOptions {
  readonly world: World;
  readonly cluster: Cluster;
  readonly role: Role;
  readonly nodeId: string;
  readonly logger: Logger;
  /** Its label, at most 256 bytes. */
  readonly label?: string;
  readonly transport?: Partial<TransportOptions>;
  /** Where a member keeps its view; without one it cannot take part in changes of the members. */
  readonly viewKeeping?: ViewKeeping | undefined;
}

/** How long after its start a participant waits for a connection that it needs, and how often it looks. */
const firstLinksMs = 500;
const firstLinkLookMs = 5;

/** Admin RPCs that an observer may call. New ones are not for observers until listed here. */
const observerCalls: ReadonlySet<string> = new Set([
  "status",
  "list",
  "explain",
  "watch",
  "unwatch",
  "label",
]);

/** How long a member may take to confirm a label. */
const introduceTimeoutMs = 5_000;

/** A participant over TCP: carries the messages of a {@link FleasePeer}, and answers admin RPCs for it. */
export class FleaseNode implements TransportHandler, FleaseDriver {
  readonly runner: FleaseRunner;
  readonly peer: FleasePeer;
  readonly provider: FleaseProvider;
  readonly teller: DataTeller;
  readonly cluster: Cluster;
  readonly nodeId: string;
  transport: Transport;
  readonly #options: FleaseNodeOptions;
  readonly #world: World;
  readonly #medium = new TcpMedium();
  /** Links whose last batch contradicted our clock. */
  readonly #distrusted = new Set<Link>();
  readonly membership: Membership;
  readonly views: NodeViews;
  readonly #refusals = new Refusals();
  readonly #logLimit = new LogLimit();
  readonly #adminRpc: AdminRpc<Link>;
  readonly #adminTurns: AdminTurns;
  readonly #startedMono: number;
  /** Whether requests of the chunk in hand are answered: not while another process may be this member. */
  #answersRequests = false;
  #listening: string | undefined;
  readonly #addresses: MemberAddresses;
  /** By address, the members that are dialed there. */
  #dialed: ReadonlyMap<string, string> = new Map();
  #closed: Promise<void> | undefined;
  readonly #ending = new AbortController();
  /** Called whenever a member has been connected or lost. */
  onMembersChanged: () => void = () => {};
  readonly status = (): MemberStatus => memberStatus(this, this.#listening ?? "");

  constructor(options: FleaseNodeOptions) {
    this.#options = options;
    this.#world = options.world;
    this.cluster = options.cluster;
    this.nodeId = options.nodeId;
    const { settings, addresses } = options.cluster;
    this.#addresses = new MemberAddresses((id) => addresses[settings.members.indexOf(id)]);
    this.transport = this.#makeTransport();
    const { heartbeatMs = transportDefaults.heartbeatMs } = options.transport ?? {};
    const complain = (cause: string, text: string) => this.#complain("error", cause, text);
    this.membership = new Membership(this, heartbeatMs, complain);
    this.views = new NodeViews(this, options.viewKeeping);
    this.runner = new FleaseRunner({
      views: this.views.port(),
      settings: options.cluster.settings,
      acceptor: options.role === "member",
      world: options.world,
      medium: this.#medium,
      owner: () => ownerName(this.nodeId, this.transport.identity.incarnation),
      clockFault: (reason) => this.#beginAgain(reason),
      maintained: (now) => this.#maintain(now),
      restsUntil: (mono) => this.role !== "member" || this.membership.isSettledUntil(mono),
    });
    this.peer = this.runner.peer;
    this.#startedMono = this.now().mono;
    this.#countMembers();
    this.teller = new DataTeller(
      { of: (resource) => this.peer.cells.of(resource) },
      {
        link: (member) => this.#medium.member(member),
        ask: (member, method, params, timeoutMs) => this.ask(member, method, params, timeoutMs),
        nowMs: () => this.#world.clock.monotonicMs(),
      },
    );
    this.provider = new FleaseProvider(this);
    this.#adminTurns = new AdminTurns(options.world, (goOn) => this.#adminRpc.work(goOn));
    this.#adminRpc = new AdminRpc(this, new Labels(labelKeepLeases * this.peer.settings.ttlMaxMs));
    this.#attachLoopback();
    this.runner.maintain();
  }

  /** Starts to listen, for a member; resolves with the address. */
  async listen(address: string): Promise<string> {
    this.#listening = await this.transport.listen(address);
    return this.#listening;
  }

  /** Connects to all other members, and to nobody who is none; `found` says where members were found. */
  dialMembers(found: ReadonlyMap<string, string> = new Map()): void {
    const { members } = this.cluster.settings;
    const voters = this.views.voters();
    this.#countMembers();
    this.#addresses.found(found);
    const others = voters
      .map((index) => members[index]!)
      .filter((id) => id !== this.nodeId || this.role !== "member");
    const wanted = this.#addresses.wanted(others);
    // Removed members first: another member may have the address of one of them.
    for (const address of this.#dialed.keys()) if (!wanted.has(address)) this.#undial(address);
    this.#dialed = wanted;
    for (const [address, id] of wanted) this.transport.dial(address, id);
    for (const link of this.#medium.known(members)) {
      this.peer.forget(link.handle);
      this.#place(link);
    }
    this.membership.confirmAnew(this.now().mono);
  }

  /** A new member is confirmed like the others, because it must be able to vote before it counts. */
  #countMembers(): void {
    const comes = this.role === "member" && !this.views.isVoter(this.nodeId);
    this.membership.duplicates.members = this.views.voters().length + (comes ? 1 : 0);
  }

  #undial(address: string): void {
    this.transport.undial(address);
    this.#refusals.acceptedBy(address);
  }

  /** Aborts when this participant is closed. */
  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  get role(): Role {
    return this.#options.role;
  }

  link(member: number): Link | undefined {
    return this.#medium.member(member);
  }

  linkTo = (id: string): Link | undefined => this.transport.linkPorts.member(id);

  now(): Reading {
    return this.runner.now();
  }

  /** `AdminRpc` has work, which is done in slices between the turns of the protocol. */
  adminWork(): void {
    if (this.#closed === undefined) this.#adminTurns.wanted();
  }

  reachable(): number {
    return this.views.voters().filter((index) => this.#medium.member(index) !== undefined).length;
  }

  refusal(): LeaseholdError | undefined {
    return this.#refusals.ofMajority(this.views.voters().length);
  }

  address(member: number): string {
    return this.cluster.addresses[member]!;
  }

  /** Why a member is not connected. */
  whyUnlinked(member: number): LeaseholdError {
    const { members } = this.cluster.settings;
    return this.#refusals.why(this.#addresses.of(members[member]!) ?? this.address(member));
  }

  async ask(member: number, method: string, params: object, timeoutMs: number): Promise<unknown> {
    const link = this.#medium.member(member) ?? (await this.#firstLink(member));
    if (link === undefined) throw this.whyUnlinked(member);
    if (link === this.transport.loopback) return this.answer(link, method, params);
    return this.transport.call(link, method, params, timeoutMs);
  }

  /**
   * A client is open as soon as a majority is connected: the other members get a moment before they count as
   * missing.
   */
  async #firstLink(member: number): Promise<Link | undefined> {
    const { clock, timers } = this.#world;
    const untilMono = this.#startedMono + firstLinksMs;
    while (this.#closed === undefined && clock.monotonicMs() < untilMono) {
      await new Promise<void>((resolve) => timers.after(firstLinkLookMs, resolve));
      if (this.#medium.member(member) !== undefined) break;
    }
    return this.#medium.member(member);
  }

  close(): Promise<void> {
    this.#closed ??= this.#shutDown();
    return this.#closed;
  }

  async #shutDown(): Promise<void> {
    this.#ending.abort();
    this.runner.end();
    this.#adminRpc.close();
    this.#adminTurns.stop();
    await this.transport.close();
    this.#options.transport?.credentials?.close();
  }

  warn = (text: string): void => this.#options.logger.warn(text);
  log = (text: string): void => this.#options.logger.info(text);

  // Callbacks of the transport: `TransportHandler` says when

  connected(link: Link): void {
    this.peer.introduce(link.owner, link.account);
    const index = link.role === "member" ? this.cluster.settings.members.indexOf(link.peerId) : -1;
    // MUST take a member whose id is not known yet, too: our answers confirm it (`DuplicateWatch`).
    if (link.role === "member" && this.role === "member") this.membership.connected(link);
    if (index === -1) this.#medium.add(link);
    else this.#place(link);
    this.views.connected(link);
  }

  /** From here on this link leads to the member whose id it has. */
  #place(link: Link, index = this.cluster.settings.members.indexOf(link.peerId)): void {
    this.#medium.place(link, index);
    this.#refusals.acceptedBy(link.address);
    this.#introduce(link);
    this.teller.connected();
    this.#options.logger.info(`connected to member ${link.peerId} at ${link.address}`);
    this.onMembersChanged();
  }

  /** Sends our label once on each connection: members show it in answers about holders. */
  #introduce(link: Link): void {
    const { label } = this.#options;
    if (label === undefined) return;
    this.transport.call(link, "label", { label }, introduceTimeoutMs).catch(() => {
      // Then this member shows the name alone.
    });
  }

  disconnected(link: Link, reason: string): void {
    this.#distrusted.delete(link);
    this.#adminRpc.disconnected(link);
    this.peer.gone(link.owner, link.account);
    if (this.#medium.remove(link)) this.peer.forget(link.handle);
    this.membership.disconnected(link);
    if (!this.#medium.displace(link)) return;
    this.peer.forget(link.handle);
    this.#options.logger.warn(`lost member ${link.peerId}: ${reason}`);
    this.onMembersChanged();
  }

  refused(address: string, error: LeaseholdError): void {
    this.#refusals.refusedBy(address, error);
    this.onMembersChanged();
    this.#complain(
      "error",
      `${error.code} ${address}`,
      `this ${this.#options.role} cannot connect to ${error.message}`,
    );
  }

  refusedAsDuplicate(memberId: string, text: string): void {
    this.membership.refusedBy(memberId, text);
  }

  duplicateRefused(link: Link, address: string): void {
    if (link !== this.transport.loopback) this.membership.tellOfRival(link, address);
  }

  repelled(address: string, cause: string, text: string): void {
    this.#complain("warn", cause, `no connection from ${address}: ${text}`);
  }

  /** What others can bring about is logged once a minute for each cause, however often they do. */
  #complain(level: "warn" | "error", cause: string, text: string): void {
    const line = this.#logLimit.line(cause, text, this.#world.clock.monotonicMs());
    if (line !== undefined) this.#options.logger[level](line);
  }

  /** A loss was said once, by `disconnected`; the transport keeps trying and counts. */
  unreachable(): void {}

  admit(peer: Identity): Rejection | undefined {
    const { role, nodeId: id } = peer;
    if (role !== "member") return undefined;
    if (!this.cluster.settings.members.includes(id) && !this.#medium.mayCome(id, this.role))
      return { reason: "notAdmitted", text: `${JSON.stringify(id)} is no member of this cluster` };
    const objection = this.membership.duplicates.objection(id, peer.incarnation);
    return objection === undefined ? undefined : { reason: "twin", text: objection };
  }

  clusterDocument(): string {
    return writeClusterDocument(this.cluster, this.views.document());
  }

  stamp(into: ClockStamp): void {
    const now = this.now();
    into.monoMs = now.mono;
    into.loMs = now.lo;
    into.hiMs = now.hi;
  }

  chunk(): void {
    this.#answersRequests = this.membership.duplicates.votes(this.runner.arrived().mono);
  }

  stamped(link: Link, stamp: ClockStamp, echo: Echo): void {
    if (link.handle < firstClientHandle) {
      const now = this.runner.reading;
      this.membership.echoed(link, echo, now.mono);
      if (echo.loMs !== 0) {
        const elapsedMs = Math.max(0, now.mono - echo.monoMs - echo.heldMs);
        this.peer.skew.measure(link.handle, stamp.loMs, stamp.hiMs, elapsedMs, now);
      }
    }
    if (this.runner.believes(link.handle, stamp.loMs, stamp.hiMs, echo.loMs)) this.#distrusted.delete(link);
    else this.#distrusted.add(link);
  }

  message(link: Link, message: Message): void {
    // A pair whose clocks contradict each other does not count for each other's quorums (3.10).
    if (this.#distrusted.has(link)) return;
    if (!this.#answersRequests && isRequest(message.kind)) return;
    const reply = this.runner.receive(link.handle, message);
    if (reply !== undefined) link.send(reply);
  }

  chunkEnd(): void {
    this.runner.poke();
  }

  answer(link: Link, method: string, params: unknown): unknown {
    if (link.role === "observer" && !observerCalls.has(method)) {
      throw new LeaseholdError("PERMISSION_DENIED", `an observer may not call ${JSON.stringify(method)}`);
    }
    if (method === "rival") return this.membership.toldOfRival(link, params);
    if (method === "connected") return this.membership.toldOfConnections(link, params);
    return this.views.answer(link, method, params) ?? this.#adminRpc.answer(link, method, params);
  }

  /** Every peer must learn the new incarnation, by new connections (3.2, 3.10). */
  #beginAgain(reason: string): void {
    this.#options.logger.error(`clock fault: ${reason}; every lease of this process is lost`);
    const before = this.transport;
    // Messages to ourselves in flight belong to the former clock, which the new one would contradict.
    before.loopback?.close("clock fault");
    this.#medium.clear();
    this.peer.everybodyGone();
    this.#distrusted.clear();
    this.membership.restarted();
    this.#adminRpc.close();
    this.transport = this.#makeTransport();
    this.#attachLoopback();
    void this.#reconnect(before);
  }

  async #reconnect(before: Transport): Promise<void> {
    const { transport } = this; // Another fault may follow meanwhile, with a transport and a call of its own.
    const isWanted = () => this.#closed === undefined && this.transport === transport;
    await before.close();
    if (!isWanted()) return;
    this.dialMembers();
    if (this.#listening === undefined) return;
    await listenAgain(transport, this.#listening, isWanted, this.#world.timers, this.#options.logger);
  }

  #makeTransport(): Transport {
    const { cluster, role, nodeId, world, transport } = this.#options;
    const claims: Claims = {
      role,
      nodeId,
      cluster: cluster.name,
      configHash: cluster.configHash,
      view: cluster.settings.view,
      cellFunction: cellFunctionVersion,
    };
    return new Transport(claims, world, this, transport);
  }

  #attachLoopback(): void {
    const { loopback } = this.transport;
    if (loopback === undefined) return;
    const index = this.cluster.settings.members.indexOf(this.nodeId);
    this.#medium.place(loopback, index);
    this.peer.introduce(loopback.owner, loopback.account);
    this.#adminRpc.labels.set(loopback, this.#options.label);
  }

  #maintain(now: Reading): void {
    // After the acceptor may have become ready: from then on every connected member counts, even one that
    // disconnects at this moment.
    const { acceptor } = this.peer;
    if (acceptor && this.membership.maintain(now, acceptor.ready)) acceptor.beginRecoveryWait(now);
    this.views.maintain(now);
    this.#adminRpc.maintain(now);
    this.teller.maintain();
  }
}
