import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  createServer,
} from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { LeaseholdError } from "leasehold/common";
import {
  type Logger,
  foreignRequest,
  formatAddress,
  isLoopback,
  isLoopbackHost,
  silent,
  watchCertificate,
} from "leasehold/runtime";
import type { RequestObserver } from "../types.js";
import { followMethod, wantsEvents } from "./follow.js";
import { Refusal } from "./refusal.js";

/** The most concurrent requests. Each holds two pieces of a file in memory. */
export const requestsMax = 64;
/** The most connections. Those beyond the limit of requests are idle keep-alive connections. */
const connectionsMax = 512;
/** How long a client may be idle, ms. */
export const idleMs = 60_000;
/** Time limit for requests in flight at shutdown, ms. */
const closeMs = 2_000;

/** The stable code of an error, for programs to read. */
export const codeHeader = "leasehold-error";

/** Where a server for clients listens. */
export interface ListenOptions {
  /** Default: `127.0.0.1`. Any address other than loopback requires a user and `tls`. */
  readonly host?: string | undefined;
  /** Default 0: the system chooses. */
  readonly port?: number | undefined;
  /**
   * The certificate with its chain, and its private key: each PEM text, or the path of a PEM file, which is
   * read again within 5 s of a change. Default: HTTP without TLS.
   */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Receives faults. Clients get only a status for them. Default: none. */
  readonly fault?: ((text: string) => void) | undefined;
  /** Called for each request. Default: none. */
  readonly observer?: RequestObserver | undefined;
  /** Receives the audit trail: refused users, and changes to the list of nodes. Default: none. */
  readonly logger?: Logger | undefined;
}

export interface FrontServer {
  /** The address of the server: `http://host:port`, or `https`. */
  readonly url: string;
  /** Waits at most 2 s for requests in flight. Idempotent. */
  close(): Promise<void>;
}

/**
 * Listens for clients.
 * @param what the protocol's name, for messages
 * @param isOpen whether no user is required
 * @throws LeaseholdError `INVALID_CONFIG` if the server would be unprotected on a network, or cannot listen
 */
export async function listen(
  what: string,
  isOpen: boolean,
  options: ListenOptions,
  answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<FrontServer> {
  const { host = "127.0.0.1", port: wanted = 0, tls, observer } = options;
  const listener: RequestListener = (request, response) => {
    if (observer !== undefined) observe(what.toLowerCase(), request, response, observer);
    // A fault in one request ends only that request.
    answer(request, response).catch((error: unknown) => {
      options.fault?.(error instanceof Error ? (error.stack ?? error.message) : String(error));
      response.destroy();
    });
  };
  if (!isLoopback(host) && (isOpen || tls === undefined))
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${what} beyond loopback (${host}) needs a user with a password, and TLS`,
    );
  // A long upload is allowed; a silent client is not.
  const limits = { requestTimeout: 0, headersTimeout: idleMs, keepAliveTimeout: idleMs };
  const { fault = () => undefined, logger = { ...silent, warn: fault } } = options;
  const certificate = tls && (await watchCertificate(tls, logger));
  const server: Server =
    certificate === undefined
      ? createServer(limits, listener)
      : createTlsServer({ ...limits, ...certificate.pems }, listener);
  if (certificate !== undefined) certificate.changed = (pems) => (server as TlsServer).setSecureContext(pems);
  server.maxConnections = connectionsMax;
  server.setTimeout(idleMs);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, host, () => resolve());
  }).catch((error: Error) => {
    certificate?.close();
    throw new LeaseholdError("INVALID_CONFIG", `${what} cannot listen: ${error.message}`, { cause: error });
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `${schemeOf(options)}://${host.includes(":") ? `[${host}]` : host}:${port}`,
    close: async () => {
      certificate?.close();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const late = setTimeout(() => server.closeAllConnections(), closeMs);
      await closed;
      clearTimeout(late);
    },
  };
}

/** Bytes of each connection that belong to finished requests. */
const counted = new WeakMap<Socket, { readonly received: number; readonly sent: number }>();

function observe(
  api: string,
  request: IncomingMessage,
  response: ServerResponse,
  observer: RequestObserver,
): void {
  const { method = "", socket } = request;
  const isFollower = wantsEvents(request);
  const begunMs = performance.now();
  observer.begun(api);
  response.once("close", () => {
    const { statusCode, writableFinished } = response;
    const code = response.getHeader(codeHeader);
    // The whole request may have been received before this runs, so bytes are counted per connection.
    const { bytesRead: received, bytesWritten: sent } = socket;
    const before = counted.get(socket);
    counted.set(socket, { received, sent });
    const failed = typeof code === "string" ? code.toLowerCase() : String(statusCode);
    observer.ended({
      api,
      // Has a name of its own, because it lasts until the client ends it.
      method: isFollower ? followMethod : method,
      outcome: !writableFinished && !isFollower ? "cut" : statusCode < 400 ? "ok" : failed,
      tookMs: performance.now() - begunMs,
      received: received - (before?.received ?? 0),
      sent: sent - (before?.sent ?? 0),
    });
  });
}

function schemeOf({ tls }: ListenOptions): "http" | "https" {
  return tls === undefined ? "http" : "https";
}

/**
 * Protects a server without users from web pages in a browser on this machine: only our own host names are
 * accepted.
 * @throws Refusal 403
 */
export function checkHost({ headers }: IncomingMessage, options: ListenOptions): void {
  const foreign = foreignRequest(headers, isLoopbackHost, [schemeOf(options)]);
  if (foreign === "host") throw new Refusal(403, "the only names of this server are localhost and 127.0.0.1");
  if (foreign === "site") throw new Refusal(403, "pages of other sites are not served");
}

/** The client that sent a request. */
export interface Origin {
  readonly host: string;
  readonly address: string;
}

/** Call it at once: after a request has been read or aborted, it may have no socket any more. */
export function originOf({ remoteAddress: host = "", remotePort = 0 }: Socket): Origin {
  return { host, address: formatAddress(host, remotePort) };
}
