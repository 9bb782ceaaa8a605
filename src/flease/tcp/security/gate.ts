import type { Socket } from "node:net";
import { createServer } from "node:tls";
import type { Server, TLSSocket } from "node:tls";
import type { Timer, Timers } from "../../../lease/ports.js";
import { handshakeFault } from "./auth-fault.js";
import type { AuthFault } from "./auth-fault.js";
import type { Credentials } from "./credentials.js";
import type { Proof } from "./proof.js";

/** The first byte of every TLS connection. None of our frames begins so: it would be longer than any may be. */
const TLS_HANDSHAKE = 0x16;

/** How it ended for one who came to the gate. Exactly one of the two is called, once. */
export interface GateOutcome {
  /** The TLS handshake is done, or there will be none; a fault says why the other side is not believed. */
  passed(socket: Socket, proof: Proof | AuthFault): void;
  /** There is no TLS connection. Without a reason nobody did anything wrong: the connection just went. */
  failed(reason: AuthFault | "timeout" | undefined): void;
}

interface Entrant {
  readonly socket: Socket;
  readonly outcome: GateOutcome;
  readonly timer: Timer;
  reason: AuthFault | "timeout" | undefined;
  left: boolean;
}

/** The TLS side of accepting connections: takes plain sockets, and gives them back with who is behind them. */
export class Gate {
  readonly #credentials: Credentials;
  readonly #timers: Timers;
  readonly #timeoutMs: number;
  /** It never listens: connections are handed to it. */
  readonly #server: Server;
  #version: number;
  /** By remote address and port, which no two connections to one address of ours have in common. */
  readonly #entrants = new Map<string, Entrant>();

  constructor(credentials: Credentials, timers: Timers, timeoutMs: number) {
    this.#credentials = credentials;
    this.#timers = timers;
    this.#timeoutMs = timeoutMs;
    this.#version = credentials.version;
    this.#server = createServer(credentials.serverOptions());
    this.#server.on("secureConnection", this.#secured);
    this.#server.on("tlsClientError", this.#faulty);
  }

  enter(socket: Socket, outcome: GateOutcome): void {
    if (this.#version !== this.#credentials.version) {
      this.#version = this.#credentials.version;
      this.#server.setSecureContext(this.#credentials.serverOptions());
    }
    const key = keyOf(socket);
    const timer = this.#timers.after(this.#timeoutMs, () => {
      entrant.reason = "timeout";
      socket.destroy();
    });
    const entrant: Entrant = { socket, outcome, timer, reason: undefined, left: false };
    this.#entrants.set(key, entrant);
    socket.once("close", () => {
      if (this.#leave(key, entrant)) outcome.failed(entrant.reason);
    });
    socket.on("error", () => {});
    socket.once("data", (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      if (first[0] === TLS_HANDSHAKE) this.#server.emit("connection", socket);
      else this.#unsecured(key, entrant);
    });
  }

  /** Whoever speaks plainly is answered plainly, as he would understand nothing else. */
  #unsecured(key: string, entrant: Entrant): void {
    this.#leave(key, entrant);
    entrant.outcome.passed(entrant.socket, { cause: "plain", text: "only TLS connections are taken here" });
    entrant.socket.resume();
  }

  /** Ends the handshakes that are under way. */
  close(): void {
    for (const { socket } of this.#entrants.values()) socket.destroy();
  }

  readonly #secured = (socket: TLSSocket): void => {
    const key = keyOf(socket);
    const entrant = this.#entrants.get(key);
    if (entrant === undefined) {
      socket.destroy();
      return;
    }
    this.#leave(key, entrant);
    entrant.outcome.passed(socket, this.#credentials.proofOf(socket, "accepting"));
  };

  readonly #faulty = (error: Error, socket: TLSSocket): void => {
    const entrant = this.#entrants.get(keyOf(socket));
    const fault = handshakeFault(error, "accepting");
    if (entrant === undefined || fault === undefined) return;
    entrant.reason ??= this.#explained(fault, this.#credentials.claimOf(socket));
    // Whoever stays connected after that gets nothing any more.
    entrant.socket.destroy();
  };

  #explained(fault: AuthFault, claim: string | undefined): AuthFault {
    if (claim !== undefined) {
      return { cause: fault.cause, text: `${fault.text} (it calls itself ${JSON.stringify(claim)})` };
    }
    if (fault.cause !== "key") return fault;
    // What would be another key among those who use keys.
    return {
      cause: "tls",
      text: "what it sends was changed on its way, or was recorded of another connection",
    };
  }

  /** False when it has left before. */
  #leave(key: string, entrant: Entrant): boolean {
    if (entrant.left) return false;
    entrant.left = true;
    // The next connection from there may be here before the end of the last one has been told.
    if (this.#entrants.get(key) === entrant) this.#entrants.delete(key);
    entrant.timer.cancel();
    return true;
  }
}

function keyOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
