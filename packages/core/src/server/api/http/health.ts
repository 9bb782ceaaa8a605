import { KV } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ReplicaStatus } from "../../../replica/api.js";
import type { LocalClient } from "../calls/local.js";

/** A healthy server answers a read within this time, ms. */
const healthMs = 1_000;

/** The parts of a server that the checks use. */
export interface HealthParts {
  readonly status: () => Pick<ReplicaStatus, "corruptAlarms" | "id" | "membership">;
  readonly local: Pick<LocalClient, "ask">;
}

/** A check of etcd's `/livez` and `/readyz`. Resolves with a problem, or with undefined. */
type Check = (parts: HealthParts) => Promise<string | undefined>;

const checks = {
  data_corruption: ({ status }) =>
    Promise.resolve(status().corruptAlarms.length > 0 ? "alarm activated: CORRUPT" : undefined),
  serializable_read: (parts) => whyNoAnswer(parts, true),
  linearizable_read: (parts) => whyNoAnswer(parts, false),
  // In etcd since 3.6: a learner does not serve clients.
  non_learner: ({ status }) => {
    const { id, membership } = status();
    return Promise.resolve(membership.voters.includes(id) ? undefined : "this server does not vote");
  },
} as const satisfies Record<string, Check>;

type Name = keyof typeof checks;

/** The checks of each page. A server without a leader is alive, since a restart would not help. */
export const healthPages: Readonly<Record<"/livez" | "/readyz", readonly Name[]>> = {
  "/livez": ["serializable_read"],
  "/readyz": ["data_corruption", "serializable_read", "linearizable_read", "non_learner"],
};

export interface HealthAnswer {
  readonly status: 200 | 404 | 503;
  readonly text: string;
}

/**
 * Answers `/livez`, `/readyz` and individual checks, such as `/readyz/non_learner`, in etcd's form: lists
 * failed checks, and with `?verbose` the others, too. `?exclude=NAME` leaves one out.
 */
export async function healthOf(path: string, query: string, parts: HealthParts): Promise<HealthAnswer> {
  const [, page = "", only] = /^(\/livez|\/readyz)(?:\/(.*))?$/.exec(path) ?? [];
  const all = page === "/livez" || page === "/readyz" ? healthPages[page] : [];
  const parameters = new URLSearchParams(query);
  const excluded = parameters.getAll("exclude");
  const wanted = all.filter((name) => (only === undefined ? !excluded.includes(name) : name === only));
  if (wanted.length === 0 && only !== undefined) return { status: 404, text: "404 page not found\n" };
  const results = await Promise.all(wanted.map(async (name) => [name, await checks[name](parts)] as const));
  const isPassed = results.every(([, why]) => why === undefined);
  const lines = results
    .filter(([, why]) => why !== undefined || parameters.has("verbose"))
    .map(([name, why]) => (why === undefined ? `[+]${name} ok` : `[-]${name} failed: ${why}`));
  const end = isPassed ? "ok" : `${page.slice(1)} check failed`;
  return { status: isPassed ? 200 : 503, text: `${[...lines, end].join("\n")}\n` };
}

/** Returns why a read on this server gets no answer in time; undefined if it gets one. */
export async function whyNoAnswer(
  { local }: HealthParts,
  serializable: boolean,
): Promise<string | undefined> {
  const caller = { client: "health", metadata: {} };
  try {
    const asked = { key: Buffer.from("health"), countOnly: true, serializable };
    await local.ask(KV.method.range, asked, caller, AbortSignal.timeout(healthMs));
    return undefined;
  } catch (error) {
    const { code, message } = error as { readonly code?: number; readonly message?: string };
    // With authentication enabled, a refusal counts as an answer.
    if (code === 7 || code === 3) return undefined;
    return `no answer within ${healthMs} ms: ${message ?? String(error)}`;
  }
}
