import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { TlsFiles } from "./tls/tls-files.js";
import { type ConnectionEvents, Listener } from "./listen.js";
import type { ListenUrl } from "./urls.js";
import type { Connections } from "../accounts/connections.js";
import { type Behind, hearFirstWords } from "./first-bytes.js";

/** Timeout for the handshake and the first bytes, ms. */
const silenceMs = 10_000;

/** TCP keep-alive on idle connections, ms: detects clients that are gone. */
const probeMs = 2 * 60_000;

/**
 * A client that offers HTTP/1.1 as well wants JSON, health or metrics: gRPC offers only HTTP/2, `curl` and
 * Prometheus offer both.
 */
const chosen = ({ protocols }: { protocols: readonly string[] }) =>
  ["http/1.1", "h2"].find((each) => protocols.includes(each));

/** The handler of HTTP/1.1 connections. */
export interface Http1 {
  readonly take: (socket: Socket) => void;
  /** Releases resources; connections are ended elsewhere. */
  close(): void;
}

/**
 * Listens for clients: gRPC over HTTP/2 and JSON over HTTP/1.1 share a port. The first bytes of a
 * connection, or the protocol agreed on in TLS, decide.
 */
export class ClientPort {
  readonly #behind: Behind;
  readonly #connections: Connections;
  readonly #unusable: ((text: string) => void) | undefined;
  readonly #listeners: Listener[] = [];
  readonly #sockets = new Set<Socket>();

  /** @param unusable reports to operators: see `ConnectionEvents` */
  constructor(behind: Behind, connections: Connections, unusable?: (text: string) => void) {
    this.#behind = behind;
    this.#connections = connections;
    this.#unusable = unusable;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if the address is unavailable */
  async listen(url: ListenUrl, tls: TlsFiles | undefined): Promise<void> {
    const handshakes = { handshakeMs: silenceMs, choose: chosen };
    this.#listeners.push(await Listener.open(url, tls, handshakes, this.#connectionEvents));
  }

  /** Accepts no more connections. Those already passed on are ended elsewhere. */
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
      // A close follows each error.
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
    // The listener has closed the connection.
    failed: () => undefined,
    unusable: (text) => this.#unusable?.(text),
  };
}
