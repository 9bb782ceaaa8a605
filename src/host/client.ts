import { hostname } from "node:os";
import { parseDuration } from "../lease/duration.js";
import { cellFunctionVersion } from "../flease/cells.js";
import { LeaseholdError } from "../lease/errors.js";
import type { World } from "../lease/ports.js";
import { parseAddress } from "./address.js";
import { readClusterDocument } from "./cluster.js";
import type { Cluster } from "./cluster.js";
import { FleaseNode } from "./flease-node.js";
import type { Link } from "./link.js";
import { labelOf } from "./labels.js";
import { silent } from "./logger.js";
import { opening } from "./opening.js";
import type { Credentials } from "./security/credentials.js";
import { loadCredentials } from "./security/load.js";
import { Transport } from "./transport.js";
import type { Claims, Role, TransportHandler } from "./transport-handler.js";
import type { OpenOptions } from "./types.js";

const defaultTimeout = "5s";

/**
 * Connects to a cluster of which some addresses are known, as a client. Resolves as soon as a majority of the members
 * is connected, or, with fewer, when `timeout` is over: the others may come later.
 *
 * @throws LeaseholdError `INVALID_URL`, before anything is opened; `UNREACHABLE`, `INVALID_CONFIG` for credentials that cannot be used, or why every member that answered refused.
 */
export async function openFleaseClient(
  addresses: readonly string[],
  options: OpenOptions,
  world: World,
): Promise<FleaseNode> {
  const timeoutMs = parseDuration(options.timeout ?? defaultTimeout);
  for (const address of addresses) parseAddress(address);
  const deadline = world.clock.monotonicMs() + timeoutMs;
  const logger = options.logger ?? silent;
  const label = labelOf(options.label);
  return opening(async (onFailure) => {
    const owner = {
      role: options.role,
      ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
    };
    const credentials = await loadCredentials(options, owner, world, logger);
    onFailure(() => credentials?.close());
    const role = options.role ?? credentials?.participant ?? "client";
    const found = await discover(addresses, discovererOf(options, role), timeoutMs, world, credentials);
    const { cluster } = found;
    const nodeId = clientName(options.name);
    const node = new FleaseNode({ world, cluster, role, nodeId, label, logger, transport: { credentials } });
    onFailure(() => node.close());
    node.dialMembers(found.addresses);
    await majorityOf(node, Math.max(0, deadline - world.clock.monotonicMs()), world);
    return node;
  });
}

/** Names end up in tables that people read: host and process tell them where to look. */
export function clientName(name: string | undefined): string {
  return (name ?? `${hostname()}-${process.pid}`).replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 64) || "client";
}

/** Who a client or observer is as long as it knows nothing of its cluster. */
function discovererOf(options: OpenOptions, role: Role): Claims {
  return {
    role,
    nodeId: clientName(options.name),
    cluster: options.cluster ?? "",
    configHash: "",
    view: 0,
    cellFunction: cellFunctionVersion,
  };
}

interface Discovery {
  readonly cluster: Cluster;
  /** Addresses at which members were really found. */
  readonly addresses: Map<string, string>;
}

/** Asks the addresses for the cluster; the first member that answers tells all of it. */
function discover(
  addresses: readonly string[],
  claims: Claims,
  timeoutMs: number,
  world: World,
  credentials: Credentials | undefined,
): Promise<Discovery> {
  return new Promise((resolve, reject) => {
    const failures = new Map<string, LeaseholdError>();
    const finish = (settle: () => void) => {
      timer.cancel();
      void transport.close().then(settle);
    };
    const timer = world.timers.after(timeoutMs, () => finish(() => reject(unreachable(addresses, failures))));
    const handler = new Discoverer(
      {
        found: (link) => {
          try {
            const cluster = readClusterDocument(link.clusterDocument);
            finish(() => resolve({ cluster, addresses: new Map([[link.peerId, link.address]]) }));
          } catch (error) {
            finish(() => reject(error));
          }
        },
        failed: (address, error) => {
          failures.set(address, error);
          const refusals = [...failures.values()].filter((failure) => failure.code !== "UNREACHABLE");
          // Members that refuse this client will refuse it again: there is nothing to wait for.
          if (refusals.length === addresses.length) finish(() => reject(refusals[0]!));
        },
      },
      world,
    );
    const transport = new Transport(claims, world, handler, { credentials });
    try {
      for (const address of addresses) transport.dial(address);
    } catch (error) {
      finish(() => reject(error));
    }
  });
}

function unreachable(
  addresses: readonly string[],
  failures: ReadonlyMap<string, LeaseholdError>,
): LeaseholdError {
  const refusal = [...failures.values()].find((failure) => failure.code !== "UNREACHABLE");
  if (refusal !== undefined) return refusal;
  const causes = addresses.map((address) => `${address} (${failures.get(address)?.message ?? "no answer"})`);
  return new LeaseholdError("UNREACHABLE", `no member could be reached at ${causes.join(", ")}`);
}

/** The transport's owner while a client does not know its cluster: it waits for the first member, and has nothing to say. */
class Discoverer implements TransportHandler {
  readonly #found: (link: Link) => void;
  readonly #failed: (address: string, error: LeaseholdError) => void;
  readonly #world: World;

  constructor(
    outcome: { found: (link: Link) => void; failed: (address: string, error: LeaseholdError) => void },
    world: World,
  ) {
    this.#found = outcome.found;
    this.#failed = outcome.failed;
    this.#world = world;
  }

  connected(link: Link): void {
    this.#found(link);
  }

  refused(address: string, error: LeaseholdError): void {
    this.#failed(address, error);
  }

  unreachable(address: string, reason: string): void {
    this.#failed(address, new LeaseholdError("UNREACHABLE", reason));
  }

  stamp(into: { monoMs: number; loMs: number; hiMs: number }): void {
    into.monoMs = this.#world.clock.monotonicMs();
    into.loMs = into.hiMs = this.#world.clock.wallMs();
  }

  admit(): string | undefined {
    return undefined;
  }

  clusterDocument(): string {
    return "";
  }

  answer(): unknown {
    return null;
  }

  repelled(): void {}
  twin(): void {}
  rival(): void {}
  disconnected(): void {}
  chunk(): void {}
  stamped(): void {}
  message(): void {}
  chunkEnd(): void {}
}

function majorityOf(node: FleaseNode, timeoutMs: number, world: World): Promise<void> {
  const majority = Math.floor(node.cluster.settings.members.length / 2) + 1;
  return new Promise((resolve) => {
    const finish = () => {
      timer.cancel();
      node.onMembersChanged = () => {};
      resolve();
    };
    const timer = world.timers.after(timeoutMs, finish);
    node.onMembersChanged = () => {
      if (node.reachable() >= majority) finish();
    };
  });
}
