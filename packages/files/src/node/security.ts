import { type World, LeaseholdError } from "leasehold/common";
import {
  type Address,
  isLoopback,
  type Logger,
  type Credentials,
  loadCredentials,
  type SecurityOptions,
} from "leasehold/runtime";
import type { Self } from "./introduction.js";

/**
 * A node's credentials, like those of a member of its cluster; `undefined` on loopback without credentials.
 * @throws LeaseholdError `INVALID_CONFIG`.
 */
export async function nodeCredentials(
  options: SecurityOptions,
  { cluster, node }: Self,
  addresses: readonly Address[],
  world: World,
  logger: Logger,
  everyMs?: number,
): Promise<Credentials | undefined> {
  const owner = { role: "member", memberId: node, cluster } as const;
  const credentials = await loadCredentials(options, owner, world, logger, everyMs);
  const open = addresses.find(({ host }) => !isLoopback(host));
  if (credentials === undefined && open !== undefined)
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `${open.host} can be reached from other machines: nodes of files need \`key\`, \`keyFile\` or \`tls\` there`,
    );
  return credentials;
}
