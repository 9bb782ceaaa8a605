import { createServer, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Room } from "leasehold/common";
import type { Http1 } from "../../wire/port.js";
import type { CoreHost } from "../../../host/host.js";
import { allAlarms } from "../../../state/alarms.js";
import type { LocalClient } from "../calls/local.js";
import { apiVersion, clusterVersion } from "../maintenance.js";
import { CallSlots } from "../../accounts/call-slots.js";
import { answerFull, answerJson } from "./gateway.js";
import { healthOf, whyNoAnswer } from "./health.js";
import { type HttpCall, OneByOne } from "../../wire/http/pipeline.js";
import { answerWhole, end } from "../../wire/http/slow-client.js";
import { tooManyRequests } from "../../../state/errors.js";
import type { CodedError } from "../../wire/rpc/call.js";
import { routes } from "./routes.js";
import { type HttpTimes, httpTimes } from "../../wire/http/timeouts.js";
import type { Counters } from "../../metrics/counters.js";

/** The HTTP/1.1 requests to accept. */
export interface Admitted {
  /** Allowed origins of pages; undefined: all, as in etcd. */
  readonly origins: ReadonlySet<string> | undefined;
  /**
   * Allowed host names; undefined: all. This refuses pages whose own name resolves to this server (DNS
   * rebinding).
   */
  readonly hosts: ReadonlySet<string> | undefined;
}

const crossOrigin = {
  "Access-Control-Allow-Headers": "accept, content-type, authorization",
  "Access-Control-Allow-Methods": "POST, GET, OPTIONS, PUT, DELETE",
};

export interface PageParts {
  readonly host: Pick<CoreHost, "status">;
  readonly local: LocalClient;
  /** Metrics as text for Prometheus. */
  readonly metrics: () => string;
  /** Counts answers to health requests. */
  readonly healthAsked: Counters["healthAsked"];
}

export interface HttpParts extends PageParts {
  /** Bytes of requests. All connections share it, including those of gRPC. */
  readonly room: Room<CodedError>;
}

/**
 * Serves JSON, health, version and metrics on the port of gRPC.
 *
 * @param callsMax concurrent JSON calls over all connections; others queue. In etcd they share one connection
 *   of its gateway, and so its streams.
 */
export function clientHttp(
  parts: HttpParts,
  callsMax: number,
  { hosts, origins }: Admitted,
  times = httpTimes,
): Http1 {
  const slots = new CallSlots(callsMax);
  const shared = { client: parts.local, slots, times };
  return portFor(parts.room, times, async (call) => {
    const { request, response, socket } = call;
    const host = hostOf(request);
    // Over TLS the certificate limits the names.
    if (hosts !== undefined && !("encrypted" in socket) && !hosts.has(host)) {
      await plain(call, 421, unknownHost(host));
      return;
    }
    const origin = origins === undefined ? "*" : request.headers.origin;
    if (origin !== undefined && origins?.has(origin) !== false)
      for (const [name, value] of Object.entries({ ...crossOrigin, "Access-Control-Allow-Origin": origin }))
        response.setHeader(name, value);
    if (request.method === "OPTIONS") {
      response.writeHead(200, { "Content-Length": 0 });
      await end(call, times.stuckMs);
      return;
    }
    const path = pathOf(request);
    const method = routes.get(path);
    if (method === undefined) await answerPage(parts, call, path);
    else if (request.method === "POST") await answerJson(shared, method, call);
    else await notAllowed(call);
  });
}

/** Room for metrics requests: each of a hundred connections may send one with the longest head. */
const metricsBytesMax = 4 * 1024 * 1024;

/** Serves only metrics and health, on a port whose room clients cannot use up. */
export function metricsHttp(parts: PageParts): Http1 {
  return portFor(new Room(metricsBytesMax, tooManyRequests), httpTimes, async (call) => {
    const path = pathOf(call.request);
    if (path === "/version") await notFound(call, path);
    else await answerPage(parts, call, path);
  });
}

function portFor(room: Room<CodedError>, times: HttpTimes, answer: (call: HttpCall) => Promise<void>): Http1 {
  const { headLookMs, headMs, idleMs, requestMs, restMs } = times;
  const refuse = (call: HttpCall) => answerFull(call, room.refusal(call.client), times);
  const answering = { answer, refuse };
  const requests = new OneByOne(room, answering, requestMs);
  const server = createServer({ connectionsCheckingInterval: headLookMs }, (request, response) => {
    const { socket } = request;
    response.once("finish", () => endWithin(request, socket, restMs));
    requests.take(request, response);
  });
  server.timeout = idleMs;
  server.headersTimeout = headMs;
  // Bodies have their own timeout, as those of streams have none.
  server.requestTimeout = 0;
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const status = error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? "408 Request Timeout" : "400 Bad Request";
    // A client that keeps sending is not read to the end.
    if (socket.writable && requests.canTell(socket))
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`, () => socket.destroy());
    else socket.destroy();
  });
  // The server does not listen itself, but only checks head timeouts after this event.
  server.emit("listening");
  return {
    take: (socket) => void server.emit("connection", socket),
    close: () => void server.close(),
  };
}

/**
 * Reads and drops the rest of an answered request for a limited time, so that its client reads the answer.
 */
function endWithin(request: IncomingMessage, socket: Socket, ms: number): void {
  if (request.complete) return;
  const late = setTimeout(() => socket.destroy(), ms);
  request.once("close", () => clearTimeout(late));
}

function pathOf({ url = "/" }: IncomingMessage): string {
  return url.replace(/\?.*$/s, "");
}

function hostOf({ headers: { host = "" } }: IncomingMessage): string {
  const [, bracketed, name] = /^(?:\[([^\]]*)\]|([^:]*)):\d*$/.exec(host) ?? [];
  return bracketed ?? name ?? host;
}

function unknownHost(host: string): string {
  return `the host ${JSON.stringify(host)} is not among --host-whitelist, and this is no TLS\n`;
}

async function answerPage(parts: PageParts, call: HttpCall, path: string): Promise<void> {
  const version = { etcdserver: apiVersion, etcdcluster: clusterVersion };
  const checked = async () => {
    const query = /\?(.*)$/s.exec(call.request.url ?? "")?.[1] ?? "";
    const { status, text } = await healthOf(path, query, {
      status: () => parts.host.status(),
      local: parts.local,
    });
    await plain(call, status, text);
  };
  const pages: Readonly<Record<string, () => Promise<void>>> = {
    "/health": () => answerHealth(parts, call),
    "/metrics": () => plain(call, 200, parts.metrics(), "text/plain; version=0.0.4; charset=utf-8"),
    "/version": () => plain(call, 200, JSON.stringify(version), "application/json"),
  };
  const isCheck = /^\/(?:livez|readyz)(?:\/|$)/.test(path);
  const page = isCheck ? checked : Object.hasOwn(pages, path) ? pages[path] : undefined;
  const { method } = call.request;
  if (page === undefined) await notFound(call, path);
  else if (method === "GET" || method === "HEAD") await page();
  else {
    call.response.setHeader("Allow", "GET");
    await notAllowed(call);
  }
}

/** Healthy means: a leader, room, and an answer in time. */
async function answerHealth({ healthAsked, host, local }: PageParts, call: HttpCall): Promise<void> {
  const { leader, ...alarmed } = host.status();
  const isHealthy =
    leader !== 0n &&
    allAlarms(alarmed).length === 0 &&
    (await whyNoAnswer({ status: () => host.status(), local }, false)) === undefined;
  healthAsked[isHealthy ? "healthy" : "unhealthy"] += 1;
  await plain(call, isHealthy ? 200 : 503, JSON.stringify({ health: String(isHealthy) }));
}

function notFound(call: HttpCall, path: string): Promise<void> {
  return plain(call, 404, /^\/v3(?:beta)?\//.test(path) ? "Not Found\n" : "404 page not found\n");
}

function notAllowed(call: HttpCall): Promise<void> {
  return plain(call, 405, "Method Not Allowed\n");
}

function plain(
  call: HttpCall,
  status: number,
  text: string,
  type = "text/plain; charset=utf-8",
): Promise<void> {
  return answerWhole(call, status, { "Content-Type": type }, text, httpTimes.stuckMs);
}
