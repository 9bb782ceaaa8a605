import { createHash, timingSafeEqual } from "node:crypto";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { LeaseholdError, type Leases } from "leasehold/common";
import { isLoopback } from "leasehold/runtime";
import type { Files } from "../types.js";
import { watchCertificate } from "./certificate.js";
import { FilesTree } from "./files-tree.js";
import { leaseLocks } from "./lease-locks.js";
import { Locks } from "./locks.js";
import { methods, pathOf } from "./methods.js";
import { Refusal } from "./refusal.js";
import { dav, openRoot } from "./xml.js";

/** A client that sends this is told that its request is at work, by status 102 (RFC 2518, 10.1). */
export const processingHeader = "leasehold-processing";
/** Between two of them, ms. */
const processingMs = 2_000;
/** The stable code of an error, for programs. */
export const codeHeader = "leasehold-error";
/** Requests that are served at once; each has two pieces of a file in memory. */
const requestsMax = 64;
/** Connections; of those above the requests some wait for their turn with a keep-alive. */
const connectionsMax = 512;
/** A client that sends nothing for so long is cut off, ms. */
const idleMs = 60_000;
/** What takes as long as files are large, while nothing is sent. */
const atWork: ReadonlySet<string> = new Set(["COPY", "MOVE", "DELETE"]);
/** Resources whose leases are WebDAV's locks begin so. */
const lockPrefix = "leasehold/webdav";
/** The end of the server waits so long for requests under way, ms. */
const closeMs = 2_000;

export interface WebdavOptions {
  /** Default: `127.0.0.1`. Any other than loopback needs `credentials` and `tls`. */
  readonly host?: string | undefined;
  /** 0 (default): the system chooses. */
  readonly port?: number | undefined;
  /** `name:password` that every request has to show. Default: none is asked for. */
  readonly credentials?: string | undefined;
  /**
   * The certificate, followed by those up to its authority, and its private key: each PEM text, or the path
   * of a PEM file, which is read again within 5 s of a change. Default: HTTP without TLS.
   */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Told of faults, which clients hear of as such only. Default: nobody is. */
  readonly fault?: ((text: string) => void) | undefined;
}

export interface WebdavServer {
  /** Where it listens: `http://host:port`, or `https`. */
  readonly url: string;
  /** Waits at most 2 s for requests under way. Idempotent. */
  close(): Promise<void>;
}

/**
 * Serves a node's files by WebDAV, classes 1 and 2 (RFC 4918): by `rclone`, `cadaver`, `davfs2` and what file
 * managers have. `GET` of the root answers with {@link Files.status} as JSON.
 *
 * @param leases where locks are held, so that all nodes' servers know of them.
 * @throws LeaseholdError `INVALID_CONFIG` if others could listen in or change files, or it cannot listen
 */
export async function serveWebdav(
  files: Files,
  leases: Leases,
  options: WebdavOptions = {},
): Promise<WebdavServer> {
  const { host = "127.0.0.1", port: wanted = 0 } = options;
  if (!isLoopback(host) && (options.credentials === undefined || options.tls === undefined))
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `WebDAV beyond loopback (${host}) needs a user with a password, and TLS`,
    );
  const locks = new Locks(leaseLocks(leases, lockPrefix));
  const front = new Front(options, files, locks);
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void front.serve(request, response);
  // A client that uploads for hours is no fault, one that says nothing is.
  const limits = { requestTimeout: 0, headersTimeout: idleMs, keepAliveTimeout: idleMs };
  const certificate = options.tls && (await watchCertificate(options.tls, options.fault));
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
    throw new LeaseholdError("INVALID_CONFIG", `WebDAV cannot listen: ${error.message}`, { cause: error });
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
      await locks.close();
    },
  };
}

function schemeOf({ tls }: WebdavOptions): "http" | "https" {
  return tls === undefined ? "http" : "https";
}

class Front {
  readonly #options: WebdavOptions;
  readonly #files: Files;
  readonly #tree: FilesTree;
  readonly #locks: Locks;
  readonly #expected: Buffer | undefined;
  #underWay = 0;

  constructor(options: WebdavOptions, files: Files, locks: Locks) {
    this.#options = options;
    this.#files = files;
    this.#tree = new FilesTree(files);
    this.#locks = locks;
    const { credentials } = options;
    this.#expected = credentials === undefined ? undefined : digest(credentials);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#underWay += 1;
    const { socket } = request;
    // A copy of a large file says nothing for long, and so does an upload that is copied over another.
    if (atWork.has(request.method ?? "")) socket.setTimeout(0);
    else if (request.method === "PUT") request.once("end", () => socket.setTimeout(0));
    const isTold = request.headers[processingHeader] !== undefined;
    const telling = setInterval(() => {
      if (isTold && !response.headersSent) response.writeProcessing();
    }, processingMs);
    // Of a client that has gone nobody hears more; what was sent before is cut off.
    response.on("error", () => undefined);
    try {
      if (this.#underWay > requestsMax) throw new Refusal(503, "the node serves as many requests as it may");
      this.#checkHost(request);
      this.#checkCredentials(request);
      await this.#answer(request, response);
    } catch (error) {
      this.#refuse(request, response, error);
    } finally {
      this.#underWay -= 1;
      clearInterval(telling);
      socket.setTimeout(idleMs);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = pathOf(request.url ?? "");
    const method = methods[request.method ?? ""];
    if (method === undefined) throw new Refusal(405, `${request.method} is not served`);
    if (path === "" && request.method === "GET") {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`${JSON.stringify(this.#files.status())}\n`);
      return;
    }
    await method({ request, response, path, tree: this.#tree, locks: this.#locks });
  }

  /**
   * Without a password, whoever can make a browser of this machine ask could ask us by a name of theirs that
   * points to loopback, so only our own names are answered.
   */
  #checkHost({ headers }: IncomingMessage): void {
    if (this.#expected !== undefined) return;
    if (!/^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::\d+)?$/i.test(headers.host ?? ""))
      throw new Refusal(403, "this server is known as localhost and 127.0.0.1 only");
    // A page of another site may send requests to loopback, but says whose it is.
    if (headers.origin !== undefined && headers.origin !== `${schemeOf(this.#options)}://${headers.host}`)
      throw new Refusal(403, "pages of other sites are not served");
  }

  #checkCredentials({ headers }: IncomingMessage): void {
    if (this.#expected === undefined) return;
    const given = /^Basic ([a-z0-9+/=]+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
    const isRight = timingSafeEqual(digest(Buffer.from(given, "base64").toString("utf8")), this.#expected);
    if (!isRight) throw new Refusal(401, "name and password are needed");
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const { status, message, rule, fault } = refusalOf(error);
    if (fault !== undefined && !request.destroyed) this.#options.fault?.(fault);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const body = rule === undefined ? `${message}\n` : `${openRoot("error")}${dav(rule)}</D:error>\n`;
    response.writeHead(status, {
      "content-type": rule === undefined ? "text/plain; charset=utf-8" : "application/xml; charset=utf-8",
      "content-length": String(Buffer.byteLength(body)),
      ...(error instanceof LeaseholdError && { [codeHeader]: error.code }),
      ...(status === 401 && { "www-authenticate": 'Basic realm="leasehold files", charset="UTF-8"' }),
      ...(status === 503 && { "retry-after": "1" }),
      // What was not read of the request is not read any more.
      ...(!request.complete && { connection: "close" }),
    });
    response.end(body);
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** What each error of files is in HTTP; what is missing here is a fault. */
const statusByCode: Readonly<Record<string, number>> = {
  FILE_NOT_FOUND: 404,
  FILE_EXISTS: 412,
  FILE_CHANGED: 412,
  INVALID_PATH: 400,
  STORE_FULL: 507,
  NO_QUORUM: 503,
  UNREACHABLE: 503,
  OVERLOADED: 503,
  CLOSED: 503,
  TIMEOUT: 503,
  FILE_UNCERTAIN: 500,
  FILE_DAMAGED: 500,
};

function refusalOf(
  error: unknown,
): Pick<Refusal, "status" | "message" | "rule"> & { readonly fault?: string } {
  if (error instanceof Refusal) return error;
  if (error instanceof LeaseholdError) {
    const status = statusByCode[error.code] ?? 500;
    return { status, message: `${error.code}: ${error.message}`, rule: undefined };
  }
  const fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { status: 500, message: "a fault of this server", rule: undefined, fault };
}
