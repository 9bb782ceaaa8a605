import type { Leases } from "leasehold/common";
import type { LockGround } from "./tree.js";

/** Matches no token: it stands for a lock whose token leases do not know. */
const unknownToken = "";

/** WebDAV's locks as leases, so that no other node grants or changes what one node has locked. */
export function leaseLocks(leases: Leases, prefix: string): LockGround {
  const nameOf = (path: string): string => `${prefix}/${path}`;
  const knowsData = leases.guarantees.data;
  return {
    take: async (path, token) => {
      const lease = await leases.tryAcquire(nameOf(path), knowsData ? { data: token } : {});
      if (lease === undefined) return undefined;
      return { lost: lease.signal, release: async () => void (await lease.release()) };
    },
    tokenOf: async (path) => {
      const { state, data } = await leases.holder(nameOf(path));
      if (state !== "held") return undefined;
      return typeof data === "string" ? data : unknownToken;
    },
  };
}
