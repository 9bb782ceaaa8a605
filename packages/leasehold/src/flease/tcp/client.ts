import { clientName, labelOf } from "../../runtime/participant.js";
import { parseDuration } from "../../lease/duration.js";
import { majorityOf } from "../../common/majority.js";
import { cellFunctionVersion } from "../protocol/cells.js";
import type { World } from "../../common/ports.js";
import { parseAddress } from "../../runtime/address.js";
import { type Discovery, discover } from "./discovery.js";
import { FleaseNode } from "./flease-node.js";
import { silent } from "../../runtime/logger.js";
import { opening } from "./opening.js";
import { loadCredentials } from "../../runtime/security/load.js";
import type { Claims } from "./wire/identity.js";
import type { Role } from "../../runtime/security/roles.js";
import type { FleaseOptions } from "./types.js";

const defaultTimeout = "5s";

/**
 * Connects to a cluster as a client, from some known addresses. Resolves as soon as a majority of the
 * members is connected, or with fewer after `timeout`; the rest may connect later.
 *
 * @throws LeaseholdError `INVALID_URL`, before anything is opened; `UNREACHABLE`; `INVALID_CONFIG` for
 * unusable credentials; the members' refusal if all that answered refused, or if the refusals leave no
 * majority; `CONFIG_MISMATCH` when settings differ and no majority agrees.
 */
export async function openFleaseClient(
  addresses: readonly string[],
  options: FleaseOptions,
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
    const claims = discovererOf(options, role);
    const [first, ...others] = await discover(addresses, claims, timeoutMs, world, credentials);
    const nodeId = clientName(options.name);
    const connect = async ({ cluster, addresses: known }: Discovery): Promise<FleaseNode> => {
      const node = new FleaseNode({
        world,
        cluster,
        role,
        nodeId,
        label,
        logger,
        transport: { credentials },
      });
      onFailure(() => node.close());
      node.dialMembers(known);
      const majority = majorityOf(node.views.voters().length);
      const isEnough = () => node.reachable() >= majority || node.refusal() !== undefined;
      await untilMembers(node, Math.max(0, deadline - world.clock.monotonicMs()), world, isEnough);
      return node;
    };
    let node = await connect(first!);
    for (const other of others) {
      if (node.refusal() === undefined) break;
      await node.close();
      node = await connect(other);
    }
    const refusal = node.refusal();
    if (refusal !== undefined) throw refusal;
    return node;
  });
}

/** Identity of a client or observer that does not know its cluster yet. */
function discovererOf(options: FleaseOptions, role: Role): Claims {
  return {
    role,
    nodeId: clientName(options.name),
    cluster: options.cluster ?? "",
    configHash: "",
    view: 0,
    cellFunction: cellFunctionVersion,
  };
}

/** Waits for enough connected members, at most `timeoutMs`. */
export function untilMembers(
  node: FleaseNode,
  timeoutMs: number,
  world: World,
  isEnough: () => boolean,
): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      timer.cancel();
      node.onMembersChanged = () => {};
      resolve();
    };
    const timer = world.timers.after(timeoutMs, finish);
    node.onMembersChanged = () => {
      if (isEnough()) finish();
    };
    node.onMembersChanged();
  });
}
