import { randomUUID } from "node:crypto";
import { LeaseholdError } from "../../lease/errors.js";
import { parseDuration } from "../../lease/duration.js";
import type { Duration, Leases } from "../../lease/types.js";
import { parseAddress } from "../../runtime/address.js";
import { realWorld } from "../../runtime/world.js";
import type { BlockStore } from "../ports.js";
import { FilesNode } from "../protocol/files-node.js";
import type { Answered, AskOptions, Asks, Kind, Peers } from "../protocol/messages.js";
import type { Files } from "../types.js";
import { Channel } from "./channel.js";
import { Listener } from "./listener.js";
import { type FilesSecurity, secured } from "./security.js";

export interface StartFilesOptions extends FilesSecurity {
  /** Which of `nodes` this is. */
  readonly node: string;
  /**
   * Where each node listens for the others, `host:port`: all of them, the same at each. The list cannot be
   * changed later. A majority of them must run; three survive the loss of one, five that of two.
   */
  readonly nodes: Readonly<Record<string, string>>;
  /**
   * Where to listen, if that is another address than the one in `nodes`. Beyond loopback `key`, `keyFile` or
   * `tls` is needed.
   */
  readonly listen?: string | undefined;
  /** The primary of a file holds a lease here: that file's path behind `files/`. Not closed by `close`. */
  readonly leases: Leases;
  /** This node's disk. Not closed by `close`. */
  readonly store: BlockStore;
  /** Of files that are made from now on, in bytes: 512 to 4 MiB, default 256 KiB. */
  readonly blockSize?: number | undefined;
  /**
   * Of the leases: the time after which another node becomes the primary of a file if the one that was it
   * has died. Default `"5s"`, or what the ground allows if that is less.
   */
  readonly ttl?: Duration | undefined;
  /** A read counts only if the lease had so long to run when it was done. Default `"10ms"`. */
  readonly leaseMargin?: Duration | undefined;
  /** The longest that one call tries. Default `"20s"`. */
  readonly timeout?: Duration | undefined;
  /** A file that nobody has used for so long gives its lease back. Default `"1m"`. */
  readonly idle?: Duration | undefined;
  /** Between two blocks that the scrub reads and checks. Default `"100ms"`. */
  readonly scrubPause?: Duration | undefined;
}

const blockSizeDefault = 256 * 2 ** 10;
const blockSizeMin = 512;
const blockSizeMax = 4 * 2 ** 20;

/** The longest wait for one answer of another node, ms. */
const answerTimeoutMs = 2_000;

/** What carries blocks has a connection of its own, so that short questions do not wait behind them. */
const bulk: ReadonlySet<Kind> = new Set<Kind>(["put", "fetch", "operate"]);

/**
 * Starts a node of replicated files. Resolves when it listens; until its disk has joined (at the first start
 * of a cluster that is when all nodes are there) calls wait, as long as `timeout` says.
 *
 * @throws LeaseholdError `INVALID_CONFIG`; `CONFIG_MISMATCH` if the disk belongs to another node or list of
 *   nodes; `UNREACHABLE` if it cannot listen; `INVALID_URL`, `INVALID_DURATION`, `STORE_CORRUPT`.
 */
export async function startFiles(options: StartFilesOptions): Promise<Files> {
  const { node, nodes, leases, store } = options;
  checkNodes(options);
  const own = parseAddress(options.listen ?? nodes[node]!);
  const secure = await secured(options, [own, ...Object.values(nodes).map((text) => parseAddress(text))]);
  const channels = new Map<string, readonly [Channel, Channel]>();
  for (const [name, address] of Object.entries(nodes)) {
    const dial = (signal: AbortSignal) => secure.dial(parseAddress(address), signal);
    channels.set(name, [new Channel(name, dial), new Channel(name, dial)]);
  }
  const peers: Peers = {
    ask: <K extends Kind>(to: string, kind: K, ask: Asks[K], how: AskOptions): Promise<Answered<K>> =>
      channels.get(to)![bulk.has(kind) ? 1 : 0].ask(kind, ask, how),
  };
  const started = new StartedFiles({
    node,
    nodes: Object.keys(nodes),
    addresses: nodes,
    world: realWorld(),
    leases,
    store,
    peers,
    settings: settingsOf(options),
    newId: randomUUID,
  });
  const listener = new Listener(secure, started);
  started.onClosed = async () => {
    for (const each of channels.values()) for (const channel of each) channel.close();
    await listener.close();
  };
  await listener.listen(own);
  try {
    await started.begin();
  } catch (error) {
    await started.close();
    throw error;
  }
  return started;
}

/** A node with its sockets. */
class StartedFiles extends FilesNode {
  onClosed: () => Promise<void> = () => Promise.resolve();

  override async close(): Promise<void> {
    await super.close();
    await this.onClosed();
  }
}

function checkNodes({ node, nodes, blockSize = blockSizeDefault }: StartFilesOptions): void {
  const wrong = Object.keys(nodes).find((name) => !/^[A-Za-z0-9._-]{1,64}$/.test(name));
  if (wrong !== undefined)
    throw new LeaseholdError("INVALID_CONFIG", `${JSON.stringify(wrong)} is no name of a node`);
  if (!Object.hasOwn(nodes, node))
    throw new LeaseholdError("INVALID_CONFIG", `node ${node} is not in the list of nodes`);
  if (!(Number.isInteger(blockSize) && blockSize >= blockSizeMin && blockSize <= blockSizeMax))
    throw new LeaseholdError("INVALID_CONFIG", `blockSize is ${blockSizeMin} to ${blockSizeMax} bytes`);
}

function settingsOf(options: StartFilesOptions) {
  const { guarantees } = options.leases;
  const ttlMs = parseDuration(options.ttl ?? Math.min(5_000, guarantees.ttlMaxMs), "ttl");
  return {
    blockSize: options.blockSize ?? blockSizeDefault,
    ttlMs,
    leaseMarginMs: parseDuration(options.leaseMargin ?? "10ms", "leaseMargin"),
    operationTimeoutMs: parseDuration(options.timeout ?? "20s", "timeout"),
    answerTimeoutMs,
    idleMs: parseDuration(options.idle ?? "1m", "idle"),
    scrubPauseMs: parseDuration(options.scrubPause ?? "100ms", "scrubPause"),
  };
}
