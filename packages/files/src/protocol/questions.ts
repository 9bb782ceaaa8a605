import { LeaseholdError } from "leasehold/common";
import { checkPath, checkRange } from "./failures.js";
import type { Answered, Answers, Asks, Kind, Operation } from "./messages.js";
import { noBytes } from "./messages.js";
import type { Replica } from "./replica.js";
import type { Router } from "./router.js";
import type { Standings } from "./standings.js";

interface Asked {
  readonly replica: Replica;
  readonly standings: Standings;
  readonly router: Router;
}

type Handlers = {
  readonly [K in Kind]: (
    asked: Asked,
    ask: Asks[K],
    body: Uint8Array,
  ) => Promise<Answers[K] | { readonly answer: Answers[K]; readonly body: Uint8Array }>;
};

const handlers: Handlers = {
  promise: ({ replica }, ask) => replica.promise(ask),
  blocks: ({ replica }, ask) => replica.blocks(ask),
  put: ({ replica }, ask, body) => replica.put(ask, body),
  header: ({ replica }, ask) => replica.header(ask),
  drop: ({ replica }, ask) => replica.drop(ask),
  mark: ({ replica }, ask) => replica.mark(ask),
  fetch: async ({ replica }, ask) => ({ answer: {}, body: await replica.fetch(ask) }),
  list: async ({ replica, standings }, ask) => {
    standings.assertJoined();
    const files = await replica.list(ask);
    return { files, node: standings.node, generations: standings.generations };
  },
  standing: ({ standings }) => Promise.resolve(standings.standing()),
  register: async ({ standings }, ask) => {
    await standings.register(ask);
    return {};
  },
  promises: ({ replica }, { after }) => replica.promises(after),
  primary: ({ router }, { path }) => Promise.resolve({ isHere: router.primaryHere(path) !== undefined }),
  operate: async ({ router }, { path, operation, timeoutMs }, bytes) => {
    checkOperation(operation, bytes);
    const outcome = await router.operateHere(path, operation, bytes, timeoutMs);
    return { answer: { result: outcome?.result ?? null }, body: outcome?.bytes ?? noBytes };
  },
};

/** Answers a request of another node. */
export async function answerOf<K extends Kind>(
  asked: Asked,
  kind: K,
  ask: Asks[K],
  body: Uint8Array,
): Promise<Answered<K>> {
  if (!Object.hasOwn(handlers, kind))
    throw new LeaseholdError("VERSION_MISMATCH", `nodes of this version do not ask for ${kind}`);
  if ("path" in ask) checkPath(ask.path);
  if ("index" in ask) checkRange(ask.index, 0);
  const answered = await handlers[kind](asked, ask, body);
  return "body" in answered ? answered : { answer: answered, body: noBytes };
}

/** @throws LeaseholdError `INVALID_RANGE`. */
function checkOperation(operation: Operation, bytes: Uint8Array): void {
  if (operation.kind === "read") checkRange(operation.offset, operation.length);
  if (operation.kind === "write") checkRange(operation.offset, bytes.length);
  if (operation.kind === "truncate") checkRange(operation.size, 0);
}
