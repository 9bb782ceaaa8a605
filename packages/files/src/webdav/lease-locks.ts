import { LeaseholdError, type Leases } from "leasehold/common";
import { SharedLooks } from "./shared-looks.js";
import type { LockGround, LockMark } from "./tree.js";

/** Stands for a lock whose details are unknown: it matches no token and covers everything below. */
const unknownMark: LockMark = { token: "", isDeep: true, isShared: false };

/** WebDAV locks as leases, so that no other node grants or changes what one node has locked. */
export function leaseLocks(leases: Leases, prefix: string): LockGround {
  const nameOf = (path: string): string => `${prefix}/${path}`;
  const knowsData = leases.guarantees.data;
  // Each request looks up all folders above its path, and concurrent requests share most of them.
  const looks = new SharedLooks(async (path: string) => {
    const { state, data } = await leases.holder(nameOf(path));
    if (state === "unknown")
      throw new LeaseholdError("NO_QUORUM", `too few members know whether /${path} is locked`);
    return state === "held" ? markIn(data) : undefined;
  });
  return {
    take: async (path, { token, isDeep, isShared }) => {
      const data = { token, isDeep, isShared };
      const lease = await leases.tryAcquire(nameOf(path), knowsData ? { data } : {});
      if (lease === undefined) return undefined;
      return { lost: lease.signal, release: async () => void (await lease.release()) };
    },
    markOf: (path) => looks.at(path),
    marksBelow: async (path) => {
      const above = path === "" ? nameOf("") : `${nameOf(path)}/`;
      const all = await leases.list(above);
      return all
        .filter(({ resource, state }) => state !== "free" && resource !== above)
        .map(({ resource, data }) => [resource.slice(nameOf("").length), markIn(data)] as const);
    },
  };
}

function markIn(data: unknown): LockMark {
  const { token, isDeep, isShared } = (data ?? {}) as Partial<Record<keyof LockMark, unknown>>;
  if (typeof token !== "string" || token === "") return unknownMark;
  return { token, isDeep: isDeep !== false, isShared: isShared === true };
}
