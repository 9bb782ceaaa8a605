import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { MemberReport, MemberStatus } from "../../host/types.js";
import { plain } from "../output/ansi.js";
import { presentLease } from "./get.js";
import { presentLeases } from "./list.js";
import { memberOptionsOf } from "./peer-config.js";
import { presentStatus } from "./status.js";

describe("ls", () => {
  const found = [
    {
      resource: "b",
      state: "held" as const,
      holder: "host-2",
      token: 12n,
      remainingMs: 4_100.4,
      confirmed: true,
    },
    { resource: "a/1", state: "held" as const, holder: "host-1", token: 7n, remainingMs: 850 },
  ];

  test("prints an aligned table, sorted by name", () => {
    expect(presentLeases(found, "").table(plain, 80)).toEqual([
      "RESOURCE  HOLDER  TOKEN  TIME LEFT  SEEN",
      "a/1       host-1      7     850 ms  tentative",
      "b         host-2     12      4.1 s  confirmed",
    ]);
  });

  test("is one document, or one object for each lease; the token is text", () => {
    const { document, objects } = presentLeases(found, "");
    expect(document).toEqual(objects);
    expect(objects[1]).toEqual({
      resource: "b",
      state: "held",
      holder: "host-2",
      token: "12",
      remainingMs: 4_100,
      confirmed: true,
    });
  });

  test("says in words that there is nothing, and as JSON an empty list", () => {
    expect(presentLeases([], "x/").table(plain, 80)).toEqual(["no lease below x/ is held"]);
    expect(presentLeases([], "x/").document).toEqual([]);
  });
});

describe("get", () => {
  test("shows the holder, and that more than one member said so", () => {
    const hint = { state: "held" as const, holder: "host-1", token: 7n, remainingMs: 4_100, confirmed: true };
    expect(presentLease("reports", hint).table(plain, 80)).toEqual([
      "resource   reports",
      "state      held, confirmed",
      "holder     host-1",
      "token      7",
      "time left  at most 4.1 s unless it is renewed",
    ]);
  });

  test("shows that a lease is free, or that nobody knows", () => {
    expect(presentLease("x", { state: "free", confirmed: true }).table(plain, 80)[1]).toBe(
      "state      free, confirmed",
    );
    expect(presentLease("x", { state: "unknown" }).table(plain, 80)[1]).toContain("unknown");
    expect(presentLease("x", { state: "free" }).document).toEqual({ resource: "x", state: "free" });
  });
});

describe("status", () => {
  const peers = [
    { id: "b", address: "h:2", connected: true, roundTripMs: 0.571, skewMs: -1.04 },
    { id: "c", address: "h:3", connected: false },
  ];
  const ready = { state: "ready", readyInMs: 0, resources: 2, clients: 7, peers } as unknown as MemberStatus;
  const reports: MemberReport[] = [
    { id: "c", address: "h:3", reachable: false, reason: "connection refused" },
    { id: "a", address: "h:1", reachable: true, status: ready },
    {
      id: "b",
      address: "h:2",
      reachable: true,
      status: { ...ready, state: "recovering", readyInMs: 2_100, peers: [] },
    },
  ];

  test("shows each member, why one is unreachable, and that there is no majority", () => {
    expect(presentStatus(reports).table(plain, Infinity)).toEqual([
      "MEMBER  ADDRESS  STATE                            RESOURCES  CLIENTS  PEERS: ROUND TRIP, SKEW",
      "a       h:1      ready                                    2        7  b: 0.57 ms, -1.0 ms  c: not connected",
      "b       h:2      recovering, ready in 2.1 s               2        7",
      "c       h:3      unreachable: connection refused          -        -  -",
      "fewer than a majority of the members are ready: no lease can be had now",
    ]);
  });
});

describe("the settings of a peer", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "leasehold-peer-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function file(content: unknown): string {
    const path = join(folder, "peer.json");
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
    return path;
  }

  const members = { a: "h:1", b: "h:2", c: "h:3" };

  test("come from flags", () => {
    const flags = { id: "a", member: ["a=h:1", "b=[::1]:2"], ttlMax: "4s", insecure: true };
    expect(memberOptionsOf(flags)).toEqual({
      id: "a",
      members: { a: "h:1", b: "[::1]:2" },
      ttlMax: "4s",
      insecure: true,
    });
  });

  test("come from a file, and flags say otherwise", () => {
    const config = file({ id: "a", members, ttlMax: 4_000, cluster: "one" });
    expect(memberOptionsOf({ config, id: "b", cluster: "two" })).toEqual({
      id: "b",
      members,
      ttlMax: 4_000,
      cluster: "two",
    });
  });

  test.each([
    [{ id: "a", members, ttlmax: "4s" }, 'unknown setting "ttlmax"'],
    [{ id: "a", members: { a: 7400 } }, "members.a: "],
    [{ id: "a", members, insecure: "yes" }, "insecure: "],
    [{ id: "a" }, "--member"],
    [{ members }, "--id"],
    [[], "one JSON object"],
    ["{", "is not JSON"],
  ])("refuses %j and names what is wrong", (content, message) => {
    expect(() => memberOptionsOf({ config: file(content) })).toThrow(message);
  });

  test("refuses a member without an address, a member given twice and a file that is not there", () => {
    expect(() => memberOptionsOf({ id: "a", member: ["a"] })).toThrow(
      "--member a: it should be id=host:port",
    );
    expect(() => memberOptionsOf({ id: "a", member: ["a=h:1", "a=h:2"] })).toThrow("a was given already");
    expect(() => memberOptionsOf({ config: join(folder, "none.json") })).toThrow("no such file");
  });
});
