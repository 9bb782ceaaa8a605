import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import type { Leases } from "leasehold";
import { LeaseholdError, isRecord } from "leasehold/common";
import { type Address, packageVersion } from "leasehold/runtime";
import type { ActAnswer, ActRequest, LeaseAnswer } from "../record/messages.js";
import type { Access } from "./access.js";
import { LiveStream } from "./live.js";
import type { Observer } from "./observer.js";
import { WebServer, send } from "./web-server.js";

export const streamsMax = 64;
const bodyBytesMax = 4_096;
const askMsMax = 3_000;

const pageFolder = new URL("../page/", import.meta.url);
/** The page's files, with their types. */
const pages: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/page.js": ["page.js", "text/javascript; charset=utf-8"],
  "/page.css": ["page.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export interface HttpParts {
  readonly leases: Leases;
  readonly observer: Observer;
  readonly access: Access;
  readonly allowChanges: boolean;
  /** The addresses of the ground, as the page shows them. */
  readonly endpoints: string;
}

/** Serves the console's page, its data, and its changes if they are allowed. */
export class HttpServer {
  readonly #parts: HttpParts;
  readonly #server: WebServer;
  readonly #streams = new Set<LiveStream>();

  constructor(parts: HttpParts) {
    this.#parts = parts;
    this.#server = new WebServer({
      what: "the console",
      access: parts.access,
      policy,
      answer: (request, response, url) => this.#answer(request, response, url),
      failed,
    });
  }

  /** @throws LeaseholdError `INVALID_CONFIG` when the console cannot listen at the address */
  listen(address: Address): Promise<string> {
    return this.#server.listen(address);
  }

  async close(): Promise<void> {
    for (const stream of this.#streams) stream.close();
    await this.#server.close();
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { pathname, searchParams }: URL,
  ): Promise<void> {
    if (request.method === "POST" && pathname === "/api/act") return this.#act(request, response);
    if (request.method !== "GET" && request.method !== "HEAD")
      return send(response, { status: 405, text: "only GET and HEAD\n" });
    const page = pages[pathname];
    if (page !== undefined) return sendPage(response, page);
    if (pathname === "/api/live") return this.#live(response, searchParams);
    if (pathname === "/api/lease") return this.#lease(response, searchParams.get("name") ?? "");
    return send(response, { status: 404, text: "there is nothing here\n" });
  }

  #live(response: ServerResponse, search: URLSearchParams): void {
    if (this.#streams.size >= streamsMax)
      return send(response, { status: 503, text: `${streamsMax} pages are open already\n` });
    const { allowChanges, endpoints, observer } = this.#parts;
    const part = { prefix: search.get("prefix") ?? "", after: search.get("after") ?? "" };
    const start = { type: "start", allowChanges, endpoints, version: packageVersion() } as const;
    const stream = new LiveStream(response, observer, part, start);
    this.#streams.add(stream);
    response.on("close", () => this.#streams.delete(stream));
  }

  async #lease(response: ServerResponse, name: string): Promise<void> {
    const explanation = await this.#parts.leases.explain(name, { timeout: askMsMax });
    const { broken, members, token, waiting, reasons, state, holder, label, data, remainingMs } = explanation;
    const answer: LeaseAnswer = {
      nowMs: Date.now(),
      state,
      isBroken: broken,
      waiting,
      reasons,
      ...(holder !== undefined && { holder }),
      ...(label !== undefined && { label }),
      ...(token !== undefined && { token: String(token) }),
      ...(data !== undefined && { data }),
      ...(remainingMs !== undefined && { remainingMs }),
      copies: members.map(({ id, address, state: at, reason, lease }) => ({
        id,
        address,
        text: reason ?? at,
        ...(lease !== undefined && {
          lease: { holder: lease.holder, state: lease.state, remainingMs: lease.remainingMs },
        }),
      })),
      tenures: this.#parts.observer.record.tenures(name),
    };
    sendJson(response, answer);
  }

  async #act(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { allowChanges, leases, observer } = this.#parts;
    if (!allowChanges)
      return send(response, { status: 403, text: "this console only shows: see --allow-changes\n" });
    // Read now: the request's socket may be gone once its body has been read.
    const from = request.socket.remoteAddress ?? "somebody";
    const { action, name, to } = readAct(await bodyOf(request));
    const options = { timeout: askMsMax };
    const result =
      action === "release"
        ? await leases.requestRelease(name, options)
        : action === "break"
          ? await leases.break(name, options)
          : await leases.handOver(name, to ?? "", options);
    const words = { release: "asked to release", break: "broke", handover: "handed over" }[action];
    const outcome = result.done ? "" : ", without effect";
    observer.record.note(
      "action",
      `a console's user at ${from} ${words} the lease${outcome}`,
      Date.now(),
      name,
    );
    sendJson(response, { isDone: result.done } satisfies ActAnswer);
  }
}

function failed(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof LeaseholdError ? error.code : "INTERNAL";
  const status = code === "NO_QUORUM" ? 503 : code === "INTERNAL" ? 500 : 400;
  sendJson(response, { code, text }, status);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > bodyBytesMax)
      throw new LeaseholdError("INVALID_CONFIG", `the body is larger than ${bodyBytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function readAct(text: string): ActRequest {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  if (isRecord(body)) {
    const { action, name, to } = body;
    const isKnown = action === "release" || action === "break" || action === "handover";
    if (isKnown && typeof name === "string" && (typeof to === "string" || to === undefined))
      return { action, name, ...(to !== undefined && { to }) };
  }
  throw new LeaseholdError(
    "INVALID_CONFIG",
    `the body must be {"action": "release"|"break"|"handover", "name": …}`,
  );
}

function sendPage(response: ServerResponse, [file, type]: readonly [file: string, type: string]): void {
  const content = readFileSync(fileURLToPath(new URL(file, pageFolder)));
  response.writeHead(200, { "content-type": type, "cache-control": "no-cache" });
  response.end(content);
}

function sendJson(response: ServerResponse, value: object, status = 200): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(value));
}
