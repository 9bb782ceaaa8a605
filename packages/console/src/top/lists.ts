import type { LeaseView } from "../record/messages.js";
import type { LeaseRecord } from "../record/record.js";
import type { Order, TopState } from "./state.js";

export interface HolderRow {
  readonly holder: string;
  readonly label?: string;
  readonly leases: number;
  /** The start of the lease that it has held longest. */
  readonly sinceMs: number;
  /** The end of the lease that ends first, unless it is renewed. */
  readonly endsMs: number;
}

/** The leases that match the filter, in the chosen order. */
export function leaseRows(record: LeaseRecord, { filter, order, isReversed }: TopState): LeaseView[] {
  const isAsked = matching(filter);
  const rows = record
    .names()
    .flatMap((name) => record.get(name) ?? [])
    .filter(({ name, holder, label = "" }) => isAsked(name) || isAsked(holder) || isAsked(label));
  // Names are sorted already, and a stable sort keeps their order among equals.
  if (order !== "name") rows.sort(comparing(order));
  return isReversed ? rows.toReversed() : rows;
}

const byText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

function comparing(order: Exclude<Order, "name">): (one: LeaseView, other: LeaseView) => number {
  switch (order) {
    case "holder":
      return (one, other) => byText(one.holder, other.holder);
    case "time left":
      return (one, other) => one.endsMs - other.endsMs;
    case "held for":
      return (one, other) => one.sinceMs - other.sinceMs;
  }
}

/** The holders of these leases, those with the most leases first. */
export function holderRows(leases: readonly LeaseView[], { isReversed }: TopState): HolderRow[] {
  const rows = new Map<string, HolderRow>();
  for (const { holder, label, sinceMs, endsMs } of leases) {
    const before = rows.get(holder);
    rows.set(holder, {
      holder,
      ...(label !== undefined && { label }),
      leases: (before?.leases ?? 0) + 1,
      sinceMs: Math.min(before?.sinceMs ?? sinceMs, sinceMs),
      endsMs: Math.min(before?.endsMs ?? endsMs, endsMs),
    });
  }
  const sorted = [...rows.values()].sort(
    (one, other) => other.leases - one.leases || byText(one.holder, other.holder),
  );
  return isReversed ? sorted.toReversed() : sorted;
}

function matching(filter: string): (text: string) => boolean {
  if (filter === "") return () => true;
  if (filter !== filter.toLowerCase()) return (text) => text.includes(filter);
  return (text) => text.toLowerCase().includes(filter);
}
