import { expect, test } from "vitest";
import { acquireOf, at, benchSettings } from "../../../../../test/support/flease-bench.js";
import { FleasePeer } from "../peer.js";
import { Message } from "../protocol/message.js";
import { LeaseData } from "./lease-data.js";

/** A member's acceptor that keeps its entries, and next to it the data that owners send. */
function setUp() {
  const start = at(-2_000);
  const medium = { send: () => {}, reaches: () => true, notify: () => false };
  const who = { owner: "a.1", seed: 1, acceptor: true };
  const peer = new FleasePeer(benchSettings(), who, start.mono, start.wall, medium, () => {});
  const acceptor = peer.acceptor!;
  const take = (resource: string, owner: string, ms = 0): number => {
    const now = peer.read(at(ms).mono, at(ms).wall);
    peer.maintain(now);
    peer.receive(1_000, { ...acquireOf(owner, ms, ms + 900, 900), resource }, now, new Message());
    const entry = acceptor.entry(resource);
    expect(entry?.leaseOwner).toBe(owner);
    return entry!.token;
  };
  return { data: new LeaseData(acceptor), take };
}

test("data is kept for the owner of a lease, under its token", () => {
  const { data, take } = setUp();
  const token = take("r", "p.1");
  expect(data.set("q.1", "r", token, "1")).toBe(false);
  expect(data.set("p.1", "r", token + 1, "1")).toBe(false);
  expect(data.set("p.1", "s", token, "1")).toBe(false);
  expect(data.set("p.1", "r", token, "1")).toBe(true);
  expect(data.of("r", "p.1", token)).toBe("1");
});

test("data of the last holder is never that of the next, and is dropped with the lease", () => {
  const { data, take } = setUp();
  const first = take("r", "p.1");
  expect(data.set("p.1", "r", first, "1")).toBe(true);
  const later = 100_000;
  const next = take("r", "q.1", later);
  expect(data.of("r", "q.1", next)).toBeUndefined();
  const again = take("r", "q.1", later + 1);
  expect(data.of("r", "q.1", again)).toBeUndefined();
  data.sweep();
  expect(data.of("r", "p.1", first)).toBeUndefined();
  expect(data.set("q.1", "r", again, "2")).toBe(true);
});

test("data is bounded for each lease and for each owner, whatever its content", () => {
  const { data, take } = setUp();
  const token = take("r", "p.1");
  for (const text of [undefined, 7, null, {}, "x".repeat(1_025), "é".repeat(513), "x".repeat(1_000_000)])
    expect(data.set("p.1", "r", token, text)).toBe(false);
  const longest = "x".repeat(1_024);
  const names = Array.from({ length: 4_097 }, (_, index) => `n/${index}`);
  const kept = names.map((name) => data.set("p.1", name, take(name, "p.1"), longest));
  expect(kept.indexOf(false)).toBe(4_096);
  // Another owner still has room, and replaced data counts once.
  expect(data.set("q.1", "other", take("other", "q.1"), longest)).toBe(true);
  expect(data.set("p.1", "n/0", take("n/0", "p.1"), "x")).toBe(true);
});
