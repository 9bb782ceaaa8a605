import { describe, expect, test } from "vitest";
import type { MemberReport } from "../../flease/tcp/types.js";
import { reportOf } from "../../../../../test/support/member-status.js";
import { plain } from "../output/ansi.js";
import { presentStatus } from "./status.js";

/** The fields that every member sends. */
const fieldsOfFirstRelease = [
  "id",
  "address",
  "cluster",
  "view",
  "incarnation",
  "state",
  "readyInMs",
  "resources",
  "waiters",
  "ttlMaxMs",
  "maxClockSkewMs",
  "peers",
  "clients",
  "clientsQueuedBytes",
  "counters",
  "cpuMs",
  "rssBytes",
];

describe("status", () => {
  const peers = [
    { id: "b", address: "h:2", connected: true, roundTripMs: 0.571, skewMs: -1.04, skewErrorMs: 0.29 },
    { id: "c", address: "h:3", connected: false },
  ];
  const busy = { resources: 2, clients: 7 };
  const reports: MemberReport[] = [
    { id: "c", address: "h:3", reachable: false, reason: "connection refused" },
    reportOf({ ...busy, peers }),
    reportOf({ ...busy, id: "b", address: "h:2", state: "recovering", readyInMs: 2_100 }),
  ];

  test("shows each member, why one is unreachable, and that there is no majority", () => {
    expect(presentStatus(reports).table(plain, Infinity)).toEqual([
      "MEMBER  ADDRESS  STATE                            RESOURCES  CLIENTS  PEERS: ROUND TRIP, SKEW",
      "a       h:1      ready                                    2        7  b: 0.57 ms, -1.0±0.3 ms  c: not connected",
      "b       h:2      recovering, ready in 2.1 s               2        7",
      "c       h:3      unreachable: connection refused          -        -  -",
      "fewer than a majority of the members are ready: no lease can be had now",
    ]);
  });

  test("shows a dash for a field that members of earlier builds do not send", () => {
    const { status, ...report } = reportOf({}) as Extract<MemberReport, { reachable: true }>;
    const sent = Object.entries(status).filter(([field]) => fieldsOfFirstRelease.includes(field));
    const earlier = { ...report, status: Object.fromEntries(sent) } as unknown as MemberReport;
    const cells = presentStatus([earlier]).table(plain, Infinity)[1]?.trim().split(/ {2,}/);
    expect(cells?.slice(0, 5)).toEqual(["a", "h:1", "ready", "0", "0"]);
    expect(cells?.slice(5).filter((cell) => cell !== "-")).toEqual([]);
  });
});
