import { describe, expect, test } from "vitest";
import type { MemberReport } from "../../flease/tcp/types.js";
import { reportOf } from "../../../../../test/support/member-status.js";
import { plain } from "../output/ansi.js";
import { toJson } from "../output/json.js";
import { examineMembers } from "./doctor-members.js";
import { presentExplanation } from "./get.js";
import { presentLeases } from "./list.js";
import { memberOptionsOf } from "./peer-config.js";
import { commandFor } from "./members/roll.js";
import { presentAction } from "./release.js";
import { changeLine, changeView } from "./watch.js";

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

  test("shows labels, if a holder has one", () => {
    const labelled = presentLeases([{ ...found[0]!, label: "db-7 pid 12" }, found[1]!], "");
    expect(labelled.table(plain, 80)[2]).toBe("b         host-2     12      4.1 s  confirmed  db-7 pid 12");
  });

  test("is one document, or one object for each lease; the token is text", () => {
    const { document } = presentLeases(found, "");
    expect((document as readonly unknown[])[1]).toEqual({
      resource: "b",
      state: "held",
      holder: "host-2",
      token: "12",
      remainingMs: 4_100,
      confirmed: true,
    });
  });

  test("prints a sentence for an empty list, and as JSON an empty array", () => {
    expect(presentLeases([], "x/").table(plain, 80)).toEqual(["no lease below x/ is held"]);
    expect(presentLeases([], "x/").document).toEqual([]);
  });
});

describe("doctor of members", () => {
  const report = (
    skewMs: number,
    roundTripMs: number,
    ttlMaxMs = 15_000,
    maxClockSkewMs = 500,
  ): MemberReport => {
    const skewErrorMs = roundTripMs / 2;
    const peers = [{ id: "b", address: "h:2", connected: true, skewMs, skewErrorMs, roundTripMs }];
    return reportOf({ maxClockSkewMs, ttlMaxMs, peers });
  };

  test("accepts clocks and times that fit", () => {
    expect(examineMembers([report(-3, 2)], [])).toMatchObject({ verdict: "ok" });
  });

  test("warns of clocks near the bound, and of leases that are short for their round trips", () => {
    const late = examineMembers([report(-253, 4)], []);
    expect(late.verdict).toBe("unfit");
    expect(late.findings.find(({ ok }) => !ok)?.text).toContain("clocks are apart by at least 251 ms");
    const slow = examineMembers([report(1, 240, 2_000)], []);
    expect(slow.verdict).toBe("unfit");
    expect(slow.findings.find(({ ok }) => !ok)?.text).toContain("at least 24.0 s is advised");
  });

  test.each([
    [-252, 4, "could not be measured well"],
    [-253, 4, "apart by at least 251 ms"],
    [-248, 4, "apart by 250 ms at the most"],
    [-249, 4, "could not be measured well"],
  ])("measured as %i ms with a round trip of %i ms, clocks are %s", (skewMs, tripMs, text) => {
    expect(
      examineMembers([report(skewMs, tripMs)], []).findings.some((each) => each.text.includes(text)),
    ).toBe(true);
  });

  test("blames no clock for what may be a delayed message", () => {
    // Measured on one machine under load.
    const { verdict, findings } = examineMembers([report(-40.5, 81, 15_000, 50)], []);
    expect(verdict).toBe("ok");
    expect(findings.find(({ isHint }) => isHint)?.text).toContain("could not be measured well");
    expect(JSON.stringify(findings)).not.toContain("time servers");
  });

  test("blames no cluster for what may be a busy machine", () => {
    const { verdict, findings } = examineMembers([report(1, 60, 2_500)], []);
    expect(verdict).toBe("ok");
    expect(findings.find(({ isHint }) => isHint)?.text).toMatch(/60 ms.*merely be busy.*6.0 s is advised/);
  });

  test("reports a missing majority", () => {
    const away = { id: "b", address: "h:2", reachable: false, reason: "gone" } as const;
    expect(examineMembers([report(1, 1), away], []).verdict).toBe("unavailable");
    expect(examineMembers([away], []).verdict).toBe("unavailable");
  });
});

describe("get", () => {
  const members = [
    {
      id: "a",
      address: "h:1",
      state: "ready" as const,
      promised: 7n,
      waiting: 2,
      lease: { holder: "host-1.x", token: 7n, state: "live" as const, remainingMs: 4_100 },
      barred: "host-1.x",
    },
    { id: "b", address: "h:2", state: "recovering" as const, readyInMs: 2_100 },
    { id: "c", address: "h:3", state: "unreachable" as const, reason: "no connection" },
  ];
  const explanation = {
    resource: "reports",
    state: "held" as const,
    holder: "host-1.x",
    label: "db-7 pid 12: nightly",
    token: 7n,
    remainingMs: 4_100,
    confirmed: false,
    quorum: false,
    broken: false,
    waiting: 2,
    reasons: ["one", "two"],
    members,
  };

  test("shows the holder, the reasons in sentences, and what each member knows", () => {
    expect(presentExplanation(explanation).table(plain, 120)).toEqual([
      "resource   reports",
      "state      held, tentative",
      "holder     host-1.x",
      "label      db-7 pid 12: nightly",
      "token      7",
      "time left  at most 4.1 s unless it is renewed",
      "",
      "one",
      "two",
      "",
      "MEMBER  ADDRESS  STATE                       LEASE THAT IT KNOWS                       WAITING",
      "a       h:1      ready                       host-1.x, 4.1 s left; host-1.x is barred        2",
      "b       h:2      recovering, ready in 2.1 s  -                                               -",
      "c       h:3      unreachable: no connection  -                                               -",
    ]);
  });

  test("shows other holders: slots of a counted lease, or readers", () => {
    const other = { state: "held", confirmed: true, remainingMs: 4_100 } as const;
    const slots = [
      { ...other, resource: "reports/~2", holder: "host-2.y", token: 8n },
      { ...other, resource: "reports/~11", holder: "host-3.z", token: 9n },
    ];
    const { table, document } = presentExplanation(explanation, slots);
    expect(table(plain, 120).slice(5, 8)).toEqual([
      "time left  at most 4.1 s unless it is renewed",
      "slot 2     host-2.y, token 8, 4.1 s left unless renewed",
      "slot 11    host-3.z, token 9, 4.1 s left unless renewed",
    ]);
    expect(JSON.parse(toJson(document))).toMatchObject({
      slots: [{ token: "8" }, { resource: "reports/~11" }],
    });
  });

  test("is complete as JSON, tokens as text", () => {
    const document: unknown = JSON.parse(toJson(presentExplanation(explanation).document));
    expect(document).toMatchObject({
      resource: "reports",
      state: "held",
      token: "7",
      quorum: false,
      reasons: ["one", "two"],
      members: [{ promised: "7", lease: { token: "7" } }, { readyInMs: 2_100 }, { state: "unreachable" }],
    });
  });

  test("shows that a lease is free, or that its state is unknown", () => {
    const free = {
      resource: "x",
      quorum: true,
      broken: false,
      waiting: 0,
      reasons: ["it is free"],
      members: [],
    };
    const table = presentExplanation({ ...free, state: "free", confirmed: true }).table(plain, 80);
    expect(table).toEqual(["resource   x", "state      free, confirmed", "", "it is free"]);
    expect(presentExplanation({ ...free, state: "unknown" }).table(plain, 80)[1]).toContain("unknown");
  });
});

describe("watch, release and break", () => {
  const at = new Date(2030, 0, 1, 12, 30, 5);

  test("a change is a line for humans and an object for programs", () => {
    const held = {
      resource: "a",
      state: "held" as const,
      holder: "h.1",
      token: 5n,
      remainingMs: 4_100.4,
      label: "l",
    };
    expect(changeLine(held, at, plain)).toBe(
      "12:30:05  held  a  token 5, h.1 (l), at most 4.1 s left unless renewed",
    );
    expect(changeLine({ resource: "a", state: "free", token: 5n }, at, plain)).toBe(
      "12:30:05  free  a  token 5 ended",
    );
    expect(changeView(held, at)).toEqual({
      at: at.toISOString(),
      resource: "a",
      state: "held",
      holder: "h.1",
      token: "5",
      remainingMs: 4_100,
      label: "l",
    });
  });

  test("report their outcome in a sentence", () => {
    const say = (verb: "release" | "break", done: boolean, holder?: string) =>
      presentAction(verb, "a", {
        done,
        ...(holder !== undefined && { holder, token: 5n, remainingMs: 900 }),
      }).table(plain, 80)[0];
    expect(say("release", false)).toBe("nobody holds a");
    expect(say("release", true, "h.1")).toBe("h.1 was asked to release a");
    expect(say("release", false, "h.1")).toContain("could not be notified; its lease runs out in 900 ms");
    expect(say("break", true, "h.1")).toContain("is broken: it runs out in 900 ms at the latest");
    expect(say("break", false, "h.1")).toContain("too few members");
  });
});

describe("the settings of a peer", () => {
  test("are its options; missing ones are left to the library", () => {
    const flags = { id: "a", member: ["a=h:1", "b=[::1]:2"], ttlMax: "4s", insecure: true };
    expect(memberOptionsOf(flags)).toEqual({
      id: "a",
      members: { a: "h:1", b: "[::1]:2" },
      ttlMax: "4s",
      insecure: true,
    });
  });

  test("are refused without an id or members, without an address, and with a member given twice", () => {
    expect(() => memberOptionsOf({ member: ["a=h:1"] })).toThrow("--id");
    expect(() => memberOptionsOf({ id: "a" })).toThrow("--member");
    expect(() => memberOptionsOf({ id: "a", member: ["a"] })).toThrow(
      "--member a: it should be id=host:port",
    );
    expect(() => memberOptionsOf({ id: "a", member: ["a=h:1", "a=h:2"] })).toThrow("a was given already");
  });
});

describe("member roll", () => {
  test("puts the member's values into the command, and refuses values that a shell would split", () => {
    const member = { id: "b", address: "10.0.0.2:7400" };
    expect(commandFor("ssh {host} restart {id} {port} {address} {x}", member)).toBe(
      "ssh 10.0.0.2 restart b 7400 10.0.0.2:7400 {x}",
    );
    expect(commandFor("{host}", { id: "b", address: "[::1]:7400" })).toBe("[::1]");
    expect(() => commandFor("ssh {host}", { id: "b", address: "h;rm:1" })).toThrow("may stand in a command");
  });
});
