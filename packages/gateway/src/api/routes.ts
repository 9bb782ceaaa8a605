import type { HolderAction, HolderHint, Leases, ResourceHint } from "leasehold";
import { LeaseholdError, getOrInsert } from "leasehold/common";
import type { Action } from "../rights/rights.js";
import type {
  AcquireRequest,
  Call,
  HandOverRequest,
  ResourceRequest,
  SessionRequest,
} from "../sessions/requests.js";
import type { Gateway } from "../sessions/gateway.js";
import {
  acquireFields,
  cancelFields,
  handOverFields,
  nameLengthMax,
  resourceFields,
  sessionFields,
} from "./fields.js";
import { HttpRefusal } from "./problem.js";
import { type Fields, readFields } from "./schema.js";

/** The user who sends a request, with that user's rights. */
export interface Asker extends Call {
  /** @throws LeaseholdError `PERMISSION_DENIED` */
  must(action: Action, resource: string): void;
  may(action: Action, resource: string): boolean;
  /** Logs the action for audits. */
  audit(action: "requestRelease" | "handOver" | "break", resource: string, outcome: string): void;
}

export interface RouteRequest {
  readonly asker: Asker;
  readonly query: URLSearchParams;
  /** The last segment of the path, for routes with an id. */
  readonly id: string;
  readonly body: unknown;
  /** `Prefer: wait`, ms. */
  readonly pollMs: number | undefined;
}

export interface Answer {
  readonly status: number;
  readonly body?: object;
  readonly location?: string;
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** `{id}` stands for one segment of the path. */
  readonly path: string;
  readonly says: string;
  readonly fields?: Fields;
  /** The parameters of the query, with their descriptions. */
  readonly query?: Readonly<Record<string, string>>;
  /** The name of the answer's schema in `openapi.ts`. */
  readonly answers: string;
  readonly codes: readonly string[];
  answer(request: RouteRequest): Promise<Answer> | Answer;
}

const listMax = 1_000;
const timeout = 5_000;

/** All routes of the gateway except the stream of changes. */
export function routesOf(leases: Leases, gateway: Gateway): readonly Route[] {
  return [...sessionRoutes(gateway), ...leaseRoutes(gateway), ...lookRoutes(leases), ...holderRoutes(leases)];
}

function sessionRoutes(gateway: Gateway): Route[] {
  return [
    {
      method: "POST",
      path: "/v1/sessions",
      says: "Opens a session. It ends when no request of it arrives for its ttl; then its leases are released.",
      fields: sessionFields,
      answers: "Session",
      codes: ["TTL_OUT_OF_RANGE", "RESOURCES_FULL"],
      answer: ({ asker, body }) => {
        const answer = gateway.openSession(readFields(body, sessionFields) as SessionRequest, asker);
        return { status: 201, body: answer, location: `/v1/sessions/${answer.session}` };
      },
    },
    {
      method: "POST",
      path: "/v1/sessions/{id}/renew",
      says: "Renews the session, and says how long each of its leases can be relied on, and which were lost.",
      fields: {},
      answers: "Session",
      codes: ["SESSION_GONE"],
      answer: ({ asker, id }) => ({ status: 200, body: gateway.renewSession(id, asker) }),
    },
    {
      method: "POST",
      path: "/v1/sessions/{id}/cancel",
      says: "Ends a call for leases by its idempotency key, or releases what it was granted.",
      fields: cancelFields,
      answers: "",
      codes: ["SESSION_GONE"],
      answer: async ({ asker, id, body }) => {
        const { key } = readFields(body, cancelFields) as { readonly key: string };
        await gateway.cancel(id, key, asker);
        return { status: 204 };
      },
    },
    {
      method: "GET",
      path: "/v1/sessions/{id}",
      says: "The session and its leases, without renewing it.",
      answers: "Session",
      codes: ["SESSION_GONE"],
      answer: ({ asker, id }) => ({ status: 200, body: gateway.lookAtSession(id, asker) }),
    },
    {
      method: "DELETE",
      path: "/v1/sessions/{id}",
      says: "Ends the session: its calls end, and its leases are released.",
      answers: "",
      codes: ["SESSION_GONE"],
      answer: ({ asker, id }) => {
        gateway.closeSession(id, asker);
        return { status: 204 };
      },
    },
  ];
}

function leaseRoutes(gateway: Gateway): Route[] {
  return [
    {
      method: "POST",
      path: "/v1/leases",
      says: "Acquires a lease, or several, and waits for it. With `Prefer: wait=N` it answers 202 after N seconds, and the call is continued by repeating it with its Idempotency-Key.",
      fields: acquireFields,
      answers: "Grant",
      codes: ["LEASE_HELD", "TIMEOUT", "NO_QUORUM", "INVALID_NAME", "SESSION_GONE", "PERMISSION_DENIED"],
      answer: async ({ asker, body, pollMs }) => {
        const request = readFields(body, acquireFields) as AcquireRequest;
        const action = request.mode === "shared" ? "read-lock" : "hold";
        for (const name of [request.resource, ...(request.resources ?? [])])
          if (name !== undefined) asker.must(action, name);
        const answer = await gateway.acquire(request, asker, pollMs);
        if ("waiting" in answer) return { status: 202, body: answer };
        return { status: 200, body: answer, location: `/v1/leases/${answer.leases[0]?.lease}` };
      },
    },
    {
      method: "POST",
      path: "/v1/leases/{id}/renew",
      says: "Renews the lease's session, and says how long the lease can be relied on.",
      fields: {},
      answers: "Lease",
      codes: ["SESSION_GONE", "LEASE_LOST"],
      answer: ({ asker, id }) => ({ status: 200, body: gateway.renewLease(id, asker) }),
    },
    {
      method: "GET",
      path: "/v1/leases/{id}",
      says: "The lease, without renewing its session.",
      answers: "Lease",
      codes: ["SESSION_GONE", "LEASE_LOST"],
      answer: ({ asker, id }) => ({ status: 200, body: gateway.lookAtLease(id, asker) }),
    },
    {
      method: "DELETE",
      path: "/v1/leases/{id}",
      says: "Releases the lease. Its client must have stopped using the resource.",
      answers: "",
      codes: ["SESSION_GONE", "LEASE_LOST"],
      answer: async ({ asker, id }) => {
        await gateway.release(id, asker);
        return { status: 204 };
      },
    },
  ];
}

function lookRoutes(leases: Leases): Route[] {
  /** By prefix: concurrent requests share one list, which may be long. */
  const lists = new Map<string, Promise<ResourceHint[]>>();
  const listOf = (prefix: string): Promise<ResourceHint[]> =>
    getOrInsert(lists, prefix, () =>
      leases.list(prefix, { timeout }).finally(() => {
        lists.delete(prefix);
      }),
    );
  return [
    {
      method: "GET",
      path: "/v1/holder",
      says: "Who holds a resource: a hint, out of date as soon as it is read.",
      query: { resource: "the name" },
      answers: "Holder",
      codes: ["INVALID_NAME", "PERMISSION_DENIED"],
      answer: async ({ asker, query }) => {
        const resource = textOf(query, "resource");
        asker.must("see", resource);
        return { status: 200, body: plain({ resource, ...(await leases.holder(resource, { timeout })) }) };
      },
    },
    {
      method: "GET",
      path: "/v1/holders",
      says: `What is held below a prefix, up to ${listMax} at a time, by name: hints.`,
      query: { prefix: "names that begin so", after: "names after this one" },
      answers: "Holders",
      codes: ["NO_QUORUM", "WATCH_TOO_WIDE"],
      answer: async ({ asker, query }) => {
        const after = textOf(query, "after", "");
        const all = await listOf(textOf(query, "prefix", ""));
        const seen = all.filter(({ resource }) => resource > after && asker.may("see", resource));
        seen.sort((left, right) => (left.resource < right.resource ? -1 : 1));
        const page = seen.slice(0, listMax);
        const next = seen.length > page.length ? page.at(-1)?.resource : undefined;
        return { status: 200, body: { holders: page.map(plain), ...(next !== undefined && { next }) } };
      },
    },
    {
      method: "GET",
      path: "/v1/explain",
      says: "Why a resource cannot be had, in words.",
      query: { resource: "the name" },
      answers: "Explanation",
      codes: ["INVALID_NAME", "UNSUPPORTED", "PERMISSION_DENIED"],
      answer: async ({ asker, query }) => {
        const resource = textOf(query, "resource");
        asker.must("see", resource);
        const { broken, waiting, reasons, quorum, ...hint } = await leases.explain(resource, { timeout });
        const { members: _members, ...more } = hint;
        return { status: 200, body: { ...plain(more), broken, waiting, reasons, quorum } };
      },
    },
    {
      method: "GET",
      path: "/v1/guarantees",
      says: "What leases promise here, and what that rests on.",
      answers: "Guarantees",
      codes: [],
      answer: () => ({ status: 200, body: leases.guarantees }),
    },
  ];
}

function holderRoutes(leases: Leases): Route[] {
  return [
    {
      method: "POST",
      path: "/v1/release-requests",
      says: "Asks the holder to release the resource. It may ignore that.",
      fields: resourceFields,
      answers: "HolderAction",
      codes: ["NO_QUORUM", "UNSUPPORTED", "PERMISSION_DENIED"],
      answer: ({ asker, body }) => {
        const { resource } = readFields(body, resourceFields) as unknown as ResourceRequest;
        return done(asker, "requestRelease", "hold", resource, () =>
          leases.requestRelease(resource, { timeout }),
        );
      },
    },
    {
      method: "POST",
      path: "/v1/hand-overs",
      says: "Asks the holder to release the resource, so that a chosen waiter has it next.",
      fields: handOverFields,
      answers: "HolderAction",
      codes: ["NOT_WAITING", "NO_QUORUM", "UNSUPPORTED", "PERMISSION_DENIED"],
      answer: ({ asker, body }) => {
        const { resource, to } = readFields(body, handOverFields) as unknown as HandOverRequest;
        return done(asker, "handOver", "hold", resource, () => leases.handOver(resource, to, { timeout }));
      },
    },
    {
      method: "POST",
      path: "/v1/breaks",
      says: "Keeps the holder from renewing: another can have the resource at the lease's present end.",
      fields: resourceFields,
      answers: "HolderAction",
      codes: ["NO_QUORUM", "UNSUPPORTED", "PERMISSION_DENIED"],
      answer: ({ asker, body }) => {
        const { resource } = readFields(body, resourceFields) as unknown as ResourceRequest;
        return done(asker, "break", "break", resource, () => leases.break(resource, { timeout }));
      },
    },
  ];
}

async function done(
  asker: Asker,
  what: Parameters<Asker["audit"]>[0],
  action: Action,
  resource: string,
  work: () => ReturnType<Leases["break"]>,
): Promise<Answer> {
  asker.must(action, resource);
  try {
    const result = await work();
    asker.audit(what, resource, result.done ? "done" : "without effect");
    return { status: 200, body: plain(result) };
  } catch (error) {
    asker.audit(what, resource, error instanceof LeaseholdError ? error.code : "failed");
    throw error;
  }
}

function textOf(query: URLSearchParams, name: string, otherwise?: string): string {
  const [text = otherwise, ...more] = query.getAll(name);
  if (text === undefined) throw new HttpRefusal(400, `the query must have ${name}`);
  if (more.length > 0) throw new HttpRefusal(400, `the query has ${name} more than once`);
  if (text.length > nameLengthMax)
    throw new HttpRefusal(400, `${name} is longer than ${nameLengthMax} characters`);
  return text;
}

/** With the token as text and times in whole milliseconds. */
export function plain({ token, remainingMs, ...more }: HolderAction | HolderHint | ResourceHint): object {
  return {
    ...more,
    ...(token !== undefined && { token: String(token) }),
    // A reported end may be late, but never early.
    ...(remainingMs !== undefined && { remainingMs: Math.ceil(remainingMs) }),
  };
}
