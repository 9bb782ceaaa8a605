import { startMember } from "leasehold";
import type { Member, MemberOptions } from "leasehold";
import { freePorts } from "../free-ports.js";

export interface LocalCluster {
  readonly members: Member[];
  readonly urls: string[];
  close(): Promise<void>;
}

/**
 * Starts members in this process that talk over real sockets, with leases short enough for tests. Resolves
 * when they are ready.
 */
export async function startLocalCluster(
  options: Partial<MemberOptions> | ((id: string) => Partial<MemberOptions>) = {},
  count = 3,
  ids: readonly string[] = Array.from({ length: count }, (_, index) => `m${index}`),
): Promise<LocalCluster> {
  const ports = await freePorts(count);
  const addresses = Object.fromEntries(ids.map((id, index) => [id, `127.0.0.1:${ports[index]}`]));
  const members = await Promise.all(
    ids.map((id) =>
      startMember({
        id,
        members: addresses,
        ttlMax: "1s",
        maxClockSkew: "10ms",
        rpcTimeout: "150ms",
        ...(typeof options === "function" ? options(id) : options),
      }),
    ),
  );
  await Promise.all(members.map((member) => member.ready()));
  return {
    members,
    urls: Object.values(addresses).map((address) => `flease://${address}`),
    close: async () => {
      await Promise.all(members.map((member) => member.close()));
    },
  };
}
