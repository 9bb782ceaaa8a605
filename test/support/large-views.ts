import { membersMax, memberIdLengthMax } from "../../packages/leasehold/src/flease/protocol/settings.js";
import { viewNumberMax } from "../../packages/leasehold/src/flease/views/view.js";
import type { PublishedView } from "../../packages/leasehold/src/flease/views/document.js";

/** The largest possible view, in every respect. */

/** Ids of the maximum length that begin with these letters. */
export function longIds(letters: string, count = membersMax): string[] {
  return Array.from({ length: count }, (_, index) =>
    `${letters}${String(index).padStart(3, "0")}`.padEnd(memberIdLengthMax, "x"),
  );
}

/** A DNS name of the maximum length, which ends with a dot. */
export const longHost = `${"abcdefghi.".repeat(25)}abc.`;

/** An IPv6 address whose zone makes it equally long. */
export const longZone = `[fe80:1111:2222:3333:4444:5555:6666:7777%${"z".repeat(214)}]`;

export function longAddresses(ids: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    ids.map((id, index) => [id, index % 2 === 0 ? `${longHost}:65535` : `${longZone}:65535`]),
  );
}

/** A joint view in which one member leaves and another joins. */
export function largestView(): PublishedView {
  const before = longIds("m");
  const members = [...before.slice(1), ...longIds("n", 1)];
  const number = viewNumberMax - 1;
  const barrier = Number.MAX_SAFE_INTEGER;
  return {
    view: {
      number,
      stamp: number,
      members,
      cellSize: 31,
      before: { members: before, cellSize: 31 },
    },
    barrier,
    settled: new Map(before.map((id) => [id, barrier])),
    addresses: longAddresses([...longIds("m"), ...longIds("n", 1)]),
  };
}
