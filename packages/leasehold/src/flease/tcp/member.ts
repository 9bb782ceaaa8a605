import { labelOf } from "../../runtime/participant.js";
import { parseDuration } from "../../lease/duration.js";
import { LeaseholdError } from "../../lease/errors.js";
import { LeaseManager } from "../../lease/manager/lease-manager.js";
import { checkResourcesMax, fleaseSettings, settingsAdvice, whyNoMemberId } from "../protocol/settings.js";
import { parseAddress } from "../../runtime/address.js";
import { defineCluster } from "./cluster.js";
import type { Cluster } from "../views/cluster.js";
import { FleaseNode } from "./flease-node.js";
import { eventLog } from "../../runtime/log-events.js";
import { silent } from "../../runtime/logger.js";
import { loadCredentials } from "../../runtime/security/load.js";
import { checkOptionNames } from "../../lease/option-names.js";
import { memberOptionNames } from "./option-names.js";
import { opening } from "./opening.js";
import { whenReady } from "./ready.js";
import { memberState } from "./status.js";
import { checkExposure } from "./transport/listener.js";
import type { Member, MemberOptions } from "./types.js";
import type { ViewKeeping } from "./views/node-views.js";
import { ViewFile } from "./views/view-file.js";
import { realWorld } from "../../runtime/world.js";

/** Makes this process a member: its acceptor answers every participant, its proposer serves `leases`. */
export async function startFleaseMember(options: MemberOptions): Promise<Member> {
  checkOptionNames("startMember", options, memberOptionNames);
  const { id } = options;
  const listen = options.listen ?? options.members[id]!;
  const cluster = clusterOf(options);
  parseAddress(listen);
  const label = labelOf(options.label);
  const logger = options.logger ?? silent;
  const events = eventLog(logger);
  for (const advice of settingsAdvice(cluster.settings)) events.log("settings-advice", advice, {});
  const world = realWorld();
  return opening(async (onFailure) => {
    const owner = { role: "member", memberId: id, cluster: cluster.name } as const;
    const credentials = await loadCredentials(options, owner, world, logger);
    onFailure(() => credentials?.close());
    const transport = { insecure: options.insecure ?? false, credentials };
    const given = { label, logger, transport, viewKeeping: viewKeepingOf(options) };
    const node = new FleaseNode({ world, cluster, role: "member", nodeId: id, ...given });
    onFailure(() => node.close());
    const address = await node.listen(listen);
    node.dialMembers();
    const leases = new LeaseManager(node.provider, world);
    const recovering = { isReady: () => memberState(node) === "ready", ended: node.ended };
    return {
      id,
      address,
      leases,
      status: () => node.status(),
      setResourcesMax: (max) => {
        checkResourcesMax(max);
        node.peer.acceptor?.quotas?.resize(max);
      },
      ready: (given = {}) => whenReady(recovering, given, world),
      close: () => leases.close(),
    };
  });
}

/**
 * Whether a member with these options could start: its settings, and its certificates or keys.
 *
 * @returns advice on settings that are allowed and unwise.
 * @throws LeaseholdError `INVALID_CONFIG`, `INVALID_DURATION`, `INVALID_URL`
 */
export async function checkMemberOptions(options: MemberOptions): Promise<readonly string[]> {
  const { id } = options;
  const cluster = clusterOf(options);
  const listen = options.listen ?? options.members[id]!;
  parseAddress(listen);
  viewKeepingOf(options);
  const owner = { role: "member", memberId: id, cluster: cluster.name } as const;
  const credentials = await loadCredentials(options, owner, realWorld(), silent);
  credentials?.close();
  if (credentials === undefined && options.insecure !== true) checkExposure(listen);
  return settingsAdvice(cluster.settings);
}

function viewKeepingOf({ id, members, viewsFile, ...more }: MemberOptions): ViewKeeping | undefined {
  const { initialClusterState: state } = more;
  if (state !== undefined && state !== "new" && state !== "existing") {
    const text = `initialClusterState is ${JSON.stringify(state)}, and must be "new" or "existing"`;
    throw new LeaseholdError("INVALID_CONFIG", text);
  }
  if (state === "new" && !Object.hasOwn(members, id))
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `initialClusterState "new": ${JSON.stringify(id)} is not among the members that the cluster begins with`,
    );
  return viewsFile === undefined ? undefined : { file: new ViewFile(viewsFile), state };
}

function clusterOf(options: MemberOptions): Cluster {
  const { id, members } = options;
  const comesLater = options.viewsFile !== undefined && options.listen !== undefined;
  if (!Object.hasOwn(members, id) && !comesLater) {
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `the member ${JSON.stringify(id)} is not among the members listed`,
    );
  }
  const why = whyNoMemberId(id);
  if (why !== undefined) throw new LeaseholdError("INVALID_CONFIG", why);
  const ttlMaxMs = parseDuration(options.ttlMax ?? "15s");
  const settings = fleaseSettings({
    members: Object.keys(members),
    cellSize: options.cellSize,
    ttlMaxMs,
    maxClockSkewMs: parseDuration(options.maxClockSkew ?? "500ms"),
    rpcTimeoutMs:
      options.rpcTimeout === undefined
        ? Math.min(1_000, Math.max(50, ttlMaxMs / 15))
        : parseDuration(options.rpcTimeout),
    resourcesMax: options.resourcesMax,
    clockRateError: options.clockRateError,
  });
  const cluster = defineCluster(options.cluster ?? "leasehold", settings, members);
  if (comesLater && !Object.hasOwn(members, id)) cluster.learn(id, options.listen!);
  return cluster;
}
