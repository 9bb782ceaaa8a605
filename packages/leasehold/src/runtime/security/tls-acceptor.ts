import type { Socket } from "node:net";
import { createServer } from "node:tls";
import type { Server, TLSSocket } from "node:tls";
import type { Timer, Timers } from "../../common/ports.js";
import { handshakeFault } from "./auth-fault.js";
import type { AuthFault } from "./auth-fault.js";
import type { Credentials } from "./credentials.js";
import type { Proof } from "./proof.js";

/**
 * The first byte of every TLS connection. No plain frame begins with it, because its length would exceed the
 * maximum.
 */
const tlsHandshake = 0x16;

/** The outcome of an accepted connection's TLS handshake. Exactly one of the two is called, once. */
export interface TlsOutcome {
  /** The TLS handshake is complete, or there will be none. A fault says why the peer is not authenticated. */
  passed(socket: Socket, proof: Proof | AuthFault): void;
  /** There is no TLS connection. Without a reason, the peer closed the connection, which is not a fault. */
  failed(reason: AuthFault | "timeout" | undefined): void;
}

interface PendingHandshake {
  readonly socket: Socket;
  readonly outcome: TlsOutcome;
  readonly timer: Timer;
  reason: AuthFault | "timeout" | undefined;
  finished: boolean;
}

/** Performs the TLS handshake of accepted connections, and reports the peer's proven identity. */
export class TlsAcceptor {
  readonly #credentials: Credentials;
  readonly #timers: Timers;
  readonly #timeoutMs: number;
  /** This server never listens: connections are passed to it. */
  readonly #server: Server;
  #version: number;
  /** Keyed by remote address and port, which are unique among connections to one local address. */
  readonly #pending = new Map<string, PendingHandshake>();

  constructor(credentials: Credentials, timers: Timers, timeoutMs: number) {
    this.#credentials = credentials;
    this.#timers = timers;
    this.#timeoutMs = timeoutMs;
    this.#version = credentials.version;
    this.#server = createServer(credentials.serverOptions());
    this.#server.on("secureConnection", this.#secured);
    this.#server.on("tlsClientError", this.#faulty);
  }

  accept(socket: Socket, outcome: TlsOutcome): void {
    if (this.#version !== this.#credentials.version) {
      this.#version = this.#credentials.version;
      this.#server.setSecureContext(this.#credentials.serverOptions());
    }
    const key = keyOf(socket);
    const timer = this.#timers.after(this.#timeoutMs, () => {
      pending.reason = "timeout";
      socket.destroy();
    });
    const pending: PendingHandshake = { socket, outcome, timer, reason: undefined, finished: false };
    this.#pending.set(key, pending);
    socket.once("close", () => {
      if (this.#finish(key, pending)) outcome.failed(pending.reason);
    });
    socket.on("error", () => {});
    socket.once("data", (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      if (first[0] === tlsHandshake) this.#server.emit("connection", socket);
      else this.#refusePlain(key, pending);
    });
  }

  /** A peer without TLS gets the refusal in plain frames, because it could not read TLS. */
  #refusePlain(key: string, pending: PendingHandshake): void {
    this.#finish(key, pending);
    pending.outcome.passed(pending.socket, {
      cause: "plain",
      text: "only TLS connections are accepted here",
    });
    pending.socket.resume();
  }

  /** Ends the handshakes in progress. */
  close(): void {
    for (const { socket } of this.#pending.values()) socket.destroy();
  }

  readonly #secured = (socket: TLSSocket): void => {
    const key = keyOf(socket);
    const pending = this.#pending.get(key);
    if (pending === undefined) {
      socket.destroy();
      return;
    }
    this.#finish(key, pending);
    pending.outcome.passed(socket, this.#credentials.proofOf(socket, "accepting"));
  };

  readonly #faulty = (error: Error, socket: TLSSocket): void => {
    const pending = this.#pending.get(keyOf(socket));
    const fault = handshakeFault(error, "accepting");
    if (pending === undefined || fault === undefined) return;
    pending.reason ??= this.#explained(fault, this.#credentials.claimOf(socket));
    // A peer that stayed connected would occupy a file descriptor, and there is nothing more to send to it.
    pending.socket.destroy();
  };

  #explained(fault: AuthFault, claim: string | undefined): AuthFault {
    if (claim !== undefined) {
      return { cause: fault.cause, text: `${fault.text} (it calls itself ${JSON.stringify(claim)})` };
    }
    if (fault.cause !== "key") return fault;
    // With certificates in use, this TLS error cannot mean a different cluster key.
    return {
      cause: "tls",
      text: "its bytes were changed in transit, or replayed from another connection",
    };
  }

  /** Returns false if the handshake had already finished. */
  #finish(key: string, pending: PendingHandshake): boolean {
    if (pending.finished) return false;
    pending.finished = true;
    // A new connection from the same address and port may have begun before the end of this one was reported.
    if (this.#pending.get(key) === pending) this.#pending.delete(key);
    pending.timer.cancel();
    return true;
  }
}

function keyOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
