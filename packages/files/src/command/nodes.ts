import { type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ConnectionOptions } from "node:tls";
import { type ErrorCode, LeaseholdError, errorCodes } from "leasehold/common";
import { codeHeader } from "../webdav/listen.js";
import { processingHeader } from "../webdav/server.js";
import { type ExitName, CommandFailure, usageError } from "leasehold/cli";

/** The first port of the nodes of `leasehold files up`. */
export const localFilesPort = 7480;
export const localNodes: readonly string[] = [0, 1, 2].map((n) => `http://127.0.0.1:${localFilesPort + n}`);

/** The pause between two rounds of requests to all nodes, ms, in which a lost primary can be replaced. */
const pauseMs = 250;
/** Timeout for a node that sends nothing, ms. */
const silentMsMax = 6_000;
/** How much of an error's body is read, bytes. */
const errorBytesMax = 4_096;

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called for each attempt. A body that cannot be opened again is sent only once. */
  readonly body?: { readonly bytes?: number; readonly open: () => Readable; readonly isRepeatable: boolean };
}

/** CAs trusted for nodes reached by https. Default: the system's store. */
export type Trust = Pick<ConnectionOptions, "ca" | "checkServerIdentity">;

/** Statuses that may not recur at another server, or at the same one a moment later. */
const temporary = new Set([502, 503, 504]);

/** Exit codes by status. All other statuses are faults. */
const exitByStatus: Readonly<Record<number, ExitName>> = {
  400: "usage",
  401: "refused",
  403: "refused",
  404: "missing",
  405: "usage",
  409: "conflict",
  412: "conflict",
  416: "usage",
  423: "conflict",
  503: "unavailable",
  507: "unavailable",
};

/** The nodes' servers. Requests go to the first that answers, and to another one when it fails. */
export class Nodes {
  readonly urls: readonly URL[];
  readonly #timeoutMs: number;
  readonly #authorization: string | undefined;
  readonly #trust: Trust;
  #current = 0;

  constructor(urls: readonly string[], timeoutMs: number, user: string | undefined, trust: Trust = {}) {
    this.urls = urls.map(nodeUrl);
    this.#timeoutMs = timeoutMs;
    this.#trust = trust;
    this.#authorization = user && `Basic ${Buffer.from(user, "utf8").toString("base64")}`;
  }

  /**
   * Repeats the request until a node answers or `--timeout` has passed.
   * @throws CommandFailure for a refusal
   */
  async ask(ask: Ask): Promise<IncomingMessage> {
    let failingSinceMs = performance.now();
    let distrust: Unreachable | undefined;
    for (let tries = 1; ; tries += 1) {
      const url = this.urls[this.#current]!;
      const triedMs = performance.now();
      const failure = await this.#try(url, ask).catch((error: unknown) => new Unreachable(url, error));
      if (!(failure instanceof Unreachable) && !temporary.has(failure.statusCode ?? 0)) {
        if ((failure.statusCode ?? 500) < 300) return failure;
        throw await refusalOf(failure, ask);
      }
      // A transfer that has made progress resets the timeout.
      if (performance.now() - triedMs > 2 * silentMsMax) failingSinceMs = performance.now();
      const isOver = performance.now() - failingSinceMs > this.#timeoutMs;
      if (isOver || ask.body?.isRepeatable === false)
        throw failure instanceof Unreachable
          ? new CommandFailure("unavailable", `no node can be reached: ${failure.message}`)
          : await refusalOf(failure, ask);
      if (!(failure instanceof Unreachable)) failure.destroy();
      this.#current = (this.#current + 1) % this.urls.length;
      if (failure instanceof Unreachable) distrust = failure.isDistrusted ? failure : distrust;
      else distrust = undefined;
      if (tries % this.urls.length > 0) continue;
      if (distrust !== undefined)
        throw new CommandFailure("refused", `${distrust.message}; --tls-ca names the authority to trust`);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** Sends the request once, to this node only. */
  async askOne(url: URL, ask: Ask): Promise<IncomingMessage> {
    const answer = await this.#try(url, ask);
    if ((answer.statusCode ?? 500) < 300) return answer;
    throw await refusalOf(answer, ask);
  }

  async text(ask: Ask): Promise<string> {
    return textOf(await this.ask(ask));
  }

  #try(url: URL, { method, path, headers, body }: Ask): Promise<IncomingMessage> {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const request = send(
        {
          protocol: url.protocol,
          hostname: url.hostname.replace(/^\[|\]$/g, ""),
          port: url.port,
          method,
          path: encodedPath(path),
          ...this.#trust,
          headers: {
            ...headers,
            [processingHeader]: "1",
            ...(body?.bytes !== undefined && { "content-length": String(body.bytes) }),
            ...(this.#authorization !== undefined && { authorization: this.#authorization }),
          },
          // A request may take hours as long as bytes flow or the node reports progress.
          timeout: Math.min(silentMsMax, this.#timeoutMs),
        },
        resolve,
      );
      request.on("timeout", () => request.destroy(new Error("no answer in time")));
      request.on("error", reject);
      if (body === undefined) request.end();
      // An answer before the end of the body is a refusal, and more informative than the broken pipe.
      else pipeline(body.open(), request).catch(() => undefined);
    });
  }
}

class Unreachable extends Error {
  /** A retry does not change a certificate. */
  readonly isDistrusted: boolean;

  constructor({ host }: URL, cause: unknown) {
    const { code, message } = cause as NodeJS.ErrnoException;
    super(`${host}: ${message || code || String(cause)}`, { cause });
    this.isDistrusted = /CERT|ISSUER|SIGNATURE/.test(code ?? "");
  }
}

function nodeUrl(text: string): URL {
  const withScheme = /^https?:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(withScheme))
    throw usageError(`--nodes: ${JSON.stringify(text)} is not the address of a node`);
  return new URL(withScheme);
}

export function encodedPath(path: string): string {
  return `/${path.split("/").map(encodeURIComponent).join("/")}`;
}

export async function textOf(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
  return text;
}

async function refusalOf(answer: IncomingMessage, { method, path }: Ask): Promise<Error> {
  const status = answer.statusCode ?? 500;
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > errorBytesMax) break;
  }
  const code = String(answer.headers[codeHeader] ?? "");
  const isKnown = Object.hasOwn(errorCodes, code);
  // A body in XML says no more than the code does.
  if (isKnown && text.trim().startsWith("<")) return new LeaseholdError(code as ErrorCode);
  const said = text.trim().startsWith("<") ? `${status} ${answer.statusMessage}` : text.trim();
  const message = said.replace(`${code}: `, "") || `${method} /${path} was refused with ${status}`;
  if (isKnown) return new LeaseholdError(code as ErrorCode, message);
  return new CommandFailure(exitByStatus[status] ?? "unexpected", message);
}
