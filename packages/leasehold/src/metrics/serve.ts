import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { LeaseholdError } from "../lease/errors.js";
import { type Check, healthText } from "./health.js";
import type { Registry } from "./registry.js";
import { contentTypes, textOf } from "./text.js";
import type { Served, TextFormat } from "./types.js";

/** Maximum concurrent connections: a scraper, its standby, and health checks. */
const connectionsMax = 64;
/** Timeout for receiving a request, and for a response that makes no progress. */
const requestMsMax = 5_000;

export interface ServeParts {
  readonly registry: Registry;
  readonly host: string;
  readonly port: number;
  /** Absent: the process is ready whenever it responds. */
  readonly checks?: (() => readonly Check[] | Promise<readonly Check[]>) | undefined;
}

/** @throws LeaseholdError `INVALID_CONFIG` when the address cannot be listened at */
export async function serve({ registry, host, port, checks = () => [] }: ServeParts): Promise<Served> {
  const limits = { headersTimeout: requestMsMax, requestTimeout: requestMsMax };
  const server = createServer({ ...limits, connectionsCheckingInterval: 1_000 }, (request, response) => {
    answer(request, response, registry, checks).catch(() => {
      if (!response.headersSent) send(response, 500, "text/plain", "the reading failed\n");
    });
  });
  server.maxConnections = connectionsMax;
  // Closes the connections of silent clients and slow readers.
  server.setTimeout(requestMsMax);
  // Pipelined requests would accumulate responses in memory.
  server.maxRequestsPerSocket = 1;
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new LeaseholdError("INVALID_CONFIG", `metrics cannot be served at ${host}:${port}: ${why}`, {
      cause,
    });
  }
  server.unref();
  const { address, family, port: taken } = server.address() as AddressInfo;
  return {
    address: family === "IPv6" ? `[${address}]:${taken}` : `${address}:${taken}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, "close");
    },
  };
}

async function answer(
  { method, url = "/", headers }: IncomingMessage,
  response: ServerResponse,
  registry: Registry,
  checks: NonNullable<ServeParts["checks"]>,
): Promise<void> {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  if (method !== "GET" && method !== "HEAD") {
    send(response, 405, "text/plain", "only GET and HEAD\n");
    return;
  }
  switch (pathname) {
    case "/metrics": {
      const isOpen = headers.accept?.includes("application/openmetrics-text") === true;
      const format: TextFormat = isOpen ? "openmetrics" : "prometheus";
      send(response, 200, contentTypes[format], textOf(registry, format));
      return;
    }
    case "/livez":
      send(response, 200, "text/plain", "ok\n");
      return;
    case "/readyz":
    case "/healthz": {
      const all = await checks();
      const isReady = all.every(({ isPassed }) => isPassed);
      send(response, isReady ? 200 : 503, "text/plain", healthText(all, searchParams.has("verbose")));
      return;
    }
    default:
      send(response, 404, "text/plain", "/metrics, /livez, /readyz and /healthz are here\n");
  }
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" });
  response.end(text);
}
