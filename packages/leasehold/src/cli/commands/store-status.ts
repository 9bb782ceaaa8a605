import { majorityOf } from "../../common/majority.js";
import type { Leases, MemberView } from "../../lease/types.js";
import { withLeases } from "../common/connection.js";
import { exitCode } from "../common/exit-codes.js";
import { type Presentation, present } from "../output/present.js";
import { type Cell, type Column, tableLines } from "../output/table.js";
import { stateCell } from "./lease-view.js";
import type { Settings } from "../common/settings.js";

const COLUMNS: readonly Column[] = [{ title: "STORE" }, { title: "STATE", shrinks: true }];

/** An unused resource. Asking about it shows which stores count. */
const anyResource = "leasehold/status";

/** `leasehold status` of a farm. A store's name is its address, whichever algorithm runs on it. */
export async function storeStatus(settings: Settings): Promise<number> {
  const members = await withLeases(settings, (leases) => askStores(settings, leases));
  present(settings.output, presentStores(members));
  return hasMajority(members) ? exitCode("ok") : exitCode("unavailable");
}

export async function askStores({ timeoutMs }: Settings, leases: Leases): Promise<readonly MemberView[]> {
  const { members } = await leases.explain(anyResource, { timeout: timeoutMs });
  return members;
}

function hasMajority(stores: readonly MemberView[]): boolean {
  return stores.filter(({ state }) => state === "ready").length >= majorityOf(stores.length);
}

export function presentStores(stores: readonly MemberView[]): Presentation {
  const views = stores.map(({ address, state, reason, readyInMs }) => ({
    id: address,
    state,
    ...(reason !== undefined && { reason }),
    ...(readyInMs !== undefined && { readyInMs: Math.round(readyInMs) }),
  }));
  return {
    document: views,
    table: (paint, widthMax) => {
      const lines = tableLines(COLUMNS, stores.map(rowOf), paint, widthMax);
      if (hasMajority(stores)) return lines;
      return [...lines, paint("red", "fewer than a majority of the stores count: no lease can be had now")];
    },
  };
}

function rowOf(store: MemberView): Cell[] {
  return [{ text: store.address, style: "bold" }, stateCell(store)];
}
