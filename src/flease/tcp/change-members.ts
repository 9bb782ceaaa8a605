import { LeaseholdError } from "../../lease/errors.js";
import type { World } from "../../common/ports.js";
import { openFleaseClient } from "./client.js";
import type { FleaseNode } from "./flease-node.js";
import type { ViewStatus } from "./node-views.js";
import type { FleaseOptions } from "./types.js";

/** What is to change: a member that comes, one that goes, or one that takes another's place. */
export interface MemberChange {
  readonly add?: string | undefined;
  /** Of the member that comes, `host:port`. */
  readonly address?: string | undefined;
  readonly remove?: string | undefined;
}

/** Beginning a change takes some questions among the members. */
const changeTimeoutMs = 10_000;
const askTimeoutMs = 2_000;

/** How often the members are asked how a change stands, ms. */
const lookEveryMs = 250;

/** Who the members are. */
export async function listMembers(
  addresses: readonly string[],
  options: FleaseOptions,
  world: World,
): Promise<ViewStatus> {
  const node = await openFleaseClient(addresses, options, world);
  try {
    return await ask(node, "members", {}, askTimeoutMs);
  } finally {
    await node.close();
  }
}

/**
 * Changes the members of a running cluster. Resolves when the change is over: no lease can be in use that the
 * new members do not know of.
 *
 * @param told is told how the change stands, several times a second
 * @throws LeaseholdError `INVALID_CONFIG` with the reason why the change may not begin
 */
export async function changeMembers(
  addresses: readonly string[],
  options: FleaseOptions,
  change: MemberChange,
  told: (status: ViewStatus) => void,
  world: World,
): Promise<ViewStatus> {
  const node = await openFleaseClient(addresses, options, world);
  try {
    const begun: ViewStatus = await ask(node, "change", change, changeTimeoutMs);
    for (;;) {
      told(begun);
      await new Promise<void>((resolve) => world.timers.after(lookEveryMs, resolve));
      const status = await ask(node, "members", {}, askTimeoutMs).catch(() => undefined);
      if (status === undefined) continue;
      if (status.number > begun.number) return status;
      told(status);
    }
  } finally {
    await node.close();
  }
}

/** The member that comes first by its id and is connected: two that change the members ask the same one. */
async function ask(node: FleaseNode, method: string, params: object, timeoutMs: number): Promise<ViewStatus> {
  for (const index of node.views.voters()) {
    const link = node.link(index);
    if (link === undefined) continue;
    return (await node.transport.call(link, method, params, timeoutMs)) as ViewStatus;
  }
  throw new LeaseholdError("UNREACHABLE", "no member is connected");
}
