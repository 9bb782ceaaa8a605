import { once } from "node:events";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { LeaseholdError } from "leasehold/common";
import { type Address, formatAddress, isLoopback } from "leasehold/runtime";
import { type Access, type Refusal, refusal } from "./access.js";

const connectionsMax = 256;
const headersMsMax = 5_000;

const security = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

/** The pages that a server serves. */
export interface WebParts {
  /** The subject of the error when the server cannot listen, such as "the console". */
  readonly what: string;
  readonly access: Access;
  /** The content security policy of answers that set none. */
  readonly policy: string;
  /** Answers a request that `access` has let through. Errors go to `failed`. */
  answer(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> | void;
  failed(response: ServerResponse, error: unknown): void;
}

/** Serves pages to browsers, and refuses requests that a page of another site has sent. */
export class WebServer {
  readonly #parts: WebParts;
  readonly #server: Server;

  constructor(parts: WebParts) {
    this.#parts = parts;
    this.#server = createServer({ headersTimeout: headersMsMax }, (request, response) => {
      this.#answer(request, response).catch((error: unknown) => parts.failed(response, error));
    });
    this.#server.maxConnections = connectionsMax;
  }

  /** @throws LeaseholdError `INVALID_CONFIG` when the server cannot listen at the address */
  async listen({ host, port }: Address): Promise<string> {
    this.#server.listen(port, host);
    try {
      await once(this.#server, "listening");
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new LeaseholdError(
        "INVALID_CONFIG",
        `${this.#parts.what} cannot be served at ${host}:${port}: ${why}`,
        { cause },
      );
    }
    const { port: taken } = this.#server.address() as AddressInfo;
    return formatAddress(host, taken);
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { access, policy } = this.#parts;
    for (const [name, value] of Object.entries(security)) response.setHeader(name, value);
    response.setHeader("content-security-policy", policy);
    const { url: target = "/" } = request;
    // A target that begins with two slashes is a path, too, and not another server.
    const full = `http://server${target}`;
    if (!target.startsWith("/") || !URL.canParse(full))
      return send(response, { status: 400, text: "no such path\n" });
    const refused = refusal(request.headers, access, request.method === "POST");
    if (refused !== undefined) return send(response, refused);
    await this.#parts.answer(request, response, new URL(full));
  }
}

/** The host names by which browsers reach a server at this address. */
export function hostsOf(host: string, more: readonly string[] = []): ReadonlySet<string> {
  const names = [host, `[${host}]`, ...more];
  if (isLoopback(host)) names.push("localhost", "127.0.0.1", "[::1]");
  return new Set(names.map((name) => name.toLowerCase()));
}

export function send(response: ServerResponse, { status, text, headers = {} }: Refusal): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    ...headers,
  });
  response.end(text);
}
