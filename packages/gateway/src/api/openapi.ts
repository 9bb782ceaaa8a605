import { packageVersion } from "leasehold/runtime";
import type { Route } from "./routes.js";
import { type Fields, jsonSchemaOf } from "./schema.js";

const text = { type: "string" } as const;
const flag = { type: "boolean" } as const;
const ms = { type: "integer", minimum: 0 } as const;
const token = { ...text, pattern: "^[0-9]+$", description: "The fencing token, a decimal number." } as const;
const validForMs = {
  ...ms,
  description:
    "How long the client may rely on it, in milliseconds of its own steady clock, from the moment before it sent the request. 0: not at all.",
} as const;
const anyJson = {};

const hint = {
  resource: text,
  state: { ...text, enum: ["held", "free", "unknown"] },
  holder: text,
  token,
  remainingMs: ms,
  confirmed: flag,
  label: text,
  data: anyJson,
};

const object = (properties: object, required: readonly string[]): object => ({
  type: "object",
  properties,
  required,
});
const listOf = (name: string): object => ({ type: "array", items: ref(name) });
const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });

const schemas = {
  Lease: object(
    {
      lease: { ...text, description: "What names the lease in requests: a secret of its client." },
      session: text,
      resource: text,
      slot: { type: "integer", minimum: 0 },
      holder: text,
      token,
      ttlMs: ms,
      validForMs,
      releaseRequested: flag,
      lost: { ...text, description: "Why it was lost." },
    },
    ["lease", "session", "resource", "slot", "holder", "token", "ttlMs", "validForMs", "releaseRequested"],
  ),
  Session: object({ session: text, ttlMs: ms, validForMs, leases: listOf("Lease") }, [
    "session",
    "ttlMs",
    "validForMs",
    "leases",
  ]),
  Grant: object({ session: text, ttlMs: ms, validForMs, leases: listOf("Lease") }, [
    "session",
    "ttlMs",
    "validForMs",
    "leases",
  ]),
  Waiting: object({ waiting: flag, session: text }, ["waiting", "session"]),
  Holder: object(hint, ["resource", "state"]),
  Holders: object({ holders: listOf("Holder"), next: text }, ["holders"]),
  Explanation: object(
    { ...hint, quorum: flag, broken: flag, waiting: ms, reasons: { type: "array", items: text } },
    ["resource", "state", "quorum", "broken", "waiting", "reasons"],
  ),
  Guarantees: object(
    {
      ground: text,
      exclusion: text,
      token: text,
      progress: text,
      assumptions: { type: "array", items: text },
    },
    ["ground", "exclusion", "token", "progress", "assumptions"],
  ),
  HolderAction: object({ holder: text, token, done: flag, remainingMs: ms }, ["done"]),
  Problem: object({ type: text, title: text, status: { type: "integer" }, code: text, detail: text }, [
    "type",
    "title",
    "status",
    "code",
    "detail",
  ]),
};

/** The API as OpenAPI 3.1, generated from the routes that serve it. */
export function openApiOf(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route);
  paths["/v1/watch"] = { get: watch };
  return {
    openapi: "3.1.0",
    info: {
      title: "Leasehold gateway",
      version: packageVersion(),
      description: "Leases over HTTP and JSON. Errors are application/problem+json (RFC 9457).",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{}, { token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas,
    },
  };
}

const problem = {
  description: "The request was refused, or has failed.",
  content: { "application/problem+json": { schema: ref("Problem") } },
};

const watch = {
  operationId: "getWatch",
  summary:
    "Server-sent events: what is held, and each change. `reset` says that all that is held now comes next. Last-Event-ID continues.",
  parameters: [
    parameter("query", "prefix", "names that begin so"),
    parameter("query", "resource", "one name, in place of prefix"),
    parameter("header", "Last-Event-ID", "the last change that was seen"),
  ],
  responses: {
    "200": { description: "Changes.", content: { "text/event-stream": { schema: text } } },
    default: problem,
  },
};

function parameter(where: "query" | "header" | "path", name: string, description: string): object {
  return { in: where, name, description, required: where === "path", schema: text };
}

function operationOf({ method, path, says, fields, query = {}, answers, codes }: Route): object {
  const isCall = path === "/v1/leases" || path === "/v1/sessions";
  const json = (name: string): object => ({ "application/json": { schema: ref(name) } });
  const status = answers === "" ? "204" : path === "/v1/sessions" ? "201" : "200";
  return {
    operationId: operationIdOf(method, path),
    summary: says,
    parameters: [
      ...(path.includes("{id}") ? [parameter("path", "id", "the id that an answer gave")] : []),
      ...Object.entries(query).map(([name, description]) => parameter("query", name, description)),
      ...(isCall ? [parameter("header", "Idempotency-Key", "repeats of a request have the same key")] : []),
      ...(path === "/v1/leases" ? [parameter("header", "Prefer", "wait=SECONDS")] : []),
    ],
    ...(fields !== undefined && { requestBody: bodyOf(fields) }),
    responses: {
      [status]: { description: says, ...(answers !== "" && { content: json(answers) }) },
      ...(path === "/v1/leases" && {
        "202": { description: "The call still waits.", content: json("Waiting") },
      }),
      default: {
        ...problem,
        description: `${problem.description} Codes: ${[...codes, "UNAUTHENTICATED"].join(", ")}.`,
      },
    },
  };
}

function bodyOf(fields: Fields): object {
  const isNeeded = Object.values(fields).some(({ isRequired }) => isRequired === true);
  return { required: isNeeded, content: { "application/json": { schema: jsonSchemaOf(fields) } } };
}

/** The verb and the words of the path, joined into one name. */
function operationIdOf(method: string, path: string): string {
  const words = path.split(/[/{}-]/).filter((word) => word !== "" && word !== "v1");
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
