import { connect } from "node:net";
import type { TcpNetConnectOpts } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { TLSSocket } from "node:tls";
import { backOffBoundMs, backOffMs } from "../../../common/back-off.js";
import type { Timer } from "../../../common/ports.js";
import { parseAddress } from "../../../runtime/address.js";
import { Connection } from "./connection.js";
import type { ConnectionPorts, Dialing } from "./connection.js";
import type { Credentials } from "../../../runtime/security/credentials.js";
import { nothingAsked } from "../../../runtime/security/proof.js";
import type { TransportOptions } from "./transport-options.js";

/** Size of the reused read buffer of dialed connections. */
const READ_BUFFER_BYTES = 64 * 1024;

/**
 * Retry delay after the first refusal. Its cause may pass within a moment, since members announce their
 * connections to each other.
 */
const FIRST_REFUSED_RETRY_MS = 50;

/** A connection shorter than this counts as a failed attempt, so that two conflicting sides cannot spin. */
const STABLE_MS = 1000;

export interface DialerPorts extends ConnectionPorts {
  readonly options: TransportOptions;
  /** Whether a member of this name is already connected through another address. */
  isLinked(peerId: string): boolean;
  connecting(connection: Connection): void;
}

/**
 * Keeps a connection to one address: exponential backoff with full jitter between attempts, without end.
 */
export class Dialer implements Dialing {
  readonly address: string;
  expectedId: string | undefined;
  version: number;
  /** Id of the last member that answered there. */
  #answeredId: string | undefined;
  readonly #ports: DialerPorts;
  readonly #readBuffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
  #connection: Connection | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  /** Refusals since it was last accepted. */
  #refusals = 0;
  #refused = false;
  /** The member there doesn't speak the version that was offered, and is offered an older one. */
  #offersOlder = false;
  readonly #standsBy: boolean;
  #openedMs = 0;
  #stopped = false;

  /** @param standsBy the other side dials too, and sooner: this side dials only if that fails */
  constructor(ports: DialerPorts, address: string, expectedId: string | undefined, standsBy: boolean) {
    this.#standsBy = standsBy;
    this.#ports = ports;
    this.address = address;
    this.expectedId = expectedId;
    this.version = ports.options.versions.newest;
  }

  start(): void {
    if (this.#standsBy) this.#retry(this.#standByMs());
    else this.#connect();
  }

  readonly #connect = (): void => {
    // A member with two addresses needs one connection; the other address is a fallback.
    const peerId = this.expectedId ?? this.#answeredId;
    if (peerId !== undefined && this.#ports.isLinked(peerId)) {
      this.#retry(this.#standByMs());
      return;
    }
    this.#refused = false;
    const { credentials } = this.#ports.options;
    const target: TcpNetConnectOpts = {
      ...parseAddress(this.address),
      onread: {
        buffer: this.#readBuffer,
        callback: (length: number) => {
          connection.receive(this.#readBuffer, length);
          return true;
        },
      },
    };
    const socket = credentials === undefined ? connect(target) : this.#secure(credentials, target);
    if (this.#ports.identity.role !== "member") socket.unref();
    const connection = new Connection(this.#ports, socket, this.address, this);
    this.#connection = connection;
    this.#ports.connecting(connection);
    if (credentials === undefined) connection.begin(nothingAsked);
  };

  #secure(credentials: Credentials, target: TcpNetConnectOpts): TLSSocket {
    const socket = connectSecurely({ ...target, ...credentials.dialOptions(this.#ports.identity) });
    return socket.once("secureConnect", () => {
      const proof = credentials.proofOf(socket, "dialing");
      if ("cause" in proof) this.#connection?.distrust(proof);
      else this.#connection?.begin(proof);
    });
  }

  opened(peerId: string): void {
    this.#answeredId = peerId;
    this.#openedMs = this.#ports.world.clock.monotonicMs();
    this.#refusals = 0;
  }

  offerOlder(): boolean {
    this.#offersOlder = !this.#stopped && this.version > this.#ports.options.versions.oldest;
    return this.#offersOlder;
  }

  refused(): void {
    this.#refused = true;
    this.#refusals += 1;
  }

  /** Another attempt follows. A refusal has been reported already. */
  closed(opened: boolean): boolean {
    if (this.#stopped) return false;
    if (this.#offersOlder) {
      this.#offersOlder = false;
      this.version -= 1;
      this.#connect();
      return false;
    }
    // The member may have been upgraded when it is back.
    this.version = this.#ports.options.versions.newest;
    const livedMs = opened ? this.#ports.world.clock.monotonicMs() - this.#openedMs : 0;
    this.#failures = livedMs >= STABLE_MS ? 0 : this.#failures + 1;
    const delayMs = this.#refused ? this.#refusedDelayMs() : this.#delayMs();
    this.#retry(this.#standsBy ? Math.max(delayMs, this.#standByMs()) : delayMs);
    return !opened && !this.#refused;
  }

  stop(reason: string): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#connection?.end(reason);
  }

  #retry(delayMs: number): void {
    this.#timer = this.#ports.world.timers.after(delayMs, this.#connect);
  }

  #delayMs(): number {
    const { dialBackoffMs, dialBackoffMsMax } = this.#ports.options;
    return backOffMs(this.#ports.world.random, this.#failures, dialBackoffMs, dialBackoffMsMax);
  }

  #refusedDelayMs(): number {
    const { refusedRetryMs } = this.#ports.options;
    const boundMs = backOffBoundMs(this.#refusals, FIRST_REFUSED_RETRY_MS, refusedRetryMs);
    return boundMs * (0.5 + 0.5 * this.#ports.world.random.next());
  }

  #standByMs(): number {
    return this.#ports.options.standByMs * (1 + this.#ports.world.random.next());
  }
}
