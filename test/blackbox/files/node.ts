import { rmSync } from "node:fs";
import { type Socket, createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Files, ReplicatedFile } from "../../../packages/files/src/index.js";
import type { Logger, MemberOptions } from "../../../packages/leasehold/src/index.js";
import type { FileUncertainError } from "../../../packages/files/src/uncertain.js";
import type { CallAnswer, CallOutcome, CallRequest, CallResult, FileCall } from "./calls.js";
import { blockBytes, callMsMax, ttlMs } from "./settings.js";

/**
 * A process that is a node of replicated files and a member of their lease cluster. Clients reach it over a
 * Unix socket even when it is cut off from all other processes: its answers must be right then, too. Its
 * orders are the JSON in the first argument.
 */
export interface NodeOrders {
  /** The folder of `index.js` of the build to use. */
  readonly library: string;
  readonly member: Omit<MemberOptions, "logger">;
  readonly node: string;
  readonly nodes: Readonly<Record<string, string>>;
  readonly key: string;
  readonly disk: string;
  readonly socket: string;
}

export type NodeNews =
  | { readonly type: "ready" }
  | {
      readonly type: "standing";
      /**
       * The node's whole disk counts, and no other node lacks any data of the files whose primary is here.
       */
      readonly isWhole: boolean;
      readonly primaries: number;
      readonly resets: number;
    };

const tellEveryMs = 200;
const orders = JSON.parse(process.argv[2]!) as NodeOrders;
const load = async (file: string): Promise<unknown> => import(pathToFileURL(join(orders.library, file)).href);
const { startMember } = (await load("index.js")) as typeof import("../../../packages/leasehold/src/index.js");
const { openBlockDirectory, startFiles } = (await load(
  "../../files/dist/index.js",
)) as typeof import("../../../packages/files/src/index.js");

const tell = (news: NodeNews): void => {
  if (process.connected) process.send?.(news);
};
/** Errors are in the outcomes of the calls, so nothing needs to be logged. */
const logger: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Open files by path: an open handle keeps referring to its file after the file is removed. */
const handles = new Map<string, ReplicatedFile>();

async function opened(files: Files, path: string): Promise<ReplicatedFile> {
  const known = handles.get(path) ?? (await files.open(path));
  handles.set(path, known);
  return known;
}

async function done(files: Files, call: FileCall): Promise<CallResult> {
  const { path } = call;
  switch (call.kind) {
    case "create":
      await files.open(path, { create: "missing" });
      return {};
    case "read": {
      const bytes = await (await opened(files, path)).read(call.offset, call.length);
      return { text: Buffer.from(bytes).toString("latin1") };
    }
    case "stat":
      return { size: (await files.stat(path)).size };
    case "write":
      await (await opened(files, path)).write(call.offset, Buffer.from(call.text, "latin1"));
      return {};
    case "append":
      return { size: await (await opened(files, path)).append(Buffer.from(call.text, "latin1")) };
    case "truncate":
      await (await opened(files, path)).truncate(call.size);
      return {};
    case "remove":
      await files.remove(path);
      return {};
    case "sync":
      return { nodes: await (await opened(files, path)).sync() };
    case "rename":
      await files.rename(path, call.to);
      return {};
  }
}

async function outcomeOf(files: Files, call: FileCall): Promise<CallOutcome> {
  try {
    return { result: await done(files, call) };
  } catch (failure) {
    const { code, message, isSettledByNext = false } = failure as Partial<FileUncertainError>;
    return { error: code ?? `? ${message}`, isSettledNext: isSettledByNext };
  }
}

function serve(files: Files, socket: Socket): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("error", () => undefined);
  socket.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const { id, call } = JSON.parse(line) as CallRequest;
      void outcomeOf(files, call).then((outcome) => {
        const answer: CallAnswer = { id, ...outcome };
        if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`);
      });
    }
  });
}

const { node, nodes, key, disk } = orders;
const ended = new Promise<void>((resolve) => process.once("SIGTERM", () => resolve()));
process.on("disconnect", () => process.exit());
const member = await startMember({ ...orders.member, logger });
const store = await openBlockDirectory(disk);
const files = await startFiles({
  node,
  nodes,
  key,
  leases: member.leases,
  store,
  blockSize: blockBytes,
  ttl: ttlMs,
  timeout: callMsMax,
  scrubPause: "20ms",
});
rmSync(orders.socket, { force: true });
const front = createServer((socket) => serve(files, socket));
front.listen(orders.socket, () => tell({ type: "ready" }));
const telling = setInterval(() => {
  const { state, peers, primaries, counters } = files.status();
  const isWhole = state === "serving" && peers.every(({ behind }) => behind === 0);
  tell({ type: "standing", isWhole, primaries: primaries.length, resets: counters.resets });
}, tellEveryMs);
await ended;
clearInterval(telling);
front.close();
await files.close();
await store.close();
await member.close();
process.exit();
