import { LeaseholdError } from "leasehold/common";
import { checkPath, checkRange } from "./failures.js";
import type { Answered, Answers, Asks, Kind, OperationAny } from "./messages.js";
import { uploadPrefix } from "./keys.js";
import { listedMax } from "./names-primary.js";
import { noBytes } from "./messages.js";
import type { Replica } from "./replica.js";
import type { Router } from "./router.js";
import type { Standings } from "./standings.js";
import type { Uploads } from "./uploads.js";

interface Asked {
  readonly replica: Replica;
  readonly standings: Standings;
  readonly router: Router;
  readonly uploads: Uploads;
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
    if (ask.paths.length > listedMax)
      throw new LeaseholdError("INVALID_RANGE", `at most ${listedMax} files are asked for`);
    for (const path of ask.paths) checkPath(path);
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
  operate: async ({ router }, { path, operation, timeoutMs, begins }, bytes) => {
    checkOperation(operation, bytes);
    const outcome = await router.operateHere(path, operation, bytes, timeoutMs, begins);
    return { answer: { result: outcome?.result ?? null }, body: outcome?.bytes ?? noBytes };
  },
  piece: async ({ uploads }, ask, bytes) => {
    await uploads.piece(ask, bytes);
    return {};
  },
  hold: ({ uploads }, ask, bytes) => uploads.hold(ask, bytes),
  bit: async ({ uploads }, { content, index }) => {
    const { tag, bytes } = await uploads.bit(content, index);
    return { answer: { tag }, body: bytes };
  },
  discard: async ({ uploads }, ask) => {
    await uploads.discard(ask);
    return {};
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
  if ("content" in ask) checkPath(uploadPrefix + ask.content);
  if ("index" in ask) checkRange(ask.index, 0);
  const answered = await handlers[kind](asked, ask, body);
  return "body" in answered ? answered : { answer: answered, body: noBytes };
}

/** @throws LeaseholdError `INVALID_RANGE`. */
function checkOperation(operation: OperationAny, bytes: Uint8Array): void {
  if (operation.kind === "read") checkRange(operation.offset, operation.length);
  if (operation.kind === "write") checkRange(operation.offset, bytes.length);
  if (operation.kind === "truncate") checkRange(operation.size, 0);
}
