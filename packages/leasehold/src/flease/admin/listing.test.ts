import { expect, test } from "vitest";
import type { ListedLease } from "./listing.js";
import { MergedListing } from "./listing.js";

const lease = (owner: string, number: number, more: Partial<ListedLease> = {}): ListedLease => ({
  resource: "r",
  owner,
  number,
  sequence: 0,
  until: 1_000,
  token: 1,
  ...more,
});

test.each<{ title: string; reports: ListedLease[]; merged: Partial<ListedLease>; votes: number }>([
  { title: "one word", reports: [lease("a.1", 1)], merged: { owner: "a.1" }, votes: 1 },
  {
    title: "a renewal that one has not seen yet",
    reports: [lease("a.1", 1, { sequence: 2, until: 3_000 }), lease("a.1", 1, { sequence: 1 })],
    merged: { sequence: 2, until: 3_000 },
    votes: 2,
  },
  {
    title: "a newer lease of another owner",
    reports: [lease("a.1", 1), lease("b.1", 2), lease("b.1", 2)],
    merged: { owner: "b.1" },
    votes: 2,
  },
  {
    title: "an older lease of another owner",
    reports: [lease("b.1", 2), lease("a.1", 1)],
    merged: { owner: "b.1" },
    votes: 1,
  },
  {
    title: "data that one has not heard of yet",
    reports: [lease("a.1", 1, { data: "1" }), lease("a.1", 1, { sequence: 1 })],
    merged: { sequence: 1, data: "1" },
    votes: 2,
  },
  {
    title: "data of an earlier tenure",
    reports: [lease("a.1", 1, { data: "1" }), lease("a.1", 2, { token: 2 })],
    merged: { token: 2 },
    votes: 2,
  },
])("reports of acceptors about a resource are merged, page by page: $title", ({ reports, merged, votes }) => {
  const listing = new MergedListing();
  for (const each of reports) listing.add([each]);
  const [first, ...others] = listing.leases;
  expect(others).toEqual([]);
  expect(first?.votes).toBe(votes);
  expect(first?.lease).toMatchObject(merged);
  expect(first?.lease.data).toBe(merged.data);
});
