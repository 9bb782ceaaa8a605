import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { LeaseholdError } from "leasehold/common";
import type { EventLog } from "leasehold/runtime";
import { eventLog, type LogEvents } from "../logs/log-events.js";
import type { Files } from "../types.js";
import {
  checkHost,
  type FrontServer,
  idleMs,
  listen,
  type ListenOptions,
  type Origin,
  originOf,
  requestsMax,
} from "../webdav/listen.js";
import type { Call } from "./call.js";
import { chunkedOf } from "./chunks.js";
import { type S3Code, S3Error, s3ErrorOf } from "./errors.js";
import { operationOf } from "./operations.js";
import { checkSignature, queryOf, rawPathOf, type S3User, type Seed, unsignedPayload } from "./signature.js";
import { collectUploads } from "./uploads.js";

/** The shortest password allowed as a secret: anyone who sees a signature can try passwords against it. */
export const passwordLengthMin = 8;
/** The pause between two searches for uploads that are too old, ms. */
const collectMs = 3_600_000;

export interface S3Options extends ListenOptions {
  /**
   * `name:password` of the only user, who may do everything. They are the access key and the secret; the
   * secret has at least 8 characters. Default: no authentication.
   */
  readonly credentials?: string | undefined;
}

/**
 * Serves a node's files over the S3 API. Folders in the root are buckets, and paths in them are keys.
 * @throws LeaseholdError `INVALID_CONFIG` if the server would be unprotected on a network, or cannot listen
 */
export async function serveS3(files: Files, options: S3Options = {}): Promise<FrontServer> {
  const user = userOf(options.credentials);
  const front = new Front(options, files, user);
  const server = await listen("S3", user === undefined, options, (request, response) =>
    front.serve(request, response),
  );
  const collecting = setInterval(() => {
    collectUploads(files, Date.now()).catch((error: unknown) => {
      options.fault?.(`uploads were not looked at: ${String(error)}`);
    });
  }, collectMs);
  return {
    url: server.url,
    close: async () => {
      clearInterval(collecting);
      await server.close();
    },
  };
}

/** The codes of authentication failures. */
const refusals: ReadonlySet<S3Code> = new Set([
  "AccessDenied",
  "InvalidAccessKeyId",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch",
]);

function userOf(credentials: string | undefined): S3User | undefined {
  if (credentials === undefined) return undefined;
  const at = credentials.indexOf(":");
  const user = { name: credentials.slice(0, at), password: credentials.slice(at + 1) };
  if (at < 1 || user.password.length < passwordLengthMin)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `the user of S3 is NAME:PASSWORD, with a password of at least ${passwordLengthMin} characters`,
    );
  return user;
}

class Front {
  readonly #options: S3Options;
  readonly #files: Files;
  readonly #user: S3User | undefined;
  readonly #events: EventLog<LogEvents>;
  #underWay = 0;

  constructor(options: S3Options, files: Files, user: S3User | undefined) {
    this.#options = options;
    this.#files = files;
    this.#user = user;
    this.#events = eventLog(options.logger);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#underWay += 1;
    const requestId = randomUUID();
    response.setHeader("x-amz-request-id", requestId);
    const { socket } = request;
    const origin = originOf(socket);
    // The end of an upload, and changes that wait for a majority, take long without sending anything.
    const unlimited = (): void => void socket.setTimeout(0);
    request.once("end", unlimited);
    // Errors after a client has disconnected are ignored; its response is cut off anyway.
    response.on("error", () => undefined);
    try {
      if (this.#underWay > requestsMax)
        throw new S3Error("SlowDown", "the node has reached its limit of requests");
      const call = this.#callOf(request, response);
      await operationOf(call)(call);
    } catch (error) {
      this.#audit(request, error, origin);
      this.#refuse(request, response, error, requestId);
    } finally {
      this.#underWay -= 1;
      // The request's end may come later, during the next request's time.
      request.off("end", unlimited);
      socket.setTimeout(idleMs);
    }
  }

  #callOf(request: IncomingMessage, response: ServerResponse): Call {
    const { method = "", url = "", headers } = request;
    let seed: Seed | undefined;
    if (this.#user === undefined) checkHost(request, this.#options);
    else seed = checkSignature({ method, url, headers }, this.#user, Date.now());
    const payload = headers["x-amz-content-sha256"] as string | undefined;
    const isHash = payload !== undefined && /^[0-9a-f]{64}$/.test(payload);
    const chunked = chunkedOf(payload, seed);
    if (payload !== undefined && payload !== unsignedPayload && !isHash && chunked === undefined)
      throw new S3Error("InvalidArgument", "x-amz-content-sha256 is no SHA-256");
    const path = rawPathOf(url).replace(/^\//, "");
    const slash = path.indexOf("/");
    return {
      request,
      response,
      files: this.#files,
      bucket: slash < 0 ? path : path.slice(0, slash),
      key: slash < 0 ? "" : path.slice(slash + 1),
      query: new Map(queryOf(url)),
      chunked,
      sha256: isHash ? payload : undefined,
    };
  }

  #audit({ headers }: IncomingMessage, error: unknown, { host, address }: Origin): void {
    const known = s3ErrorOf(error);
    if (known === undefined || !refusals.has(known.code)) return;
    const { code, message } = known;
    const subject = /Credential=([^/,\s]{1,64})\//.exec(headers.authorization ?? "")?.[1] ?? "";
    const text = `a request from ${address} was refused: ${message}`;
    const fields = { cause: code, subject, address };
    this.#events.limited("credential-refused", `${host} ${code}`, text, fields);
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown, requestId: string): void {
    const known = s3ErrorOf(error);
    if (known === undefined && !request.destroyed)
      this.#options.fault?.(error instanceof Error ? (error.stack ?? error.message) : String(error));
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const told = known ?? new S3Error("InternalError", "a fault of this server");
    const hasBody = request.method !== "HEAD" && told.status !== 304;
    const body = hasBody ? told.xml((request.url ?? "").replace(/\?.*$/s, ""), requestId) : "";
    response.writeHead(told.status, {
      ...(hasBody && {
        "content-type": "application/xml",
        "content-length": String(Buffer.byteLength(body)),
      }),
      ...(told.status === 503 && { "retry-after": "1" }),
      // The unread rest of the request is discarded.
      ...(!request.complete && { connection: "close" }),
    });
    response.end(body);
  }
}
