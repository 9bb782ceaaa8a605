import { describe, expect, test } from "vitest";
import {
  type AnsweringServer,
  clockRates,
  type CoreReport,
  type OwnReport,
  type ServerReport,
} from "../../etcd/core-report.js";
import { plain } from "../output/ansi.js";
import { hasLeader, presentServers } from "./core-status.js";
import { type CoreSeen, examineCore } from "./examine-core.js";

const own: OwnReport = {
  leaseholdVersion: "0.1.0",
  uptimeMs: 60_000,
  commitIndex: 10n,
  stateBytes: 1_000_000n,
  quotaBytes: 2_000_000_000n,
  heartbeatMs: 100,
  electionMs: 1_000,
  syncs: { samples: 1_000, p50Ms: 0.5, p99Ms: 4, longestMs: 9 },
  followers: [],
  certificates: [],
};
const server = (id: string, more: Partial<AnsweringServer> = {}): AnsweringServer => ({
  address: `${id}:1`,
  reachable: true,
  id,
  name: id,
  version: "3.4.0",
  isLeader: id === (more.leader ?? "a"),
  isLearner: false,
  leader: "a",
  term: 3n,
  logIndex: 10n,
  appliedIndex: 10n,
  lag: 0n,
  dataBytes: 1n,
  alarms: [],
  roundTripMs: 1,
  own,
  ...more,
});
const away: ServerReport = { address: "c:1", reachable: false, reason: "gone", id: "c", name: "c" };
const core = (...servers: ServerReport[]): CoreReport => ({ servers, size: 3, clocks: new Map() });
const whole = [server("a"), server("b"), server("c")];
const latencies = (p99: number) => ({ samples: 1_000, p50: 1, p99, p999: p99 });
const measured = { acquire: latencies(20), renew: latencies(20) };
const nowMs = Date.UTC(2026, 0, 1);
const seen: CoreSeen = {
  measured,
  rates: [],
  ttlMaxMs: 15_000,
  clockRateError: 0.1,
  certificates: [],
  nowMs,
  clocks: [],
};

/** The verdict, and the findings that are not ok. */
function found(report: CoreReport, more: Partial<CoreSeen> = {}) {
  const { findings, verdict } = examineCore(report, { ...seen, ...more });
  return [verdict, ...findings.filter(({ ok }) => !ok).map(({ text }) => text)];
}

test("different election timeouts cause a hint", () => {
  const other = server("c", { own: { ...own, electionMs: 5_000 } });
  expect(found(core(server("a"), server("b"), other))).toEqual([
    "ok",
    "the servers have several election timeouts (1.0 s, 5.0 s): give all the same, one after another",
  ]);
});

describe("status of a core", () => {
  test("there is a leader when a majority of all that vote follows one in one term", () => {
    const b = (more: Partial<AnsweringServer>) => core(server("a"), server("b", more), away);
    expect(hasLeader(b({}))).toBe(true);
    expect(hasLeader(b({ term: 2n }))).toBe(false);
    expect(hasLeader(b({ leader: "" }))).toBe(false);
    expect(hasLeader(b({ isLearner: true }))).toBe(false);
    expect(hasLeader({ ...core(server("a")), size: 1 })).toBe(true);
  });

  test("one line for each server: its role, its progress, its disk", () => {
    const learner = server("d", {
      isLearner: true,
      lag: 7n,
      own: { ...own, syncs: { ...own.syncs, samples: 0 } },
    });
    const etcd = server("e", { leader: "", isLeader: false, dataBytes: 25_000_000n });
    delete (etcd as { own?: unknown }).own;
    expect(presentServers(core(server("a"), learner, etcd, away)).table(plain, 200)).toEqual([
      "SERVER  ADDRESS  STATE              VERSION  TERM  APPLIED  LAG            DATA  SYNC p50     p99  ROUND TRIP",
      "a       a:1      leads              0.1.0       3       10    0  1.0 of 2000 MB    0.5 ms  4.0 ms     1.00 ms",
      "d       d:1      learns             0.1.0       3       10    7  1.0 of 2000 MB         -       -     1.00 ms",
      "e       e:1      knows no leader    3.4.0       3       10    0         25.0 MB         -       -     1.00 ms",
      "c       c:1      unreachable: gone",
      "no majority of the servers follows one leader: no lease can be had now",
    ]);
  });

  test("a terminal of 80 columns gets the columns that fit", () => {
    const lines = presentServers(core(server("a", { address: "10.0.0.1:2379" }), away)).table(plain, 80);
    expect(lines.slice(0, 3)).toEqual([
      "SERVER  ADDRESS        STATE              TERM  APPLIED  LAG  ROUND TRIP",
      "a       10.0.0.1:2379  leads                 3       10    0     1.00 ms",
      "c       c:1            unreachable: gone",
    ]);
  });

  test("an alarm is shown once, with the name of its server", () => {
    const alarms = ["memberID:11 alarm:NOSPACE"];
    const report = core(server("a", { alarms }), server("b", { alarms }), server("c"));
    expect(presentServers(report).table(plain, 200).slice(4)).toEqual(["b has raised the alarm NOSPACE"]);
  });

  test.each([
    ["memberID:11 ", "the keys of b are not those of the other servers: the alarm CORRUPT is raised"],
    ["memberID:4096 ", "the keys of 1000 are not those of the other servers: the alarm CORRUPT is raised"],
    [
      "",
      "the servers have different keys, and no majority says which are right: the alarm CORRUPT is raised",
    ],
  ])("the alarm %sCORRUPT is explained in words, with advice", (member, text) => {
    const report = core(server("a", { alarms: [`${member}alarm:CORRUPT`] }), server("b"), server("c"));
    expect(presentServers(report).table(plain, 200).slice(4)).toEqual([text]);
    expect(found(report).join()).toMatch(`${text}, and all changes are refused. Remove`);
  });
});

describe("doctor of a core", () => {
  test("accepts a core that answers, with no lag and leases that outlast many renewals", () => {
    expect(found(core(...whole))).toEqual(["ok"]);
  });

  test("names missing servers, with advice", () => {
    expect(found(core(server("a"), server("b"), away))).toEqual([
      "unavailable",
      "c (c:1) does not answer: gone. Start it, or, if it is lost for good: etcdctl member remove c, and add another",
      "2 of 3 voting servers answer; 2 are needed, so 1 may be missing",
    ]);
    const [verdict, , few] = found(core(server("a", { leader: "" }), { ...away, address: "b:1" }, away), {
      measured: undefined,
    });
    expect(verdict).toBe("unavailable");
    expect(few).toMatch("c (c:1) does not answer");
    expect(found(core(...whole.map((each) => ({ ...each, leader: "", isLeader: false }))))).toEqual([
      "unavailable",
      "no majority follows one leader: look whether the servers reach each other's peer URLs",
    ]);
    expect(found(core(...whole), { measured: undefined, refusal: "user name is empty" })).toEqual([
      "unavailable",
      "no lease could be had: user name is empty",
    ]);
  });

  test("detects servers that lag, and servers cut off from the others only", () => {
    expect(found(core(server("a"), server("b", { lag: 5_000n }), server("c", { lag: 5_001n })))).toEqual([
      "unfit",
      "c lags: 5001 entries are committed that it has not carried out: look at its disk, its processor and its way to the leader",
    ]);
    const followers = [{ id: "c", heard: false, silentMs: 3_000, getsSnapshot: true, matchIndex: 1n }];
    const leader = server("a", { own: { ...own, followers } });
    expect(found(core(leader, server("b"), server("c", { lag: 9_000n })))).toEqual([
      "unfit",
      "a, which leads, has not heard c for 3.0 s, and we do: look at the network between them",
      "c lags: 9000 entries are committed that it has not carried out: it is getting a snapshot: wait",
    ]);
    expect(found(core(leader, server("b"), server("c", { leader: "" })))).toEqual([
      "unfit",
      "c knows no leader: it answers us, and does not reach the others at their peer URLs",
    ]);
  });

  test("a learner and a nearly full quota are hints, an alarm is none", () => {
    const full = { ...own, stateBytes: 1_700_000_000n };
    expect(found(core(...whole, server("d", { isLearner: true, own: full })))).toEqual([
      "ok",
      "d learns and has no vote; to give it one: etcdctl member promote d",
      "d has filled 85 % of its quota: delete keys, compact, or raise --quota-backend-bytes on all servers",
    ]);
    const alarmed = server("a", { alarms: ["memberID:10 alarm:NOSPACE"] });
    expect(found(core(alarmed, server("b"), server("c")))).toEqual([
      "unfit",
      "a has raised the alarm NOSPACE: writes are refused. Delete keys, compact, then etcdctl alarm disarm",
    ]);
  });

  test("a slow disk is a hint, and a fault when elections may come of it", () => {
    const slow = (p99Ms: number) => server("b", { own: { ...own, syncs: { ...own.syncs, p99Ms } } });
    expect(found(core(server("a"), slow(10), server("c")))).toEqual(["ok"]);
    expect(found(core(server("a"), slow(11), server("c")))[0]).toBe("ok");
    expect(found(core(server("a"), slow(11), server("c")))[1]).toMatch(
      "b takes 0.50 ms to write to its disk, 99 % within 11 ms (1000 times): 10 ms are advised",
    );
    expect(found(core(server("a"), slow(251), server("c")))).toEqual([
      "unfit",
      "b takes 0.50 ms to write to its disk, 99 % within 251 ms (1000 times), and the election timeout is 1.0 s: give the log a faster disk",
    ]);
  });

  test("a clock that is certainly too fast or too slow is named", () => {
    const rate = (least: number, most: number) =>
      found(core(...whole), { rates: [{ id: "b", least, most }] });
    expect(rate(0.9, 1.2)).toEqual(["ok"]);
    expect(rate(1.06, 1.2)).toEqual([
      "unfit",
      "the steady clock of b runs 6.0 % faster than this machine's, and clockRateError is 10.0 %: look at the time services of both",
    ]);
    expect(rate(0.8, 0.94)[1]).toMatch("the steady clock of b runs 6.0 % slower");
  });

  test("rates are within the bounds of the round trips, for servers that were not restarted", () => {
    const at = (ms: number, uptimeMs: number): CoreReport => ({
      ...core(server("a", { own: { ...own, uptimeMs } })),
      clocks: new Map([["a", { thereMs: ms * 2, askedMs: ms, answeredMs: ms + 10 }]]),
    });
    expect(clockRates(at(0, 5), at(1_000, 1_005))).toEqual([
      { id: "a", least: 2_000 / 1_010, most: 2_000 / 990 },
    ]);
    expect(clockRates(at(0, 5_000), at(1_000, 10))).toEqual([]);
    expect(clockRates(at(0, 5), at(5, 10))).toEqual([]);
  });

  test("certificates are named before they expire", () => {
    const dayMs = 86_400_000;
    const certificate = (days: number, authority = false) =>
      server("b", {
        own: {
          ...own,
          certificates: [{ towards: "clients", file: "b.pem", expiresMs: nowMs + days * dayMs, authority }],
        },
      });
    const of = (days: number) => found(core(server("a"), certificate(days), server("c")));
    expect(of(31)).toEqual(["ok"]);
    expect(of(29.5)).toEqual([
      "ok",
      "b: the certificate b.pem, towards clients, expires in 29 days, on 2026-01-30: write a renewed one over it, which is used within 10 s",
    ]);
    expect(of(6)[0]).toBe("unfit");
    expect(of(-1)[1]).toMatch("expired on 2025-12-31");
    const ours = [{ towards: "", file: "me.pem", expiresMs: nowMs, authority: false }];
    expect(found(core(...whole), { certificates: ours })[1]).toMatch(
      "this machine: the certificate me.pem expires in 0 days",
    );
  });

  test("renewals that are slow for the leases are a fault", () => {
    const slow = { acquire: latencies(20), renew: latencies(200) };
    expect(found(core(...whole), { measured: slow })[0]).toBe("unfit");
  });
});
