import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { LeaseholdError, type Leases } from "leasehold/common";
import type { EventLog } from "leasehold/runtime";
import { eventLog, type LogEvents } from "../logs/log-events.js";
import type { Files } from "../types.js";
import { GuardedFiles } from "../users/guarded-files.js";
import { Rights } from "../users/rights.js";
import type { Users } from "../users/users.js";
import { FilesTree } from "./files-tree.js";
import { follow, wantsEvents } from "./follow.js";
import { leaseLocks } from "./lease-locks.js";
import {
  checkHost,
  codeHeader,
  type FrontServer,
  idleMs,
  listen,
  type ListenOptions,
  type Origin,
  originOf,
  requestsMax,
} from "./listen.js";
import { Locks } from "./locks.js";
import { checkConditions, methods, pathOf } from "./methods.js";
import { answerNodes, subjectOf } from "./nodes.js";
import { Refusal } from "./refusal.js";
import { dav, openRoot } from "./xml.js";

/** A client that sends this header receives status 102 while its request is in progress (RFC 2518, 10.1). */
export const processingHeader = "leasehold-processing";
/** The pause between two such statuses, ms. */
const processingMs = 2_000;
/** The most clients that follow changes. They don't count as requests, because they stay connected. */
const followersMax = 256;
/**
 * Methods that can take long without sending anything, because their duration grows with the number of files.
 */
const atWork: ReadonlySet<string> = new Set(["COPY", "MOVE", "DELETE"]);
/** The prefix of the leases that serve as WebDAV locks. */
const lockPrefix = "leasehold/webdav";

export interface WebdavOptions extends ListenOptions {
  /** `name:password` of the only user, who may do everything. Default: no authentication. */
  readonly credentials?: string | undefined;
  /** The users who may make requests, instead of `credentials`. Not closed by `close`. */
  readonly users?: Users | undefined;
}

export type WebdavServer = FrontServer;

/**
 * Serves a node's files over WebDAV, classes 1 and 2 (RFC 4918), for `rclone`, `cadaver`, `davfs2` and file
 * managers. `GET` of the root returns {@link Files.status} as JSON. `GET` of a folder that accepts
 * server-sent events returns {@link Files.changes}.
 * @param leases leases for the locks; all nodes' servers share them.
 * @throws LeaseholdError `INVALID_CONFIG` if the server would be unprotected on a network, or cannot listen
 */
export async function serveWebdav(
  files: Files,
  leases: Leases,
  options: WebdavOptions = {},
): Promise<WebdavServer> {
  const { credentials, users } = options;
  if (credentials !== undefined && users !== undefined)
    throw new LeaseholdError("INVALID_CONFIG", "WebDAV has either one user's credentials or a file of users");
  const isOpen = credentials === undefined && users === undefined;
  const locks = new Locks(leaseLocks(leases, lockPrefix));
  const front = new Front(options, files, locks);
  const server = await listen("WebDAV", isOpen, options, (request, response) =>
    front.serve(request, response),
  );
  return {
    url: server.url,
    close: async () => {
      front.close();
      await server.close();
      await locks.close();
    },
  };
}

class Front {
  readonly #options: WebdavOptions;
  readonly #files: Files;
  readonly #locks: Locks;
  readonly #expected: Buffer | undefined;
  readonly #events: EventLog<LogEvents>;
  #underWay = 0;
  #followers = 0;
  readonly #closing = new AbortController();

  constructor(options: WebdavOptions, files: Files, locks: Locks) {
    this.#options = options;
    this.#files = files;
    this.#locks = locks;
    this.#events = eventLog(options.logger);
    const { credentials } = options;
    this.#expected = credentials === undefined ? undefined : digest(credentials);
  }

  /** Ends requests that follow changes; all others end on their own. */
  close(): void {
    this.#closing.abort();
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isFollower = wantsEvents(request);
    if (isFollower) this.#followers += 1;
    else this.#underWay += 1;
    const { socket } = request;
    const origin = originOf(socket);
    let caller: Caller | undefined;
    // The end of an upload, and changes that seal many files, take long without sending anything.
    if (atWork.has(request.method ?? "")) socket.setTimeout(0);
    else if (request.method === "PUT") request.once("end", () => socket.setTimeout(0));
    const isTold = request.headers[processingHeader] !== undefined;
    const telling = setInterval(() => {
      if (isTold && !response.headersSent) response.writeProcessing();
    }, processingMs);
    // Errors after a client has disconnected are ignored; its response is cut off anyway.
    response.on("error", () => undefined);
    try {
      if (isFollower ? this.#followers > followersMax : this.#underWay > requestsMax)
        throw new Refusal(503, "the node has reached its limit of requests");
      if (this.#expected === undefined && this.#options.users === undefined)
        checkHost(request, this.#options);
      caller = await this.#callerOf(request);
      await this.#answer(request, response, caller, origin);
    } catch (error) {
      this.#audit(request, error, caller, origin);
      this.#refuse(request, response, error);
    } finally {
      if (isFollower) this.#followers -= 1;
      else this.#underWay -= 1;
      clearInterval(telling);
      socket.setTimeout(idleMs);
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    { address }: Origin,
  ): Promise<void> {
    const { rights, name: by } = caller;
    const path = pathOf(request.url ?? "");
    if (path === "" && request.method === "POST") {
      await answerNodes(new GuardedFiles(this.#files, rights), request, response, (change, outcome) => {
        const subject = subjectOf(change);
        const end = outcome === "done" ? "" : "; whether it was made is not known";
        const text = `${by} at ${address} changes the nodes: ${change.what} ${subject}${end}`;
        this.#events.log("nodes-changed", text, { change: change.what, subject, by, address, outcome });
      });
      return;
    }
    if (wantsEvents(request)) {
      const mayFollow = async (): Promise<Files> => {
        const files = new GuardedFiles(this.#files, (await this.#callerOf(request)).rights);
        files.mustRead(path);
        return files;
      };
      await follow(await mayFollow(), path, request, response, mayFollow, this.#closing.signal);
      return;
    }
    const method = methods[request.method ?? ""];
    if (method === undefined) throw new Refusal(405, `${request.method} is not served`);
    if (path === "" && request.method === "GET") {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`${JSON.stringify(this.#files.status())}\n`);
      return;
    }
    const tree = new FilesTree(new GuardedFiles(this.#files, rights));
    const call = { request, response, path, tree, locks: this.#locks };
    await checkConditions(call);
    await method(call);
  }

  /** @throws Refusal 401 */
  async #callerOf({ headers }: IncomingMessage): Promise<Caller> {
    const { users } = this.#options;
    if (this.#expected === undefined && users === undefined) return { name: "anonymous", rights: Rights.all };
    const encoded = /^Basic ([a-z0-9+/=]+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
    const given = Buffer.from(encoded, "base64").toString("utf8");
    const refusal = new Refusal(401, "name and password are needed");
    if (users === undefined) {
      if (timingSafeEqual(digest(given), this.#expected!))
        return { name: nameIn(headers), rights: Rights.all };
      throw refusal;
    }
    const at = given.indexOf(":");
    if (at < 0) throw refusal;
    const user = await users.authenticate(given.slice(0, at), given.slice(at + 1));
    if (user === undefined) throw refusal;
    return user;
  }

  /**
   * Logs a refused user. A request without a name is not logged: it is how a client asks whether one is
   * needed.
   */
  #audit(
    request: IncomingMessage,
    error: unknown,
    caller: Caller | undefined,
    { host, address }: Origin,
  ): void {
    const { method = "" } = request;
    if (error instanceof Refusal && error.status === 401) {
      const subject = nameIn(request.headers);
      if (request.headers.authorization === undefined) return;
      const text = `${JSON.stringify(subject)} at ${address} was refused: the name or the password is wrong`;
      const fields = { cause: "password", subject, address };
      this.#events.limited("credential-refused", host, text, fields);
    } else if (error instanceof LeaseholdError && error.code === "PERMISSION_DENIED") {
      const by = caller?.name ?? "anonymous";
      const path = pathOf(request.url ?? "");
      const text = `${by} at ${address} may not ${method} ${JSON.stringify(path)}`;
      this.#events.limited("permission-denied", `${host} ${by}`, text, { call: method, path, by, address });
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const { status, message, rule, fault } = refusalOf(error);
    if (fault !== undefined && !request.destroyed) this.#options.fault?.(fault);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    // Our commands print the message. XML has no place for it.
    const isText = rule === undefined || request.headers[processingHeader] !== undefined;
    const body = isText ? `${message}\n` : `${openRoot("error")}${dav(rule)}</D:error>\n`;
    response.writeHead(status, {
      "content-type": isText ? "text/plain; charset=utf-8" : "application/xml; charset=utf-8",
      "content-length": String(Buffer.byteLength(body)),
      ...(error instanceof LeaseholdError && { [codeHeader]: error.code }),
      ...(status === 401 && { "www-authenticate": 'Basic realm="leasehold files", charset="UTF-8"' }),
      ...(status === 503 && { "retry-after": "1" }),
      // The unread rest of the request is discarded.
      ...(!request.complete && { connection: "close" }),
    });
    response.end(body);
  }
}

/** The authenticated user of a request. */
interface Caller {
  readonly name: string;
  readonly rights: Rights;
}

const subjectLengthMax = 64;

/** The name in a request's credentials, without any part of the password. */
function nameIn({ authorization = "" }: IncomingMessage["headers"]): string {
  const encoded = /^Basic ([a-z0-9+/=]+)$/i.exec(authorization)?.[1] ?? "";
  const given = Buffer.from(encoded, "base64").toString("utf8");
  // Without a colon the text may be a password.
  return given.includes(":") ? given.slice(0, given.indexOf(":")).slice(0, subjectLengthMax) : "";
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** HTTP statuses by error code. Codes without one are faults. */
const statusByCode: Readonly<Record<string, number>> = {
  FILE_NOT_FOUND: 404,
  FILE_EXISTS: 412,
  FILE_CHANGED: 412,
  CURSOR_GONE: 410,
  INVALID_PATH: 400,
  STORE_FULL: 507,
  QUOTA_EXCEEDED: 507,
  NO_QUORUM: 503,
  UNREACHABLE: 503,
  OVERLOADED: 503,
  CLOSED: 503,
  TIMEOUT: 503,
  FILE_UNCERTAIN: 500,
  FILE_DAMAGED: 500,
  UNSUPPORTED: 403,
  PERMISSION_DENIED: 403,
  INVALID_CONFIG: 409,
};

function refusalOf(
  error: unknown,
): Pick<Refusal, "status" | "message" | "rule"> & { readonly fault?: string } {
  if (error instanceof Refusal) return error;
  if (error instanceof LeaseholdError) {
    const status = statusByCode[error.code] ?? 500;
    const rule = error.code === "QUOTA_EXCEEDED" ? "quota-not-exceeded" : undefined;
    return { status, message: `${error.code}: ${error.message}`, rule };
  }
  const fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { status: 500, message: "a fault of this server", rule: undefined, fault };
}
