import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { crc32 } from "node:zlib";
import { getOrInsert, LeaseholdError, parseDuration, type Duration, type Leases } from "leasehold/common";
import {
  type Address,
  parseAddress,
  type Logger,
  silent,
  type SecurityOptions,
  realWorld,
} from "leasehold/runtime";
import { eventLog } from "../logs/log-events.js";
import type { BlockStore } from "../ports.js";
import { NamedFiles } from "../tree/named-files.js";
import type { Answered, AskOptions, Asks, Kind, Peers } from "../protocol/messages.js";
import type { Files } from "../types.js";
import { Channel, type Dial } from "./channel.js";
import { dial } from "./dial.js";
import type { Self } from "./introduction.js";
import { Listener } from "./listener.js";
import { nodeCredentials } from "./security.js";

/**
 * `tls`, `key` and `keyFile` are those of members of Flease (`docs/security.md`): a certificate for the
 * member NODE of the cluster, or a cluster key with the role of a member.
 */
export interface StartFilesOptions extends SecurityOptions {
  /** The name of the cluster, as in its certificates. Default `"leasehold"`. */
  readonly cluster?: string | undefined;
  /** The name of this node: a key of `nodes`. */
  readonly node: string;
  /**
   * The `host:port` of each of the cluster's one to five initial nodes; all of them have the same list. They
   * keep the names and need a majority: three nodes survive the loss of one, five the loss of two. Other
   * nodes are added by {@link Files.changeNodes}; such a node sets `joins` and lists itself and some of the
   * others here.
   */
  readonly nodes: Readonly<Record<string, string>>;
  /** Whether this node was added to an existing cluster. Default false. */
  readonly joins?: boolean | undefined;
  /**
   * The address to listen on, if it differs from the one in `nodes`. Beyond loopback, `key`, `keyFile` or
   * `tls` is required.
   */
  readonly listen?: string | undefined;
  /** The leases of primaries; their names begin with `files/`. Not closed by `close`. */
  readonly leases: Leases;
  /** This node's disk. Not closed by `close`. */
  readonly store: BlockStore;
  /** Block size of new files, in bytes: 512 to 4 MiB, default 256 KiB. */
  readonly blockSize?: number | undefined;
  /**
   * TTL of the leases: when a primary has died, another node takes over after this time. Default `"5s"`, or
   * the nearest value that the ground allows.
   */
  readonly ttl?: Duration | undefined;
  /** How long a lease must still run when a read is done. Default `"10ms"`. */
  readonly leaseMargin?: Duration | undefined;
  /** Time limit of one call. Default `"20s"`. */
  readonly timeout?: Duration | undefined;
  /** How long a file is idle before its lease is released. Default `"1m"`. */
  readonly idle?: Duration | undefined;
  /**
   * The rate, in bytes per second, at which this node fetches contents that it lacks or that have been placed
   * on it anew. Default 32 MiB. A function is called each time.
   */
  readonly rebalanceRate?: number | (() => number) | undefined;
  /** The pause between two blocks of the scrub. Default `"100ms"`. */
  readonly scrubPause?: Duration | undefined;
  /** Receives refused connections, at most once a minute per cause (`docs/log-events.md`). Default: none. */
  readonly logger?: Logger | undefined;
}

const ttlDefaultMs = 5_000;
const blockSizeDefault = 256 * 2 ** 10;
/** Bytes per second. */
export const rebalanceRateDefault = 32 * 2 ** 20;
const rebalanceBytesPerSMin = 64 * 2 ** 10;
/** Each of these nodes keeps all names. */
const foundersMax = 5;
const blockSizeMin = 512;
const blockSizeMax = 4 * 2 ** 20;

/** Timeout of one answer of another node, ms. */
const answerTimeoutMs = 2_000;
/** How long a content that no path has any more is kept for its readers, ms. */
const graceMs = 60_000;
const sweepPauseMs = 2_000;
/** At this many records a snapshot of the names costs as much as it saves. */
const recordsMin = 2_000;
/** How many changes a follower may fall behind. */
const keptChanges = 10_000;
const announcedMs = 15 * 60_000;

/** Requests with blocks have a connection of their own, so that short requests don't wait behind them. */
const bulk: ReadonlySet<Kind> = new Set<Kind>(["put", "fetch", "operate", "piece", "hold", "bit"]);

/**
 * Starts a node of replicated files. Resolves when it listens. Calls wait up to `timeout` until the node's
 * disk has joined (at a cluster's first start: until all nodes are present).
 * @throws LeaseholdError `INVALID_CONFIG`; `CONFIG_MISMATCH` if the disk belongs to another node or list of
 *   nodes; `UNREACHABLE` if it cannot listen; `INVALID_URL`, `INVALID_DURATION`, `STORE_CORRUPT`.
 */
export async function startFiles(options: StartFilesOptions): Promise<Files> {
  const { node, nodes, joins = false, leases, store, cluster = "leasehold", logger = silent } = options;
  checkNodes(options);
  const settings = settingsOf(options);
  const own = parseAddress(options.listen ?? nodes[node]!);
  const addresses = new Map(Object.entries(nodes).map(([name, text]) => [name, parseAddress(text)]));
  const world = realWorld();
  const self: Self = { cluster, node, knows: (name) => addressesOf(name).length > 0 };
  const credentials = await nodeCredentials(options, self, [own, ...addresses.values()], world, logger);
  const refused = refusalsTo(logger);
  const addressesOf = (name: string): readonly Address[] =>
    started.addressesOf(name).map((text) => parseAddress(text));
  const connect = async (name: string, signal: AbortSignal): Promise<Socket> => {
    let failure: unknown = new LeaseholdError("UNREACHABLE", `node ${name} is not in the list of nodes`);
    for (const address of addressesOf(name)) {
      try {
        return await dial(self, credentials, name, address, signal);
      } catch (error) {
        if (isRefusal(error)) refused(`to node ${name}`, error);
        failure = error;
      }
    }
    throw failure;
  };
  const channels = new Channels(connect);
  const peers: Peers = {
    ask: <K extends Kind>(to: string, kind: K, ask: Asks[K], how: AskOptions): Promise<Answered<K>> =>
      channels.to(to, bulk.has(kind)).ask(kind, ask, how),
  };
  const started = new StartedFiles({
    node,
    nodes: Object.keys(nodes),
    joins,
    addresses: nodes,
    world,
    leases,
    store,
    peers,
    settings,
    newId: randomUUID,
    checksum: crc32,
  });
  const listener = new Listener({
    self,
    credentials,
    timers: world.timers,
    answerer: started,
    refused: (address, why) => refused(`from ${address}`, why),
  });
  started.onClosed = async () => {
    credentials?.close();
    channels.close();
    await listener.close();
  };
  try {
    await listener.listen(own);
    await started.begin();
  } catch (error) {
    await started.close();
    throw error;
  }
  return started;
}

/** Connections to the other nodes, two for each. */
class Channels {
  readonly #connect: (name: string, signal: AbortSignal) => Promise<Socket>;
  readonly #all = new Map<string, readonly [Channel, Channel]>();

  constructor(connect: (name: string, signal: AbortSignal) => Promise<Socket>) {
    this.#connect = connect;
  }

  /** Channels of nodes that have left are kept: at most as many as the list of nodes allows. */
  to(name: string, isBulk: boolean): Channel {
    const pair = getOrInsert(this.#all, name, () => {
      const dialled: Dial = (signal) => this.#connect(name, signal);
      return [new Channel(name, dialled), new Channel(name, dialled)] as const;
    });
    return pair[isBulk ? 1 : 0];
  }

  close(): void {
    for (const pair of this.#all.values()) for (const channel of pair) channel.close();
  }
}

/** A node and its sockets. */
class StartedFiles extends NamedFiles {
  onClosed: () => Promise<void> = () => Promise.resolve();

  override async close(): Promise<void> {
    await super.close();
    await this.onClosed();
  }
}

function checkNodes({ node, nodes, joins, blockSize = blockSizeDefault }: StartFilesOptions): void {
  if (joins !== true && Object.keys(nodes).length > foundersMax)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `a cluster begins with ${foundersMax} nodes at most; others join it`,
    );
  const wrong = Object.keys(nodes).find((name) => !/^[A-Za-z0-9._-]{1,64}$/.test(name));
  if (wrong !== undefined)
    throw new LeaseholdError("INVALID_CONFIG", `${JSON.stringify(wrong)} is not a name of a node`);
  if (!Object.hasOwn(nodes, node))
    throw new LeaseholdError("INVALID_CONFIG", `node ${node} is not in the list of nodes`);
  if (!(Number.isInteger(blockSize) && blockSize >= blockSizeMin && blockSize <= blockSizeMax))
    throw new LeaseholdError("INVALID_CONFIG", `blockSize is ${blockSizeMin} to ${blockSizeMax} bytes`);
}

function settingsOf(options: StartFilesOptions) {
  const { ttlMinMs, ttlMaxMs } = options.leases.guarantees;
  const ttlDefault = Math.max(ttlMinMs, Math.min(ttlDefaultMs, ttlMaxMs));
  const ttlMs = parseDuration(options.ttl ?? ttlDefault, "ttl");
  const { rebalanceRate = rebalanceRateDefault } = options;
  const rate = typeof rebalanceRate === "number" ? () => rebalanceRate : rebalanceRate;
  checkRate(rate());
  return {
    blockSize: options.blockSize ?? blockSizeDefault,
    ttlMs,
    leaseMarginMs: parseDuration(options.leaseMargin ?? "10ms", "leaseMargin"),
    operationTimeoutMs: parseDuration(options.timeout ?? "20s", "timeout"),
    answerTimeoutMs,
    announcedMs,
    graceMs,
    sweepPauseMs,
    recordsMin,
    keptChanges,
    get rebalanceBytesPerS() {
      return Math.max(rebalanceBytesPerSMin, rate());
    },
    idleMs: parseDuration(options.idle ?? "1m", "idle"),
    scrubPauseMs: parseDuration(options.scrubPause ?? "100ms", "scrubPause"),
  };
}

function checkRate(bytesPerS: number): void {
  if (bytesPerS >= rebalanceBytesPerSMin) return;
  throw new LeaseholdError("INVALID_CONFIG", `rebalanceRate is ${rebalanceBytesPerSMin} bytes/s or more`);
}

function isRefusal(error: unknown): error is LeaseholdError {
  return error instanceof LeaseholdError && error.code !== "UNREACHABLE";
}

/** Limits log messages, because strangers and mistakes in lists of addresses cause many. */
function refusalsTo(logger: Logger): (which: string, why: LeaseholdError) => void {
  const events = eventLog(logger);
  return (which, { code, message }) => {
    const peer = which.replace(/^(?:from|to node) /, "");
    const cause = `${which.replace(/:\d+$/, "")} ${code}`;
    const text = `a connection ${which} was refused: ${message} (${code})`;
    const isCredential = code === "UNAUTHENTICATED" || code === "PERMISSION_DENIED";
    if (isCredential && which.startsWith("from "))
      events.limited("credential-refused", cause, text, { cause: code, subject: "", address: peer });
    else events.limited("node-refused", cause, text, { peer, code });
  };
}
