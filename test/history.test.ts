import { describe, expect, test } from "vitest";
import { HistoryError, checkHistory, describeReport, parseHistory } from "./e2e/history.js";
import type { HistoryEvent, HistoryReport, Rule } from "./e2e/history.js";

/** Hand-made histories, good and bad, for each rule of the checker. Times in ms. */

const ns = (ms: number) => BigInt(Math.round(ms * 1e6));
const pids: Record<string, number> = { a: 1, b: 2, c: 3 };

interface Look {
  at: number;
  /** How long the look took. */
  took?: number;
  ok?: boolean;
  left?: number;
}

/** Looks at one lease. */
function looks(who: string, token: number, ...all: (number | Look)[]): HistoryEvent[] {
  return all.map((one) => {
    const { at, took = 0.01, ok = true, left = 1_000 } = typeof one === "number" ? { at: one } : one;
    return {
      event: "sample",
      m1: ns(at),
      m2: ns(at + took),
      ok,
      remainingMs: ok ? left : 0,
      pid: pids[who]!,
      incarnation: `${who}.1`,
      resource: "r",
      token: BigInt(token),
    };
  });
}

function release(who: string, token: number, at: number): HistoryEvent {
  return {
    event: "release",
    m: ns(at),
    pid: pids[who]!,
    incarnation: `${who}.1`,
    resource: "r",
    token: BigInt(token),
  };
}

function done(event: "killed" | "stopped" | "continued", who: string, at: number): HistoryEvent {
  return { event, m: ns(at), pid: pids[who]! };
}

function changed(events: HistoryEvent[], fields: { resource?: string; token?: bigint }): HistoryEvent[] {
  return events.map((event) => Object.assign(event, fields));
}

function check(...parts: (HistoryEvent | HistoryEvent[])[]): HistoryReport {
  return checkHistory(parts.flat());
}

function rulesOf(report: HistoryReport): Rule[] {
  return report.violations.map((violation) => violation.rule);
}

/** A holder that renews, is killed, and is replaced. */
const goodTakeover = [
  looks("a", 10, { at: 0, left: 1_000 }, { at: 400, left: 600 }, { at: 500, left: 1_000 }),
  done("killed", "a", 600),
  looks("b", 20, 1_700, { at: 1_800, left: 900 }),
];

describe("a good history", () => {
  test("of a holder that renews, is killed and is replaced", () => {
    const report = check(...goodTakeover);
    expect(report).toMatchObject({
      verdict: "clean",
      violations: [],
      samples: 5,
      renewals: 1,
      takeovers: 1,
      handovers: 0,
      inconclusive: 0,
    });
    expect(report.tenures.map((tenure) => tenure.token)).toEqual([10n, 20n]);
    expect(report.successions).toEqual([{ resource: "r", killedAt: ns(600), gapMs: 1_100 }]);
    expect(describeReport(report)).toBe(
      "clean: 2 tenures, 1 takeovers, 0 handovers, 1 renewals, 5 samples, 0 inconclusive",
    );
  });

  test("reads the same in any order of its journals", () => {
    const report = check(...goodTakeover);
    expect(checkHistory(goodTakeover.flat().toReversed())).toEqual(report);
  });

  test("with a release, another holder at once, and looks at the released lease", () => {
    const report = check(
      ...goodTakeover,
      release("b", 20, 1_900),
      looks("b", 20, { at: 1_950, ok: false }),
      looks("c", 30, 1_901),
    );
    expect(report).toMatchObject({ verdict: "clean", takeovers: 1, handovers: 1 });
  });

  test("of different resources, held at the same time", () => {
    const elsewhere = changed(looks("b", 5, 100, 300), { resource: "s" });
    expect(check(...goodTakeover, elsewhere).violations).toEqual([]);
  });
});

describe("overlaps", () => {
  test("two holders at once are proved", () => {
    const report = check(looks("a", 10, 0, 100), looks("b", 20, 50, 150));
    expect(report.verdict).toBe("violated");
    expect(rulesOf(report)).toEqual(["overlap"]);
    expect(report.violations[0]!.text).toContain("r by a.1 with token 10 and r by b.1 with token 20");
  });

  test("a holder claims all the time between two looks, also when it was stopped", () => {
    const report = check(looks("a", 10, 0, 5_000), looks("b", 20, 1_000, 1_001));
    expect(rulesOf(report)).toEqual(["overlap"]);
  });

  test("a lease that is held at one look only, all of it within another's tenure, is proved", () => {
    expect(rulesOf(check(looks("a", 10, 0, 100), looks("b", 20, 50)))).toEqual(["overlap"]);
  });

  test("one look that lasts beyond the other's tenure proves nothing", () => {
    const report = check(looks("a", 10, 0, 100), looks("b", 20, { at: 50, took: 100 }));
    expect(report).toMatchObject({ violations: [], inconclusive: 1 });
  });

  test("of stamps that touch only, or cross within a look, prove nothing", () => {
    expect(check(looks("a", 10, 0, { at: 100, took: 5 }), looks("b", 20, 103, 200))).toMatchObject({
      violations: [],
      inconclusive: 1,
    });
    expect(check(looks("a", 10, 0, 100), looks("b", 20, 100.01, 200))).toMatchObject({
      violations: [],
      inconclusive: 0,
    });
  });

  test("a release ends the claim, though a look is missing after it", () => {
    const report = check(looks("a", 10, 0, 100), release("a", 10, 101), looks("b", 20, 101.5, 200));
    expect(report.violations).toEqual([]);
  });

  test("two tenures of one process exclude each other too", () => {
    expect(rulesOf(check(looks("a", 10, 0, 100), looks("a", 20, 50, 150)))).toEqual(["overlap"]);
  });

  test("three at once are three pairs", () => {
    expect(rulesOf(check(looks("a", 10, 0, 100), looks("b", 20, 10, 100), looks("c", 30, 20, 100)))).toEqual([
      "overlap",
      "overlap",
      "overlap",
    ]);
  });
});

describe("tokens", () => {
  test("must rise", () => {
    expect(rulesOf(check(looks("a", 20, 0, 100), looks("b", 10, 200, 300)))).toEqual(["token-order"]);
    expect(rulesOf(check(looks("a", 20, 0), looks("b", 10, 200)))).toEqual(["token-order"]);
  });

  test("must not return after a smaller one that was reported", () => {
    const report = check(looks("a", 20, 0, 1), looks("b", 10, 100, 101), looks("c", 15, 200, 201));
    expect(rulesOf(report)).toEqual(["token-order", "token-order"]);
  });

  test("must not be repeated", () => {
    expect(rulesOf(check(looks("a", 10, 0, 100), looks("b", 10, 200, 300)))).toEqual(["token-repeated"]);
  });

  test("of a look so long that its order is uncertain prove nothing", () => {
    const report = check(looks("a", 10, { at: 0, took: 500 }), looks("b", 20, 100, 200));
    expect(report.violations).toEqual([]);
  });

  test("larger than a double holds are compared exactly", () => {
    const big = (who: string, token: bigint, at: number) => changed(looks(who, 0, at), { token });
    const report = check(big("a", 9_007_199_254_740_993n, 0), big("b", 9_007_199_254_740_992n, 100));
    expect(rulesOf(report)).toEqual(["token-order"]);
  });
});

describe("the end of a tenure", () => {
  test("a lease must not be found held after its own release", () => {
    const report = check(looks("a", 10, 0, 100), release("a", 10, 50));
    expect(rulesOf(report)).toEqual(["held-after-release"]);
  });

  test("a lease that was lost must not come back", () => {
    const report = check(looks("a", 10, 0, { at: 50, ok: false }, 100));
    expect(rulesOf(report)).toEqual(["reopened"]);
  });

  test("a loss is told apart from a release", () => {
    const report = check(
      looks("a", 10, 0, { at: 50, ok: false }),
      looks("b", 20, 60),
      release("b", 20, 70),
      looks("b", 20, { at: 71, ok: false }),
    );
    expect(report.tenures.map((tenure) => tenure.lostAt)).toEqual([ns(50), undefined]);
    expect(report).toMatchObject({ takeovers: 1, handovers: 0 });
  });
});

describe("a pause", () => {
  const pause = [
    looks("a", 10, 0, 100),
    done("stopped", "a", 101),
    looks("b", 20, 2_000, 3_500),
    done("continued", "a", 3_000),
  ];

  test("in which another took over ends with a first look that finds the lease lost", () => {
    expect(check(...pause, looks("a", 10, { at: 3_001, ok: false }))).toMatchObject({
      violations: [],
      lossesFoundAfterPause: 1,
      takeovers: 1,
    });
  });

  test("must not end with a first look that finds it held", () => {
    const report = check(...pause, looks("a", 10, 3_001, { at: 3_002, ok: false }));
    expect(rulesOf(report).sort()).toEqual(["held-after-pause", "overlap"]);
  });

  test("in which nobody took over may end with the lease still held", () => {
    const report = check(looks("a", 10, 0, 100), done("continued", "a", 500), looks("a", 10, 501));
    expect(report).toMatchObject({ violations: [], lossesFoundAfterPause: 0 });
  });

  test("after a release is no loss, and neither is one that has not ended", () => {
    const lost = looks("a", 10, { at: 3_001, ok: false });
    expect(check(...pause, release("a", 10, 100.5), lost)).toMatchObject({ lossesFoundAfterPause: 0 });
    expect(check(...pause.slice(0, 3), lost)).toMatchObject({ lossesFoundAfterPause: 0 });
  });

  test("of somebody else proves nothing", () => {
    const report = check(...pause.slice(0, 3), done("continued", "c", 3_000));
    expect(report).toMatchObject({ violations: [], lossesFoundAfterPause: 0 });
  });
});

describe("a void run", () => {
  test("has no takeover", () => {
    const report = check(goodTakeover[0]!, release("a", 10, 600), looks("b", 20, 700));
    expect(report).toMatchObject({
      verdict: "void",
      voidBecause: ["no holder was replaced without having released"],
    });
  });

  test("has only a holder that gets again what it lost", () => {
    const report = check(looks("a", 10, { at: 0, left: 500 }, 400), looks("a", 20, 2_000, 2_100));
    expect(report).toMatchObject({ verdict: "void", takeovers: 0, handovers: 0 });
  });

  test("has no renewal: the end that the looks show does not move", () => {
    const report = check(
      looks("a", 10, { at: 0, left: 1_000 }, { at: 500, left: 500 }),
      looks("b", 20, 1_500),
    );
    expect(report).toMatchObject({ verdict: "void", voidBecause: ["no lease was renewed"] });
  });

  test("has nothing at all", () => {
    expect(check()).toMatchObject({ verdict: "void", tenures: [], samples: 0 });
  });

  test("is not what a violation makes it", () => {
    expect(check(looks("a", 10, 0, 100), looks("b", 20, 50, 150)).verdict).toBe("violated");
  });
});

describe("a journal", () => {
  const sample =
    '{"event":"sample","m1":"1","m2":"2","pid":7,"incarnation":"a.1","resource":"r","token":"10","ok":true,"remainingMs":5.5}';

  test("is read line by line, and what the rules do not use is skipped", () => {
    const text = `${sample}\n{"event":"acquired","m1":"1"}\n{"event":"killed","m":"3","pid":7}\n`;
    expect(parseHistory(text, "a.log")).toEqual([
      {
        event: "sample",
        m1: 1n,
        m2: 2n,
        pid: 7,
        incarnation: "a.1",
        resource: "r",
        token: 10n,
        ok: true,
        remainingMs: 5.5,
      },
      { event: "killed", m: 3n, pid: 7 },
    ]);
  });

  test.each([
    ["not a line of JSON", '{"event":"sam'],
    ["not an object", "7"],
    ["no event", "{}"],
    ["m1 is not a string of digits", sample.replace('"m1":"1"', '"m1":1')],
    ["m2 is before m1", sample.replace('"m1":"1"', '"m1":"3"')],
    ["ok is not true or false", sample.replace("true", '"yes"')],
    ["token is not a string of digits", sample.replace('"10"', '"-1"')],
    ["no resource", sample.replace('"r"', '""')],
    ["pid is not a whole number", sample.replace("7,", "null,")],
    ["remainingMs is not a number", sample.replace("5.5", "null")],
    ["m is not a string of digits", '{"event":"killed","pid":7}'],
  ])("is refused with its place: %s", (problem, line) => {
    expect(() => parseHistory(`${sample}\n${line}\n`, "a.log")).toThrow(
      new HistoryError("a.log", 2, problem),
    );
  });
});
