import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { TlsFiles } from "./tls/tls-files.js";
import { type ConnectionEvents, Listener } from "./listen.js";
import type { ListenUrl } from "./urls.js";
import type { Connections } from "../accounts/connections.js";
import { type Behind, hearFirstWords } from "./first-bytes.js";

/** So long a connection may say nothing at all, stop in the middle of its first words, or be at its handshake. */
const silenceMs = 10_000;

/** Of a connection that asks nothing for long: whether its client is still there is asked of TCP. */
const probeMs = 2 * 60_000;

/**
 * Who speaks HTTP/1.1 as well asks for JSON, health or metrics: gRPC offers HTTP/2 alone, `curl` and
 * Prometheus offer both.
 */
const chosen = ({ protocols }: { protocols: readonly string[] }) =>
  ["http/1.1", "h2"].find((each) => protocols.includes(each));

/** What takes connections that speak HTTP/1.1. */
export interface Http1 {
  readonly take: (socket: Socket) => void;
  /** It is of no more use; connections are others' to end. */
  close(): void;
}

/**
 * Listens for clients: gRPC over HTTP/2 and JSON over HTTP/1.1 come to the same port. The first bytes of a
 * connection, or what TLS agreed on, tell which it is.
 */
export class ClientPort {
  readonly #behind: Behind;
  readonly #connections: Connections;
  readonly #unusable: ((text: string) => void) | undefined;
  readonly #listeners: Listener[] = [];
  readonly #sockets = new Set<Socket>();

  /** @param unusable told for people: see `ConnectionEvents` */
  constructor(behind: Behind, connections: Connections, unusable?: (text: string) => void) {
    this.#behind = behind;
    this.#connections = connections;
    this.#unusable = unusable;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if the address cannot be had */
  async listen(url: ListenUrl, tls: TlsFiles | undefined): Promise<void> {
    const handshakes = { handshakeMs: silenceMs, choose: chosen };
    this.#listeners.push(await Listener.open(url, tls, handshakes, this.#connectionEvents));
  }

  /** No more connections; those that have been handed on are others' to end. */
  stop(): void {
    for (const listener of this.#listeners) listener.close();
  }

  /** Ends all connections. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  readonly #connectionEvents: ConnectionEvents = {
    admit: (socket) => {
      if (!this.#connections.admit(socket)) return false;
      this.#sockets.add(socket);
      socket.setKeepAlive(true, probeMs);
      // Whoever goes away closes it, too.
      socket.on("error", () => undefined);
      socket.once("close", () => this.#sockets.delete(socket));
      return true;
    },
    accepted: (socket) => {
      const protocol = "alpnProtocol" in socket ? (socket as TLSSocket).alpnProtocol : null;
      socket.on("error", () => undefined);
      if (protocol === "h2") this.#behind.http2(socket);
      else if (protocol === "http/1.1") this.#behind.http1(socket);
      else hearFirstWords(socket, silenceMs, this.#behind);
    },
    // It has been closed.
    failed: () => undefined,
    unusable: (text) => this.#unusable?.(text),
  };
}
