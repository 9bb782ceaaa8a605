import type { CoreReport } from "../../etcd/core-report.js";
import { isCoreUrl } from "../../etcd/address.js";
import type { MemberReport } from "../../flease/tcp/types.js";
import { clusterStatus } from "../../index.js";
import type { Leases, MemberView } from "../../lease/types.js";
import { isFarmUrl } from "../../stores/farm-address.js";
import { few } from "../../common/lists.js";
import { type Settings, openOptions } from "../common/settings.js";
import { askServers, hasLeader } from "./core-status.js";
import { askStores } from "./store-status.js";

export type { CoreReport, ServerReport } from "../../etcd/core-report.js";

/** The status of the members, stores or servers that leases rest on. */
export type GroundStatus =
  | { readonly kind: "members"; readonly reports: readonly MemberReport[] }
  | { readonly kind: "stores"; readonly stores: readonly MemberView[] }
  | { readonly kind: "servers"; readonly report: CoreReport; readonly isAble: boolean }
  | { readonly kind: "memory" };

/** Queries all members, stores or servers. @param leases open on the same endpoints */
export async function groundStatus(settings: Settings, leases: Leases): Promise<GroundStatus> {
  const { endpoints } = settings;
  if (endpoints.some((endpoint) => endpoint.startsWith("memory:"))) return { kind: "memory" };
  if (endpoints.some(isFarmUrl)) return { kind: "stores", stores: await askStores(settings, leases) };
  if (endpoints.some(isCoreUrl)) {
    const report = await askServers(settings);
    return { kind: "servers", report, isAble: hasLeader(report) };
  }
  return { kind: "members", reports: await clusterStatus(...few(endpoints), openOptions(settings)) };
}
