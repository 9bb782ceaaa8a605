import { parseDuration } from "../lease/duration.js";
import { LeaseholdError } from "../lease/errors.js";
import { LeaseManager } from "../lease/lease-manager.js";
import { fleaseSettings, settingsAdvice } from "../flease/settings.js";
import { defineCluster } from "./cluster.js";
import type { Cluster } from "./cluster.js";
import { FleaseNode } from "./flease-node.js";
import { labelOf } from "./labels.js";
import { silent } from "./logger.js";
import { loadCredentials } from "./security/load.js";
import { memberStatus } from "./status.js";
import type { Member, MemberOptions } from "./types.js";
import { realWorld } from "./world.js";

/** How often `ready()` looks whether the recovery wait is over. */
const readyLookMs = 50;

/** Makes this process a member: its acceptor answers everybody, its proposer serves `leases`. */
export async function startFleaseMember(options: MemberOptions): Promise<Member> {
  const cluster = clusterOf(options);
  const logger = options.logger ?? silent;
  for (const advice of settingsAdvice(cluster.settings)) logger.warn(advice);
  const world = realWorld();
  const owner = { role: "member", memberId: options.id, cluster: cluster.name } as const;
  const credentials = await loadCredentials(options, owner, world, logger);
  const node = new FleaseNode({
    world,
    cluster,
    role: "member",
    nodeId: options.id,
    label: labelOf(options.label),
    logger,
    transport: { insecure: options.insecure ?? false, credentials },
  });
  let address: string;
  try {
    address = await node.listen(options.listen ?? options.members[options.id]!);
  } catch (error) {
    await node.close();
    throw error;
  }
  node.dialMembers();
  const leases = new LeaseManager(node.provider, world);
  return {
    id: options.id,
    address,
    leases,
    status: () => memberStatus(node, address),
    ready: async () => {
      while (memberStatus(node, address).state !== "ready") {
        await new Promise<void>((resolve) => world.timers.after(readyLookMs, resolve));
      }
    },
    close: () => leases.close(),
  };
}

function clusterOf(options: MemberOptions): Cluster {
  const { id, members } = options;
  if (!Object.hasOwn(members, id)) {
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `the member ${JSON.stringify(id)} is not among the members listed`,
    );
  }
  const ttlMaxMs = parseDuration(options.ttlMax ?? "15s");
  const settings = fleaseSettings({
    members: Object.keys(members),
    ...(options.cellSize === undefined ? {} : { cellSize: options.cellSize }),
    ttlMaxMs,
    maxClockSkewMs: parseDuration(options.maxClockSkew ?? "500ms"),
    rpcTimeoutMs:
      options.rpcTimeout === undefined
        ? Math.min(1_000, Math.max(50, ttlMaxMs / 15))
        : parseDuration(options.rpcTimeout),
    ...(options.clockRateError === undefined ? {} : { clockRateError: options.clockRateError }),
  });
  return defineCluster(options.cluster ?? "leasehold", settings, members);
}
