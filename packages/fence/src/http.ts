import { fenceCodes, FenceError } from "./errors.js";
import { admit, type GuardOptions, isStale, type Refusal, tokenHeader } from "./guard.js";
import { checkToken } from "./token.js";

export { type Greatest, type GuardOptions, tokenHeader } from "./guard.js";

/** The HTTP status of each refusal. */
const statuses = { TOKEN_MISSING: 428, TOKEN_INVALID: 400, TOKEN_STALE: 412 } as const satisfies Record<
  Refusal,
  number
>;

/** An answer reports the refusal only, and reveals neither the fence's name nor another holder's token. */
const answers = Object.fromEntries(
  Object.entries(statuses).map(([code, status]) => [code, answerOf(code as Refusal, status)]),
) as Record<Refusal, Answer>;

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function answerOf(code: Refusal, status: number): Answer {
  const type = `urn:leasehold:error:${code}`;
  return {
    status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store" },
    body: JSON.stringify({ type, title: fenceCodes[code], status, code }),
  };
}

function responseOf({ status, headers, body }: Answer): Response {
  return new Response(body, { status, headers });
}

/** Guards a handler that returns a `Response`. */
async function respond<Asked>(
  header: unknown,
  asked: Asked,
  options: GuardOptions<Asked>,
  handle: (token: bigint) => Response | Promise<Response>,
): Promise<Response> {
  const token = await admit(header, asked, options);
  if (typeof token !== "bigint") return responseOf(answers[token]);
  try {
    return await handle(token);
  } catch (error) {
    if (isStale(error)) return responseOf(answers.TOKEN_STALE);
    throw error;
  }
}

/**
 * Guards a handler of requests whose token is in the header `x-fencing-token`. The guard is not a fence
 * itself: the handler gets the token and must write with it through a fence, which checks and writes in one
 * step.
 *
 * Refusals are problems (RFC 9457): 428 `TOKEN_MISSING`, 400 `TOKEN_INVALID`, and 412 `TOKEN_STALE`, when
 * `options.fence` has seen a greater token or the handler throws this code. All other errors are rethrown.
 *
 * @param handler gets the request, its token, and the server's second argument if there is one
 *
 * @example
 * ```ts
 * import { guard } from "@leasehold/fence/http";
 * import { RedisFence } from "@leasehold/fence/redis";
 *
 * const fence = new RedisFence(async () => [1, []], "reports:fence");
 * const put = guard(async (request: Request, token) => {
 *   await fence.write(token, [["SET", "reports:nightly", await request.text()]]);
 *   return new Response(null, { status: 204 });
 * });
 *
 * const asked = new Request("http://reports/nightly", { method: "PUT", body: "done" });
 * assert.equal((await put(asked)).status, 428);
 * asked.headers.set("x-fencing-token", "42");
 * assert.equal((await put(asked)).status, 204);
 * ```
 */
export function guard<Asked extends Request, Context = void>(
  handler: (request: Asked, token: bigint, context: Context) => Response | Promise<Response>,
  options: GuardOptions<Asked> = {},
): (request: Asked, context: Context) => Promise<Response> {
  return (request, context) =>
    respond(request.headers.get(tokenHeader), request, options, (token) => handler(request, token, context));
}

/** The part of Hono's context that is used. */
export interface HonoContext {
  readonly req: { readonly raw: Request };
}

/** {@link guard} for a handler of Hono: `app.put("/nightly", guardHono(async (c, token) => …))`. */
export function guardHono<Context extends HonoContext>(
  handler: (context: Context, token: bigint) => Response | Promise<Response>,
  options: GuardOptions<Context> = {},
): (context: Context) => Promise<Response> {
  return (context) =>
    respond(context.req.raw.headers.get(tokenHeader), context, options, (token) => handler(context, token));
}

/** The part of a request that is used, of Node's servers, Express and Fastify. */
export interface NodeRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The part of Express' response that is used; Node's own response has it, too. */
export interface ExpressResponse {
  statusCode: number;
  readonly headersSent: boolean;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

/**
 * {@link guard} for a handler of Express 4 or 5: `app.put("/nightly", guardExpress(async (req, res, token) =>
 * …))`. A handler may throw or call `next`. Errors other than refusals go to the server's `next`, and so does
 * a refusal after the answer has begun.
 */
export function guardExpress<Asked extends NodeRequest, Answered extends ExpressResponse>(
  handler: (request: Asked, response: Answered, token: bigint, next: (error?: unknown) => void) => unknown,
  options: GuardOptions<Asked> = {},
): (request: Asked, response: Answered, next: (error?: unknown) => void) => Promise<void> {
  const refuse = (response: ExpressResponse, { status, headers, body }: Answer): void => {
    response.statusCode = status;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    response.end(body);
  };
  return async (request, response, next) => {
    const fail = (error?: unknown): void => {
      if (isStale(error) && !response.headersSent) refuse(response, answers.TOKEN_STALE);
      else next(error);
    };
    try {
      const token = await admit(request.headers[tokenHeader], request, options);
      if (typeof token === "bigint") await handler(request, response, token, fail);
      else refuse(response, answers[token]);
    } catch (error) {
      fail(error);
    }
  };
}

/** The part of Fastify's reply that is used. */
export interface FastifyReply {
  readonly sent: boolean;
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
}

/**
 * {@link guard} for a handler of Fastify: `app.put("/nightly", guardFastify(async (request, reply, token) =>
 * …))`.
 */
export function guardFastify<Asked extends NodeRequest, Replied extends FastifyReply>(
  handler: (request: Asked, reply: Replied, token: bigint) => unknown,
  options: GuardOptions<Asked> = {},
): (request: Asked, reply: Replied) => Promise<unknown> {
  const refuse = (reply: Replied, { status, headers, body }: Answer): Replied => {
    reply.code(status);
    reply.headers(headers);
    reply.send(body);
    return reply;
  };
  return async (request, reply) => {
    try {
      const token = await admit(request.headers[tokenHeader], request, options);
      return typeof token === "bigint" ? await handler(request, reply, token) : refuse(reply, answers[token]);
    } catch (error) {
      if (isStale(error) && !reply.sent) return refuse(reply, answers.TOKEN_STALE);
      throw error;
    }
  };
}

/** The largest answer that is examined. A guard's problem is smaller. */
const problemBytesMax = 4_096;

/**
 * `fetch` with the token in the header `x-fencing-token`. Throws if the server refuses the token as stale, so
 * that no caller can miss it. Every other answer is returned.
 *
 * @param token the token of the lease, from 1 to 2^63 - 1
 * @throws FenceError `TOKEN_STALE`: the server has refused it; `TOKEN_INVALID`: this is not a token
 *
 * @example
 * ```ts
 * import { fetchWithToken } from "@leasehold/fence/http";
 *
 * const answer = await fetchWithToken(42n, "data:,done");
 * assert.equal(await answer.text(), "done");
 * ```
 */
export async function fetchWithToken(
  token: bigint,
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<Response> {
  checkToken(token);
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  headers.set(tokenHeader, String(token));
  const response = await fetch(input, { ...init, headers });
  if (response.status === statuses.TOKEN_STALE && (await isProblemStale(response))) {
    await response.body?.cancel().catch(() => undefined);
    throw new FenceError(
      "TOKEN_STALE",
      `the server has refused token ${token}: a greater one has been there`,
    );
  }
  return response;
}

/**
 * Reads a clone, and stops at the size of a problem, so that the caller can still read an answer of another
 * kind.
 */
async function isProblemStale(response: Response): Promise<boolean> {
  if (!/^application\/problem\+json\b/i.test(response.headers.get("content-type") ?? "")) return false;
  const reader = response.clone().body?.getReader();
  if (reader === undefined) return false;
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.byteLength;
    if (bytes > problemBytesMax) {
      // Not awaited: a clone's `cancel` settles only when the original is cancelled, too.
      void reader.cancel().catch(() => undefined);
      return false;
    }
    text += decoder.decode(part.value, { stream: true });
  }
  try {
    const problem: unknown = JSON.parse(text);
    return (
      typeof problem === "object" && problem !== null && "code" in problem && problem.code === "TOKEN_STALE"
    );
  } catch {
    return false;
  }
}
