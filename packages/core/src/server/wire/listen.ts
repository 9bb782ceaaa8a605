import { invalidConfig } from "leasehold/common";
import { constants } from "node:crypto";
import { lstat, unlink } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from "node:tls";
import { isCertificateWanted, type TlsFiles } from "./tls/tls-files.js";
import { objectionTo, readChainsOf } from "./tls/peer-chain.js";
import { readTls, revokedNow, whenRenewed } from "./tls/tls.js";
import { type ListenUrl, placeOf } from "./urls.js";

/** Handlers of connections. */
export interface ConnectionEvents {
  /** Called for each connection before anything is read. False: the connection is closed at once. */
  admit(socket: Socket): boolean;
  /**
   * Called over TLS after the handshake.
   *
   * @param admitted the admitted socket: over TLS, the one below
   */
  accepted(socket: Socket | TLSSocket, admitted: Socket): void;
  /** The handshake failed or timed out. */
  failed(error: Error, socket: Socket): void;
  /** A TLS file is unusable at present; possibly called every few seconds. */
  unusable?(text: string): void;
}

/** TLS settings of a listener. */
export interface Handshakes {
  /** Timeout of a handshake, ms. */
  readonly handshakeMs: number;
  /** Chooses among the protocols that the client offers. */
  readonly choose?: (offer: { readonly protocols: readonly string[] }) => string | undefined;
}

/** One listening address. Connections are counted when admitted, even before the handshake. */
export class Listener {
  readonly #server: Server;
  readonly #renewing: () => void;

  private constructor(server: Server, renewing: () => void) {
    this.#server = server;
    this.#renewing = renewing;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if the address is unavailable */
  static async open(
    url: ListenUrl,
    tls: TlsFiles | undefined,
    handshakes: Handshakes,
    events: ConnectionEvents,
  ): Promise<Listener> {
    const secure = url.isTls && tls !== undefined ? overTls(tls, handshakes, events) : undefined;
    const server = createServer({ noDelay: true }, (socket) => {
      if (!events.admit(socket)) socket.destroy();
      else if (secure === undefined) events.accepted(socket, socket);
      else secure.take(socket);
    });
    const renewing = secure?.renewing ?? (() => undefined);
    try {
      await listen(server, url);
    } catch (error) {
      renewing();
      throw invalidConfig(`cannot listen on ${placeOf(url)}: ${(error as Error).message}`);
    }
    return new Listener(server, renewing);
  }

  /** The actual port, if the requested one is 0. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Accepts no more connections; existing ones stay open. */
  close(): void {
    this.#renewing();
    this.#server.close();
  }
}

async function listen(server: Server, { host, path, port }: ListenUrl): Promise<void> {
  if (path !== undefined) await removeLeft(path);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path === undefined ? { host, port } : { path }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/**
 * Removes the Unix socket of a killed process, which has no listener. Sockets in use, and other files, are
 * kept.
 */
async function removeLeft(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSocket() !== true) return;
  const left = await new Promise<boolean>((resolve) => {
    const trial = connect({ path }, () => resolve(false));
    trial.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
    trial.once("connect", () => trial.destroy());
  });
  if (left) await unlink(path);
}

/** A TLS server that does not listen itself, but gets admitted connections. */
function overTls(
  tls: TlsFiles,
  { choose, handshakeMs }: Handshakes,
  events: ConnectionEvents,
): { readonly take: (socket: Socket) => void; readonly renewing: () => void } {
  const isAsked = isCertificateWanted(tls);
  const asked = { requestCert: isAsked, rejectUnauthorized: isAsked };
  const content = readTls(tls);
  let revoked = revokedNow(tls, content.ca);
  // A resumed session shows only the client's own certificate, not its chain.
  const sessions = revoked === undefined ? {} : { secureOptions: constants.SSL_OP_NO_TICKET };
  const options = { ...content, ...asked, ...sessions, handshakeTimeout: handshakeMs };
  let current: TlsOptions = { ...options, ...(choose !== undefined && { ALPNCallback: choose }) };
  const serverFor = (belowOf: (socket: TLSSocket) => Socket) => {
    const server = createTlsServer(current);
    if (isAsked && revoked !== undefined) readChainsOf(server);
    server.on("secureConnection", (socket) => {
      const below = belowOf(socket);
      const objection = isAsked ? objectionTo(socket, tls.allowed, revoked) : "";
      if (objection === "") events.accepted(socket, below);
      else {
        events.failed(new Error(objection), socket);
        socket.on("error", () => undefined).destroy();
      }
    });
    server.on("tlsClientError", (error, socket) => {
      events.failed(error, socket);
      // Node only reports a handshake that timed out, and does not close it.
      socket.destroy();
    });
    return server;
  };
  const shaking = new Map<string, Socket>();
  const shared = serverFor((socket) => {
    const from = fromOf(socket);
    const below = shaking.get(from);
    shaking.delete(from);
    return below ?? socket;
  });
  const take = (socket: Socket) => {
    // Connections over a Unix socket have no address, so each has its own TLS server.
    if (socket.remoteAddress === undefined) {
      serverFor(() => socket).emit("connection", socket);
      return;
    }
    const from = fromOf(socket);
    shaking.set(from, socket);
    socket.once("close", () => {
      if (shaking.get(from) === socket) shaking.delete(from);
    });
    shared.emit("connection", socket);
  };
  return {
    take,
    renewing: whenRenewed(
      tls,
      (renewed, revokedSince) => {
        if (renewed !== undefined) {
          current = { ...current, ...renewed };
          shared.setSecureContext({ ...renewed, ...sessions });
        }
        revoked = revokedSince;
      },
      (text) => events.unusable?.(text),
    ),
  };
}

/** A TLS socket does not expose its underlying socket, but has its address. */
function fromOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
