import { once } from "node:events";
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  createServer,
} from "node:http";
import { Server as TlsServer, createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Leases } from "leasehold";
import { Charge, LeaseholdError, Room, parseDuration } from "leasehold/common";
import {
  type Address,
  type Check,
  type ServedPems,
  certificateTls,
  formatAddress,
  healthText,
} from "leasehold/runtime";
import { openApiOf } from "../api/openapi.js";
import { HttpRefusal, type Problem, problemOf } from "../api/problem.js";
import { type Answer, type Asker, type Route, routesOf } from "../api/routes.js";
import type { GatewayLog } from "../logs/log-events.js";
import type { GatewayMetrics } from "../metrics/gateway-metrics.js";
import type { User, Users } from "../rights/users.js";
import type { Gateway } from "../sessions/gateway.js";
import type { WatchHub } from "../watch/hub.js";
import { refuseForeign, userOf } from "./admission.js";
import { jsonOf } from "./body.js";
import { EventStream } from "./events.js";
import { RouteTable } from "./route-table.js";
import { SharedAnswer } from "./shared-answer.js";
import type { TokenIssuer } from "./token-issuer.js";

/**
 * The limits of the port. One user gets at most as many watches as are free; the same holds for queued
 * changes.
 */
export const connectionsMax = 25_000;
export const streamsMax = 24_000;
const waitingMax = 1_000_000;
/** A client that sends its headers or its body more slowly is disconnected. */
const headersMs = 5_000;
const bodyMs = 30_000;
/** Longer than clients pause between two renewals, and longer than balancers keep an idle connection. */
const keepAliveMs = 90_000;
const pollSecondsMax = 300;
/** Any client may ask whether the gateway is ready. The ground is queried at most once in this time. */
const readinessMs = 1_000;
const keyForm = /^[!-~]{1,255}$/;

export interface HttpParts {
  readonly leases: Leases;
  readonly gateway: Gateway;
  readonly hub: WatchHub;
  /** The current users; absent where there are none. */
  readonly users: () => Users | undefined;
  readonly issuer?: TokenIssuer | undefined;
  readonly tls?: ServedPems;
  readonly log: GatewayLog;
  readonly metrics?: GatewayMetrics | undefined;
  readonly nowMs: () => number;
}

/** A request, as the metrics see it. */
interface Asked {
  /** One of a few values, and never the path that the client sent. */
  route: string;
}

/** The gateway's HTTP server. */
export class HttpServer {
  readonly #parts: HttpParts;
  readonly #routes: RouteTable;
  readonly #openApi: string;
  readonly #server: Server;
  readonly #streams = new Set<ServerResponse>();
  readonly #streamRoom = new Room(streamsMax, tooMany("watches"));
  /** Changes queued for clients that read slowly. */
  readonly #waitingRoom = new Room(waitingMax, tooMany("changes"));
  readonly #readiness = new SharedAnswer(() => this.#askGround(), readinessMs);
  #connections = 0;
  #isStopping = false;

  constructor(parts: HttpParts) {
    this.#parts = parts;
    const routes = routesOf(parts.leases, parts.gateway);
    this.#routes = new RouteTable(routes);
    this.#openApi = JSON.stringify(openApiOf(routes));
    const limits = {
      headersTimeout: headersMs,
      requestTimeout: headersMs + bodyMs,
      maxHeaderSize: 16_384,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: 1_000,
    };
    const listener: RequestListener = (request, response) => {
      const asked = this.#observe(response);
      this.#answer(request, response, asked).catch((error: unknown) => {
        this.#failed(request, response, error);
      });
    };
    this.#server =
      parts.tls === undefined
        ? createServer(limits, listener)
        : createTlsServer(
            {
              ...limits,
              ...certificateTls,
              ...parts.tls,
              // A client without a certificate may have a token.
              requestCert: parts.tls.ca !== undefined,
              rejectUnauthorized: false,
            },
            listener,
          );
    this.#server.maxConnections = connectionsMax;
    this.#server.on("drop", () => parts.metrics?.refused("connections"));
    this.#server.on("connection", (socket: Socket) => {
      this.#connections += 1;
      socket.once("close", () => (this.#connections -= 1));
    });
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** The used share of each limit; 1 is full. */
  get quotas(): Readonly<Record<"connections" | "watches" | "changes", number>> {
    return {
      connections: this.#connections / connectionsMax,
      watches: this.#streamRoom.used / streamsMax,
      changes: this.#waitingRoom.used / waitingMax,
    };
  }

  /** Whether the gateway is ready. The result is at most a second old. */
  async checks(): Promise<readonly Check[]> {
    const stopping = { name: "serving", isPassed: !this.#isStopping, detail: "the gateway" };
    return [
      this.#isStopping ? { ...stopping, detail: "the gateway is stopping" } : stopping,
      await this.#readiness.get(),
    ];
  }

  /** @throws LeaseholdError `INVALID_CONFIG` when the gateway cannot listen at the address */
  async listen({ host, port }: Address): Promise<string> {
    this.#server.listen({ port, host, backlog: 4_096 });
    try {
      await once(this.#server, "listening");
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new LeaseholdError("INVALID_CONFIG", `the gateway cannot listen at ${host}:${port}: ${why}`, {
        cause,
      });
    }
    const { port: taken } = this.#server.address() as AddressInfo;
    return formatAddress(host, taken);
  }

  /** New certificates apply to connections opened from now on. */
  setTls(tls: ServedPems): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext({ ...certificateTls, ...tls });
  }

  /** Stops serving. When it resolves, open requests have ended or were cut off. */
  async close(): Promise<void> {
    this.#isStopping = true;
    for (const stream of this.#streams) stream.end();
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #observe(response: ServerResponse): Asked {
    const asked = { route: "other" };
    const { metrics, nowMs } = this.#parts;
    if (metrics === undefined) return asked;
    const beganMs = nowMs();
    response.once("close", () => {
      const status = response.writableFinished ? response.statusCode : "cut";
      metrics.answered(asked.route, status, nowMs() - beganMs);
    });
    return asked;
  }

  async #answer(request: IncomingMessage, response: ServerResponse, asked: Asked): Promise<void> {
    const receivedMs = this.#parts.nowMs();
    const { method = "", url = "/" } = request;
    response.setHeader("cache-control", "no-store");
    response.setHeader("x-content-type-options", "nosniff");
    if (!URL.canParse(url, "http://gateway") || !url.startsWith("/"))
      throw new HttpRefusal(400, "no such path");
    const { pathname, searchParams } = new URL(url, "http://gateway");
    const users = this.#parts.users();
    refuseForeign(request, users);
    if (healthPaths.has(pathname)) {
      asked.route = "health";
      return pathname === "/livez" ? sendText(response, "ok\n") : this.#ready(response, searchParams);
    }
    if (pathname === "/openapi.json") return sendJson(response, { status: 200 }, this.#openApi);
    const user = await userOf(request, users, this.#parts.issuer);
    if (pathname === "/v1/watch") {
      asked.route = "watch";
      return this.#watch(request, response, user, searchParams);
    }
    const { route, id } = this.#routes.find(method, pathname);
    asked.route = `${route.method} ${route.path}`;
    const gone = new AbortController();
    response.once("close", () => gone.abort(new LeaseholdError("CLOSED", "the client has gone")));
    const asker = this.#asker(request, user, receivedMs, gone.signal);
    const pollMs = pollOf(request.headers["prefer"]);
    const body = route.method === "POST" ? await jsonOf(request) : {};
    refuseUnknownQuery(route, searchParams);
    sendJson(response, await route.answer({ asker, query: searchParams, id, body, pollMs }));
  }

  #asker(request: IncomingMessage, { name, rights }: User, receivedMs: number, signal: AbortSignal): Asker {
    const { log } = this.#parts;
    const { headers, socket } = request;
    // Read now: the request's socket may be gone once its body has been read.
    const from = formatAddress(socket.remoteAddress ?? "", socket.remotePort ?? 0);
    const key = headers["idempotency-key"];
    if (key !== undefined && (typeof key !== "string" || !keyForm.test(key)))
      throw new HttpRefusal(400, "an idempotency key has 1 to 255 characters of ASCII without spaces");
    return {
      owner: name,
      receivedMs,
      signal,
      key,
      may: (action, resource) => rights.may(action, resource),
      must: (action, resource) => {
        if (rights.may(action, resource)) return;
        const why = `the user may not ${action} ${JSON.stringify(resource)}`;
        log.limited("permission-denied", name, why, { user: name, from, action, resource });
        throw new LeaseholdError("PERMISSION_DENIED", why);
      },
      audit: (action, resource, outcome) => {
        log.log("holder-action", `${action} of ${JSON.stringify(resource)}: ${outcome}`, {
          user: name,
          from,
          action,
          resource,
          outcome,
        });
      },
    };
  }

  #watch(request: IncomingMessage, response: ServerResponse, user: User, query: URLSearchParams): void {
    if (request.method !== "GET") throw new HttpRefusal(405, "a watch is a GET", { allow: "GET" });
    const resource = query.get("resource");
    const prefix = resource ?? query.get("prefix") ?? "";
    if (prefix.length > 512) throw new HttpRefusal(400, "the name is longer than 512 characters");
    this.#streamRoom.take(user.name, 1);
    response.once("close", () => this.#streamRoom.release(user.name, 1));
    const last = request.headers["last-event-id"];
    const stream = new EventStream({
      response,
      prefix,
      isExact: resource !== null,
      maySee: (name) => user.rights.may("see", name),
      charge: new Charge(this.#waitingRoom, user.name),
    });
    this.#streams.add(response);
    const end = this.#parts.hub.follow(stream, typeof last === "string" ? last : undefined);
    response.once("close", () => {
      this.#streams.delete(response);
      end();
    });
  }

  async #askGround(): Promise<Check> {
    const { state } = await this.#parts.leases.holder("leasehold/gateway/readiness", { timeout: "2s" });
    const isPassed = state !== "unknown";
    return { name: "ground", isPassed, detail: isPassed ? "it answers" : "it does not answer" };
  }

  async #ready(response: ServerResponse, query: URLSearchParams): Promise<void> {
    const checks = await this.checks();
    response.statusCode = checks.every(({ isPassed }) => isPassed) ? 200 : 503;
    sendText(response, healthText(checks, query.has("verbose")));
  }

  #failed(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const problem = problemOf(error);
    // A client that has disconnected reads no answer.
    if (!response.destroyed) this.#parts.metrics?.refused(reasonOf(problem));
    if (problem.code === "INTERNAL") {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#parts.log.limited("request-failed", text, text, { method: request.method, error: text });
    }
    if (problem.code === "UNAUTHENTICATED") {
      const from = request.socket.remoteAddress ?? "";
      this.#parts.log.limited("credential-refused", from, problem.detail, { from });
      response.setHeader("www-authenticate", 'Bearer realm="leasehold"');
    }
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (error instanceof HttpRefusal)
      for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    response.writeHead(problem.status, { "content-type": "application/problem+json" });
    response.end(JSON.stringify(problem));
  }
}

const healthPaths: ReadonlySet<string> = new Set(["/livez", "/readyz", "/healthz"]);

const reasonOf = ({ code, status }: Problem): string => (code === "HTTP" ? `http_${status}` : code);

const tooMany = (what: string) => () =>
  new LeaseholdError(
    "RESOURCES_FULL",
    `the gateway has too many ${what}, or this user has more than a share`,
  );

/** RFC 7240: how long the client is willing to wait for the answer. */
function pollOf(prefer: string | string[] | undefined): number | undefined {
  const text = /(?:^|[,;])\s*wait=(\d{1,6})\s*(?:[,;]|$)/.exec(String(prefer ?? ""))?.[1];
  return text === undefined ? undefined : parseDuration(1_000 * Math.min(Number(text), pollSecondsMax));
}

function refuseUnknownQuery({ query = {} }: Route, given: URLSearchParams): void {
  for (const name of given.keys())
    if (!Object.hasOwn(query, name)) {
      const known = Object.keys(query).join(", ") || "nothing";
      throw new HttpRefusal(400, `the query has ${JSON.stringify(name.slice(0, 64))}, and may have ${known}`);
    }
}

function sendText(response: ServerResponse, text: string): void {
  response.setHeader("content-type", "text/plain; charset=utf-8");
  response.end(text);
}

function sendJson(
  response: ServerResponse,
  { status, body, location }: Answer,
  text = JSON.stringify(body),
): void {
  response.statusCode = status;
  if (location !== undefined) response.setHeader("location", location);
  if (status === 204) {
    response.end();
    return;
  }
  response.setHeader("content-type", "application/json");
  response.end(text);
}
