import type { Socket } from "node:net";
import { LeaseholdError } from "../../../lease/errors.js";
import type { Timer, World } from "../../../common/ports.js";
import { accountOf } from "./account.js";
import { parseAddress } from "../../../runtime/address.js";
import { Connection } from "./connection.js";
import { newCounters } from "./counters.js";
import type { Counters } from "./counters.js";
import { Dialer } from "./dialer.js";
import type { DialerPorts } from "./dialer.js";
import type { DecodedIdentity } from "../wire/hello.js";
import { checkIdentity } from "../wire/identity.js";
import type { Claims, Identity } from "../wire/identity.js";
import { mismatch, refusalError } from "./judge.js";
import type { Link } from "./link.js";
import { Links } from "./links.js";
import { Listener } from "./listener.js";
import { authRejection } from "../security/rejection.js";
import type { LocalRejection } from "../security/rejection.js";
import { TlsAcceptor } from "../../../runtime/security/tls-acceptor.js";
import { IncarnationKey } from "../security/incarnation-key.js";
import { nothingAsked, unprovenClaim } from "../../../runtime/security/proof.js";
import { claimOf } from "../security/claim.js";
import { transportDefaults } from "./transport-options.js";
import type { TransportOptions } from "./transport-options.js";
import type { TransportHandler } from "./transport-handler.js";

/** Interval of the timer that keeps the process alive and does nothing: some days, in ms. */
const KEEP_ALIVE_MS = 2 ** 30;

/**
 * TCP between one participant and its peers: one connection per pair, and one write per peer for all output
 * of an event loop turn. An open transport of a member keeps its process alive, even while no peer can be
 * reached, until `close`. A client's does not: its process lives while it waits for or holds a lease.
 */
export class Transport implements DialerPorts {
  /** Counts of refusals and drops, by stable names (`docs/internals/wire-calls.md`, Counters). */
  readonly counters: Counters = newCounters();
  readonly identity: Identity;
  readonly key: IncarnationKey;
  readonly world: World;
  readonly handler: TransportHandler;
  readonly options: TransportOptions;
  readonly linkPorts: Links;
  readonly #connections = new Set<Connection>();
  readonly #dialers = new Map<string, Dialer>();
  readonly #keepAlive: NodeJS.Timeout | undefined;
  readonly #tls: TlsAcceptor | undefined;
  #listener: Listener | undefined;
  #heartbeat: Timer;
  /** Accepted connections in their handshake (TLS or ours), ordered by their last progress. */
  readonly #inHandshake = new Set<Socket | Connection>();
  #closing: Promise<void> | undefined;
  #lastConnectionClosed: (() => void) | undefined;

  /**
   * @param world its clock stamps receptions; `handler.messages.stamp` must use the same one
   * @param key of this participant's incarnation: its own, unless a test needs two transports of one
   * incarnation
   * @throws LeaseholdError `INVALID_CONFIG` for an identity that HELLO cannot carry.
   */
  constructor(
    claims: Claims,
    world: World,
    handler: TransportHandler,
    options: Partial<TransportOptions> = {},
    key: IncarnationKey = new IncarnationKey(),
  ) {
    this.identity = { ...claims, incarnation: key.incarnation };
    checkIdentity(this.identity);
    this.key = key;
    this.world = world;
    this.handler = handler;
    this.options = { ...transportDefaults, ...options };
    this.linkPorts = new Links(this.identity, world, handler, this.counters, this.options);
    const { credentials, handshakeTimeoutMs } = this.options;
    if (credentials !== undefined) this.#tls = new TlsAcceptor(credentials, world.timers, handshakeTimeoutMs);
    this.#heartbeat = world.timers.after(this.options.heartbeatMs, this.#tick);
    if (claims.role === "member") this.#keepAlive = setInterval(() => {}, KEEP_ALIVE_MS);
  }

  /** A member's link to itself: the same codec without a socket. `undefined` for clients. */
  get loopback(): Link | undefined {
    return this.linkPorts.loopback;
  }

  /** All links after their handshake, without the loopback. */
  get links(): Iterable<Link> {
    return this.linkPorts.values();
  }

  /**
   * Accepts connections. Resolves to the actual address, `host:port`.
   *
   * @throws LeaseholdError `INVALID_CONFIG` beyond loopback without credentials or `insecure`, or for an
   * unavailable address; `INVALID_URL`; `CLOSED`.
   */
  async listen(address: string): Promise<string> {
    if (this.#closing !== undefined) throw new LeaseholdError("CLOSED");
    const listener = new Listener(this.#accepted);
    const { insecure, credentials } = this.options;
    const bound = await listener.listen(address, insecure || credentials !== undefined);
    if (this.#closing !== undefined) {
      await listener.close();
      throw new LeaseholdError("CLOSED");
    }
    this.#listener = listener;
    return bound;
  }

  /**
   * Keeps a connection to an address until `undial` or `close`. Of two members the one with the smaller id
   * dials at once, and the other only after `standByMs` without a connection, so that they need not choose
   * between two connections. A peer that answers with another id than `peerId` is refused; a connection
   * that was dialed there for another id ends. Idempotent.
   *
   * @throws LeaseholdError `INVALID_URL`.
   */
  dial(address: string, peerId?: string): void {
    parseAddress(address);
    if (this.#closing !== undefined) return;
    const { role, nodeId } = this.identity;
    if (role === "member" && peerId === nodeId) return;
    const known = this.#dialers.get(address);
    if (known !== undefined && (peerId === undefined || (known.expectedId ?? peerId) === peerId)) {
      known.expectedId = peerId ?? known.expectedId;
      return;
    }
    known?.stop("another member is expected there");
    const standsBy = role === "member" && peerId !== undefined && peerId < nodeId;
    const dialer = new Dialer(this, address, peerId, standsBy);
    this.#dialers.set(address, dialer);
    dialer.start();
  }

  /** Ends the connection to an address and the attempts to reach it. */
  undial(address: string): void {
    const dialer = this.#dialers.get(address);
    this.#dialers.delete(address);
    dialer?.stop("no longer wanted");
  }

  /**
   * Makes a call to a peer outside the protocol.
   *
   * @throws LeaseholdError `UNREACHABLE` (no answer in time, link closed, too many calls), `CLOSED`, or the
   * error of the peer's handler.
   */
  async call(link: Link, method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    if (this.#closing !== undefined) throw new LeaseholdError("CLOSED");
    return this.linkPorts.calls.call(link, method, params, timeoutMs);
  }

  /** Sends what is queued, ends every link and leaves no handle open. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Lets the code called below see `closing`.
    await Promise.resolve();
    this.#heartbeat.cancel();
    this.linkPorts.flush();
    this.linkPorts.stop();
    this.linkPorts.calls.fail(undefined, () => new LeaseholdError("CLOSED"));
    this.#tls?.close();
    for (const dialer of this.#dialers.values()) dialer.stop("closed");
    for (const connection of this.#connections) connection.end("closed");
    const listening = this.#listener?.close();
    if (this.#connections.size > 0) {
      await new Promise<void>((resolve) => {
        this.#lastConnectionClosed = resolve;
      });
    }
    await listening;
    clearInterval(this.#keepAlive);
  }

  readonly #tick = (): void => {
    this.linkPorts.tick();
    this.#heartbeat = this.world.timers.after(this.options.heartbeatMs, this.#tick);
  };

  readonly #accepted = (socket: Socket, address: string): void => {
    if (this.#closing !== undefined) {
      socket.destroy();
      return;
    }
    if (this.#inHandshake.size >= this.options.handshakesMax) this.#giveUpOldest();
    if (this.#tls === undefined) this.#open(socket, address).begin(nothingAsked);
    else this.#acceptTls(this.#tls, socket, address);
  };

  /**
   * Closes the connection whose handshake has made no progress for the longest, so that silent connections
   * cannot keep others out. An honest handshake completes long before.
   */
  #giveUpOldest(): void {
    const [oldest] = this.#inHandshake;
    this.counters["handshakes.givenUp"] += 1;
    this.#inHandshake.delete(oldest!);
    if (oldest instanceof Connection) oldest.close("too many handshakes are in progress");
    else oldest!.destroy();
  }

  #open(socket: Socket, address: string): Connection {
    const connection = new Connection(this, socket, address);
    this.#connections.add(connection);
    this.#inHandshake.add(connection);
    socket.on("data", connection.read);
    return connection;
  }

  #acceptTls(tls: TlsAcceptor, socket: Socket, address: string): void {
    this.#inHandshake.add(socket);
    tls.accept(socket, {
      passed: (secured, proof) => {
        this.#inHandshake.delete(socket);
        const connection = this.#open(secured, address);
        if ("cause" in proof) connection.distrust(proof);
        else connection.begin(proof);
      },
      failed: (reason) => {
        this.#inHandshake.delete(socket);
        if (reason === "timeout") this.counters["handshakes.timedOut"] += 1;
        else if (reason !== undefined)
          this.#repelled(address, authRejection(reason.cause, reason.text), "us");
      },
    });
  }

  // Implementation of `DialerPorts`, which says when each is called

  connecting(connection: Connection): void {
    this.#connections.add(connection);
  }

  isLinked(peerId: string): boolean {
    return this.linkPorts.member(peerId) !== undefined;
  }

  judge(connection: Connection, decoded: DecodedIdentity): LocalRejection | undefined {
    const ours = this.identity;
    const differs = mismatch(ours, decoded, this.options.versions);
    const theirs = decoded.identity;
    if (differs !== undefined || theirs === undefined) return differs;
    const unproven = unprovenClaim(connection.proof!, claimOf(theirs, ours));
    if (unproven !== undefined) return authRejection(unproven.cause, unproven.text);
    const id = JSON.stringify(theirs.nodeId);
    const expected = connection.dialing?.expectedId;
    if (connection.dialing !== undefined && theirs.role !== "member")
      return { reason: "notAdmitted", text: `${id} accepts connections but is no member` };
    if (theirs.role === "member" && ours.role === "member" && theirs.nodeId === ours.nodeId)
      return { reason: "duplicate", text: `both sides are the member ${id}` };
    if (expected !== undefined && expected !== theirs.nodeId) {
      const text = `the member there should be ${JSON.stringify(expected)} and is ${id}`;
      return { reason: "notAdmitted", text };
    }
    const older = this.linkPorts.get(theirs);
    // Applies for the life of the connection: its other end relies on it, even after a silence.
    if (older?.open === true && older.incarnation !== theirs.incarnation) {
      this.handler.connections.duplicateRefused(older, connection.address);
      const text = `another process is the member ${id} already, from ${older.address}; two processes must not be one member`;
      return { reason: "twin", text };
    }
    const account = accountOf(connection.proof!, theirs, connection.address);
    if (theirs.role !== "member" && older === undefined && !this.linkPorts.hasRoomFor(account)) {
      return { reason: "full", text: `as many clients as there may be of ${account} are connected already` };
    }
    return this.handler.connections.admit(theirs);
  }

  established(connection: Connection, link: Link): void {
    this.#inHandshake.delete(connection);
    connection.dialing?.opened(link.peerId);
    this.linkPorts.add(link);
    this.handler.connections.connected(link);
  }

  refused(connection: Connection, rejection: LocalRejection, by: "us" | "them"): void {
    const { dialing, address } = connection;
    const { peerId } = connection;
    if (rejection.reason === "twin" && by === "them" && peerId !== undefined && this.#closing === undefined)
      this.handler.connections.refusedAsDuplicate(peerId, rejection.text);
    if (dialing === undefined) {
      this.#repelled(address, rejection, by);
      return;
    }
    if (rejection.auth !== undefined) this.counters[`auth.refused.${rejection.auth}`] += 1;
    dialing.refused();
    if (this.#closing === undefined)
      this.handler.connections.refused(address, refusalError(address, rejection, by));
  }

  #repelled(address: string, { auth, reason, text }: LocalRejection, by: "us" | "them"): void {
    if (auth !== undefined) this.counters[`auth.refused.${auth}`] += 1;
    if (this.#closing !== undefined) return;
    if (by === "us") this.handler.connections.repelled(address, auth ?? reason, text, auth !== undefined);
    else this.handler.connections.repelled(address, `refused: ${reason}`, `it refuses us: ${text}`, false);
  }

  unlinked(link: Link, reason: string): void {
    this.linkPorts.remove(link, reason);
    if (this.#closing === undefined) this.handler.connections.disconnected(link, reason);
  }

  closed(connection: Connection, reason: string, opened: boolean): void {
    this.#connections.delete(connection);
    this.#inHandshake.delete(connection);
    const { dialing } = connection;
    if (dialing?.closed(opened) === true) {
      this.counters["dials.failed"] += 1;
      this.handler.connections.unreachable(dialing.address, reason);
    }
    if (this.#connections.size === 0) this.#lastConnectionClosed?.();
  }
}
