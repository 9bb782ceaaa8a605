import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { type Timers, LeaseholdError } from "leasehold/common";
import {
  type Address,
  formatAddress,
  type AuthFault,
  type Credentials,
  nothingAsked,
  type Proof,
  TlsAcceptor,
} from "leasehold/runtime";
import type { Answerer } from "../protocol/messages.js";
import { Connection } from "./connection.js";
import { authError, type Self } from "./introduction.js";

/** Two connections from each other node. The rest is for nodes that reconnect before a loss is noticed. */
const connectionsMax = 256;
/** Limit for unauthenticated connections. Beyond it the oldest is closed. */
const strangersMax = 64;
/** Timeout of the TLS handshake, ms. */
const handshakeMsMax = 5_000;

export interface ListenerOptions {
  readonly self: Self;
  readonly credentials: Credentials | undefined;
  readonly timers: Timers;
  readonly answerer: Answerer;
  /** Called for a peer that failed authentication or violated the protocol. */
  readonly refused: (address: string, why: LeaseholdError) => void;
}

/** The server for connections from other nodes. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #tls: TlsAcceptor | undefined;
  readonly #sockets = new Set<Socket>();
  /** Unauthenticated connections, oldest first. */
  readonly #strangers = new Set<Socket>();

  constructor(options: ListenerOptions) {
    this.#options = options;
    const { credentials, timers } = options;
    this.#tls = credentials && new TlsAcceptor(credentials, timers, handshakeMsMax);
    this.#server = createServer((socket) => this.#accept(socket));
    this.#server.maxConnections = connectionsMax;
  }

  /** @throws LeaseholdError `UNREACHABLE` if the address is taken. */
  async listen({ host, port }: Address): Promise<void> {
    this.#server.listen({ host, port });
    try {
      await once(this.#server, "listening");
    } catch (cause) {
      const why = `cannot listen on ${formatAddress(host, port)}: ${(cause as Error).message}`;
      throw new LeaseholdError("UNREACHABLE", why, { cause });
    }
    // A connection that fails affects no other.
    this.#server.on("error", () => undefined);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(socket: Socket): void {
    const from = formatAddress(socket.remoteAddress ?? "", socket.remotePort ?? 0);
    const [oldest] = this.#strangers;
    if (this.#strangers.size >= strangersMax) oldest!.destroy();
    this.#strangers.add(socket);
    socket.on("close", () => this.#strangers.delete(socket));
    this.#keep(socket);
    const introduce = (secured: Socket, proof: Proof | AuthFault): void => {
      const { self, timers, answerer, refused } = this.#options;
      const ports = { self, timers, answerer, refused: (why: LeaseholdError) => refused(from, why) };
      const connection = new Connection(
        { ...ports, admitted: () => this.#strangers.delete(socket) },
        secured,
      );
      connection.begin(proof);
    };
    if (this.#tls === undefined) {
      introduce(socket, nothingAsked);
      return;
    }
    this.#tls.accept(socket, {
      passed: (secured, proof) => {
        if (secured !== socket) this.#keep(secured);
        introduce(secured, proof);
      },
      failed: (reason) => {
        if (typeof reason === "object") this.#options.refused(from, authError(reason));
      },
    });
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
