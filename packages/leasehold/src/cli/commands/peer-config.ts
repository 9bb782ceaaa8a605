import type { MemberOptions } from "../../flease/tcp/types.js";
import { configFailure } from "../common/config-faults.js";
import { type SecurityFlags, securityOf } from "../common/security-options.js";

/** The settings of a member, as commander passes them. */
export interface PeerFlags extends SecurityFlags {
  readonly id?: string;
  readonly member?: readonly string[];
  readonly listen?: string;
  readonly cluster?: string;
  readonly ttlMax?: string;
  readonly maxClockSkew?: string;
  readonly clockRateError?: number;
  readonly cellSize?: number;
  readonly rpcTimeout?: string;
  readonly resourcesMax?: number;
  readonly viewsFile?: string;
  readonly initialClusterState?: "new" | "existing";
  readonly insecure?: boolean;
}

const sameNames = [
  "listen",
  "cluster",
  "ttlMax",
  "maxClockSkew",
  "clockRateError",
  "cellSize",
  "rpcTimeout",
  "resourcesMax",
  "viewsFile",
  "initialClusterState",
  "insecure",
] as const satisfies readonly (keyof PeerFlags & keyof MemberOptions)[];

/**
 * Values are validated once, where they are used. Missing values are left out, so the library's defaults
 * apply.
 */
export function memberOptionsOf(flags: PeerFlags): MemberOptions {
  const { id, member } = flags;
  if (id === undefined)
    throw configFailure("CONFIG_MISSING", 'which member is this? give --id, or "id" in a file with --config');
  if (member === undefined)
    throw configFailure("CONFIG_MISSING", "who are the members? give --member id=host:port once for each");
  const given = sameNames.map((name) => [name, flags[name]] as const);
  return {
    id,
    members: addressesOf(member, "--member"),
    ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
    ...securityOf(flags),
  };
}

/** Checks that a member could start with these options: its settings, and its certificates or keys. */
export async function checkMember(options: MemberOptions): Promise<void> {
  const { checkMemberOptions } = await import("../../flease/tcp/member.js");
  await checkMemberOptions(options);
}

/** `id=host:port`, once for each id. */
export function addressesOf(entries: readonly string[], option: string): Record<string, string> {
  const addresses: Record<string, string> = {};
  for (const entry of entries) {
    const [, id, address] = /^([^=]+)=(.+)$/.exec(entry) ?? [];
    if (id === undefined || address === undefined)
      throw configFailure(
        "CONFIG_VALUE",
        `${option} ${entry}: it should be id=host:port, such as a=10.0.0.1:7400`,
      );
    if (Object.hasOwn(addresses, id))
      throw configFailure("CONFIG_DUPLICATE", `${option} ${entry}: ${id} was given already`);
    addresses[id] = address;
  }
  return addresses;
}
