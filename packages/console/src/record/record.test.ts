import type { Change } from "leasehold";
import { describe, expect, test } from "vitest";
import { LeaseRecord } from "./record.js";

const held = (token: bigint, holder = "a.1", remainingMs = 10_000): Change => ({
  resource: "demo/backup",
  state: "held",
  holder,
  token,
  remainingMs,
});
const free = (token: bigint): Change => ({ resource: "demo/backup", state: "free", token });

describe("the record of leases", () => {
  test("a lease that is held when the watch begins is marked as held for longer than the record knows", () => {
    const record = new LeaseRecord();
    record.begin([{ ...held(1n), state: "held" }], 1_000);
    expect(record.get("demo/backup")).toEqual({
      name: "demo/backup",
      holder: "a.1",
      token: "1",
      sinceMs: 1_000,
      isOlder: true,
      endsMs: 11_000,
      spanMs: 10_000,
    });
    expect(record.eventsAfter(0)).toEqual([]);
    // The watch reports the same lease once more.
    record.change(held(1n), 1_100);
    expect(record.tenures("demo/backup")).toHaveLength(1);
  });

  test("a lease that a new watch does not list is freed", () => {
    const record = new LeaseRecord();
    record.change(held(1n), 0);
    record.begin([], 500);
    expect(record.get("demo/backup")).toBeUndefined();
    expect(record.tenures("demo/backup")).toMatchObject([{ untilMs: 500, end: "released" }]);
  });

  test.each([
    ["before its known end it was released", 9_000, 5_000, "released"],
    ["at an end that was known shortly before it ran out", 10_000, 9_500, "ran-out"],
    ["at an end that was known long before it was either", 10_000, 2_000, "ended"],
  ])("the end of a tenure is recognized: %s", (_what, freedMs, toldMs, end) => {
    const record = new LeaseRecord();
    record.change(held(1n), 0);
    record.renewed([{ ...held(1n, "a.1", 10_000 - toldMs), state: "held" }], toldMs);
    record.change(free(1n), freedMs);
    expect(record.tenures("demo/backup")).toMatchObject([{ token: "1", untilMs: freedMs, end }]);
  });

  test("a tenure ends when another token follows without a gap", () => {
    const record = new LeaseRecord();
    record.change(held(1n), 0);
    record.change(held(2n, "b.1"), 50);
    expect(record.tenures("demo/backup")).toMatchObject([
      { holder: "a.1", end: "passed-on", untilMs: 50 },
      { holder: "b.1", sinceMs: 50 },
    ]);
    expect(record.eventsAfter(0).map(({ kind }) => kind)).toEqual(["acquired", "passed-on", "acquired"]);
  });

  test("a listed end is taken if it is a renewed one, never an earlier one, and none of another token", () => {
    const record = new LeaseRecord();
    record.change(held(1n), 0);
    const dirty = record.read();
    record.renewed([{ ...held(1n, "a.1", 10_000), state: "held" }], 4_000);
    expect(record.get("demo/backup")).toMatchObject({ endsMs: 14_000, spanMs: 10_000 });
    record.renewed([{ ...held(1n, "a.1", 1_000), state: "held" }], 5_000);
    record.renewed([{ ...held(9n, "c.1", 90_000), state: "held" }], 5_000);
    expect(record.get("demo/backup")).toMatchObject({ endsMs: 14_000, token: "1" });
    expect([...dirty.ends]).toEqual(["demo/backup"]);
  });

  test("at most 50 tenures of a name and 1,000 events are kept", () => {
    const record = new LeaseRecord();
    for (let token = 1; token <= 1_100; token += 1) record.change(held(BigInt(token)), token);
    expect(record.tenures("demo/backup")).toHaveLength(50);
    expect(record.tenures("demo/backup").at(0)?.token).toBe("1051");
    expect(record.eventsAfter(0)).toHaveLength(1_000);
  });
});
