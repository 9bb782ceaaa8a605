import { describe, expect, test } from "vitest";
import {
  changed,
  check,
  decision,
  done,
  fault,
  goodTakeover,
  journalOf,
  looks,
  lost,
  ns,
  op,
  release,
  rulesOf,
} from "../../../../../test/support/histories.js";
import { checkHistory } from "./judge.js";
import { describeReport } from "./report.js";

/** Hand-made histories, good and bad, for each rule of the judge. */

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
    expect(report.faults).toEqual([{ kind: "killed", count: 1, interrupted: 1, longestMs: 1_100.01 }]);
    expect(describeReport(report)).toBe(
      "clean: 2 tenures, 1 takeovers, 0 handovers, 1 renewals, 5 samples, 0 operations, 0 inconclusive",
    );
  });

  test("reads the same in any order of its journals", () => {
    const texts = goodTakeover.map((entries, index): [string, string] => [
      `${index}.journal`,
      journalOf(entries, `writer ${index}`),
    ]);
    const report = checkHistory(Object.fromEntries(texts));
    expect(report).toMatchObject({ verdict: "clean", journals: 3, samples: 5 });
    expect(checkHistory(Object.fromEntries(texts.toReversed()))).toEqual(report);
  });

  test("may have one tenure in two journals, as two threads may write them", () => {
    const early = journalOf(looks("a", 10, 0, 10), "early");
    const late = journalOf(looks("a", 10, 90, 100), "late");
    const other = journalOf(looks("b", 20, 50, 60), "other");
    for (const journals of [
      { early, late, other },
      { late, early, other },
    ])
      expect(rulesOf(checkHistory(journals))).toEqual(["overlap"]);
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
  test("two concurrent holders are proved", () => {
    const report = check(looks("a", 10, 0, 100), looks("b", 20, 50, 150));
    expect(report.verdict).toBe("violated");
    expect(rulesOf(report)).toEqual(["overlap"]);
    expect(report.violations[0]!.text).toContain(
      "r by a.1 (process 1) with token 10 and r by b.1 (process 2) with token 20",
    );
  });

  test("a holder claims all the time between two looks, even while it was stopped", () => {
    const report = check(looks("a", 10, 0, 5_000), looks("b", 20, 1_000, 1_001));
    expect(rulesOf(report)).toEqual(["overlap"]);
  });

  test("a lease that is held at a single look, all of it within another's tenure, is proved", () => {
    expect(rulesOf(check(looks("a", 10, 0, 100), looks("b", 20, 50)))).toEqual(["overlap"]);
  });

  test("one look that lasts beyond the other's tenure proves nothing", () => {
    const report = check(looks("a", 10, 0, 100), looks("b", 20, { at: 50, took: 100 }));
    expect(report).toMatchObject({ violations: [], inconclusive: 1 });
  });

  test("of stamps that only touch, or cross within a look, prove nothing", () => {
    expect(check(looks("a", 10, 0, { at: 100, took: 5 }), looks("b", 20, 103, 200))).toMatchObject({
      violations: [],
      inconclusive: 1,
    });
    expect(check(looks("a", 10, 0, 100), looks("b", 20, 100.01, 200))).toMatchObject({
      violations: [],
      inconclusive: 0,
    });
  });

  test("a release ends the claim, even if no look follows it", () => {
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

  test("must not be repeated by another process that claims the same owner", () => {
    const twin = changed(looks("a", 10, 50, 150), { pid: 9 });
    expect(rulesOf(check(looks("a", 10, 0, 100), twin)).sort()).toEqual(["overlap", "token-repeated"]);
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

  test("a loss is distinguished from a release", () => {
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

  test("with a takeover ends with a first look that finds the lease lost", () => {
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

  test("after which it is still held proves nothing when the other's only look began before it", () => {
    const stretched = looks("b", 10, { at: 0, took: 50 });
    const report = check(stretched, looks("a", 20, 10, 15, 100), done("continued", "a", 60));
    expect(report).toMatchObject({ violations: [], inconclusive: 1 });
  });

  test("without a takeover may end with the lease still held", () => {
    const report = check(looks("a", 10, 0, 100), done("continued", "a", 500), looks("a", 10, 501));
    expect(report).toMatchObject({ violations: [], lossesFoundAfterPause: 0 });
  });

  test("after a release is no loss, and neither is one that has not ended", () => {
    const lost = looks("a", 10, { at: 3_001, ok: false });
    expect(check(...pause, release("a", 10, 100.5), lost)).toMatchObject({ lossesFoundAfterPause: 0 });
    expect(check(...pause.slice(0, 3), lost)).toMatchObject({ lossesFoundAfterPause: 0 });
  });

  test("after which the same holder has the lease again is no loss to another", () => {
    const report = check(
      looks("a", 10, 0, 100),
      done("continued", "a", 3_000),
      looks("a", 20, 3_000.5),
      looks("a", 10, { at: 3_001, ok: false }),
    );
    expect(report).toMatchObject({ violations: [], lossesFoundAfterPause: 0 });
  });

  test("of another process proves nothing", () => {
    const report = check(...pause.slice(0, 3), done("continued", "c", 3_000));
    expect(report).toMatchObject({ violations: [], lossesFoundAfterPause: 0 });
  });
});

describe("a void run", () => {
  test("is one without a takeover from a holder that had not released", () => {
    const report = check(goodTakeover[0]!, release("a", 10, 600), looks("b", 20, 700));
    expect(report).toMatchObject({
      verdict: "void",
      voidBecause: ["no holder was replaced without having released"],
    });
  });

  test("is one in which a holder only regains its own lost lease", () => {
    const report = check(looks("a", 10, { at: 0, left: 500 }, 400), looks("a", 20, 2_000, 2_100));
    expect(report).toMatchObject({ verdict: "void", takeovers: 0, handovers: 0 });
  });

  test("is one in which no look proves a renewal", () => {
    const report = check(
      looks("a", 10, { at: 0, left: 1_000 }, { at: 500, left: 500 }),
      looks("b", 20, 1_500),
    );
    expect(report).toMatchObject({ verdict: "void", voidBecause: ["no lease was renewed"] });
  });

  test("is one without any event", () => {
    expect(check()).toMatchObject({ verdict: "void", tenures: [], samples: 0 });
  });

  test("is not one with a violation", () => {
    expect(check(looks("a", 10, 0, 100), looks("b", 20, 50, 150)).verdict).toBe("violated");
  });
});

describe("a guarded resource", () => {
  /** `a` holds until 500, `b` from 1,700 on; operations of both are accepted. */
  const good = [
    ...goodTakeover,
    op("a", 10, "accepted", 300, 301),
    decision("accepted", 10, 300.5, 1),
    op("b", 20, "accepted", 1_750, 1_751),
    decision("accepted", 20, 1_750.5, 2),
  ];

  test("that lets rising tokens pass is correct, and counted", () => {
    expect(check(...good)).toMatchObject({
      verdict: "clean",
      operations: { accepted: 2, refused: 0, unknown: 0 },
      decisions: { accepted: 2, refused: 0 },
    });
  });

  test("must not accept a smaller token after a greater one", () => {
    const report = check(...good, decision("accepted", 10, 1_760, 3));
    expect(rulesOf(report)).toEqual(["accepted-order"]);
    expect(report.violations[0]!.text).toBe("r accepted token 10 in decision 3 after token 20");
  });

  test("may accept the token of a lease that is over, as long as no greater one passed", () => {
    expect(check(...goodTakeover, decision("accepted", 10, 1_900, 1)).violations).toEqual([]);
  });

  test("must not refuse a token without a greater one before it", () => {
    expect(rulesOf(check(...good, decision("refused", 20, 1_760, 3)))).toContain("refusal-unexplained");
    expect(rulesOf(check(decision("refused", 1, 5, 0)))).toEqual(["refusal-unexplained"]);
  });

  test("is separate for each name", () => {
    const other = changed([decision("accepted", 5, 1_900, 0)], { resource: "s" });
    expect(check(...good, other).violations).toEqual([]);
  });

  test("may refuse a holder that was killed, as its process could write no more", () => {
    expect(check(...good, decision("refused", 10, 1_800, 3)).violations).toEqual([]);
  });

  test("must not refuse a token while it is certainly held", () => {
    const report = check(looks("b", 20, 0, 100), op("b", 20, "refused", 50, 60));
    expect(rulesOf(report)).toEqual(["refusal-unexplained"]);
    expect(report.violations[0]!.text).toContain("40 ms before its certain end");
  });

  test("must not refuse, by its own journal, a token that is certainly held", () => {
    const decisions = [decision("accepted", 20, 40, 1), decision("refused", 10, 50, 2)];
    expect(rulesOf(check(looks("a", 10, 0, 100), decisions))).toEqual(["refusal-unexplained"]);
    expect(check(looks("a", 10, 0, 30), lost("a", 10, 45), decisions).violations).toEqual([]);
  });

  test("is judged by its writers alone, too, at times without doubt", () => {
    const writers = [looks("a", 10, 0, 1), looks("b", 20, 100, 101), op("b", 20, "accepted", 100, 110)];
    expect(rulesOf(check(...writers, op("a", 10, "accepted", 110.1, 120)))).toEqual(["accepted-order"]);
    expect(check(...writers, op("a", 10, "accepted", 109, 120)).violations).toEqual([]);
    expect(check(...writers, op("a", 10, "unknown", 111, 120)).violations).toEqual([]);
    expect(check(...writers, op("b", 20, "accepted", 111, 120)).violations).toEqual([]);
  });

  test("is judged against the earliest answer to a greater token, and not against its own token's", () => {
    const three = [looks("a", 10, 0, 1), looks("b", 20, 100, 101), looks("c", 30, 200, 201)];
    const accepted = [op("c", 30, "accepted", 200, 210), op("b", 20, "accepted", 100, 110)];
    expect(rulesOf(check(...three, accepted, op("a", 10, "accepted", 150, 160)))).toEqual(["accepted-order"]);
    const twins = [looks("a", 10, 0, 1), looks("b", 10, 100, 101)];
    const both = [op("a", 10, "accepted", 2, 5), op("b", 10, "accepted", 100, 110)];
    expect(rulesOf(check(...twins, both))).toEqual(["token-repeated"]);
  });

  test("counts a release after a loss as no hand-over", () => {
    const loser = [looks("a", 10, 0, 100), looks("a", 10, { at: 200, ok: false }), release("a", 10, 300)];
    expect(check(...loser, looks("b", 20, 400))).toMatchObject({ takeovers: 1, handovers: 0 });
  });

  const holder = looks("a", 10, 0, 100);
  const refused = op("a", 10, "refused", 150, 200);

  test("must not refuse a token without evidence that its tenure is over", () => {
    expect(rulesOf(check(holder, refused))).toEqual(["refusal-unexplained"]);
    expect(rulesOf(check(holder, done("stopped", "a", 20), done("continued", "a", 50), refused))).toEqual([
      "refusal-unexplained",
    ]);
    expect(rulesOf(check(holder, done("stopped", "a", 300), refused))).toEqual(["refusal-unexplained"]);
    expect(rulesOf(check(holder, done("stopped", "b", 120), refused))).toEqual(["refusal-unexplained"]);
    expect(rulesOf(check(holder, release("a", 10, 300), refused))).toEqual(["refusal-unexplained"]);
  });

  test.each([
    ["a release before the answer", [release("a", 10, 160)]],
    ["a look that found it lost", looks("a", 10, { at: 201, ok: false })],
    ["a loss that the program was notified of", [lost("a", 10, 190)]],
    ["a pause in the request", [done("stopped", "a", 160), done("continued", "a", 170)]],
    ["a pause that has not ended", [done("stopped", "a", 160)]],
    ["a kill", [done("killed", "a", 210)]],
    ["an end that the last look showed", looks("a", 10, { at: 110, left: 50 })],
  ])("may refuse a token after %s", (_reason, entries) => {
    expect(check(holder, refused, entries).violations).toEqual([]);
  });
});

describe("faults", () => {
  const untilGone = [
    ...looks("a", 10, 0, { at: 100, left: 900 }),
    ...looks("a", 10, { at: 1_001, ok: false }),
  ];
  const next = looks("b", 20, 1_500);

  test("are counted by kind, and the longest time without a holder is measured after each", () => {
    const report = check(
      untilGone,
      next,
      fault("cut", "a", 90, 950),
      fault("cut", "b", 200, 300),
      fault("clock-step", "c", 2_000),
    );
    expect(report.faults).toEqual([
      { kind: "clock-step", count: 1, interrupted: 0, longestMs: undefined },
      // The first began at 90, but the last look that found the lease held was at 100.
      { kind: "cut", count: 2, interrupted: 1, longestMs: 1_400.01 },
    ]);
  });

  test("that ended before the last renewal had no effect", () => {
    const renewed = looks("a", 10, 0, { at: 100, left: 1_500 });
    expect(check(renewed, next, fault("cut", "a", 20, 99)).faults).toMatchObject([{ interrupted: 0 }]);
    expect(check(renewed, next, fault("cut", "a", 20, 101)).faults).toMatchObject([{ interrupted: 1 }]);
  });

  test("that began after the end had no effect, and neither did one before a release", () => {
    expect(check(untilGone, next, fault("cut", "a", 1_002, 1_400)).faults).toMatchObject([
      { interrupted: 0 },
    ]);
    const released = [...looks("a", 10, 0, 100), release("a", 10, 110)];
    expect(check(released, next, fault("cut", "a", 50, 120)).faults).toMatchObject([{ interrupted: 0 }]);
  });

  test("without a successor leave no time to measure", () => {
    expect(check(untilGone, fault("cut", "a", 50)).faults).toMatchObject([{ count: 1, interrupted: 0 }]);
  });

  test("of one holder concern that holder, those of a member all holders", () => {
    const kill = (pid: number) => check(untilGone, next, changed([done("killed", "a", 500)], { pid })).faults;
    expect(kill(1)).toMatchObject([{ kind: "killed", interrupted: 1, longestMs: 1_000.01 }]);
    expect(kill(2)).toMatchObject([{ kind: "killed", interrupted: 0 }]);
    expect(kill(77)).toMatchObject([{ kind: "killed", interrupted: 1 }]);
  });

  test("include stops, until they are continued or killed", () => {
    const stop = done("stopped", "a", 150);
    expect(check(untilGone, next, stop, done("continued", "a", 990)).faults).toEqual([
      { kind: "stopped", count: 1, interrupted: 1, longestMs: 1_350.01 },
    ]);
    expect(check(untilGone, next, stop, done("killed", "a", 990)).faults).toHaveLength(2);
  });

  test("of other processes are counted: boots, alarms, troubles", () => {
    const moment = (event: "boot" | "ready" | "alarm") => ({ event, m: ns(1), pid: 1 }) as const;
    const trouble = { event: "trouble", m: ns(1), pid: 1, code: "TIMEOUT", message: "late" } as const;
    expect(check(moment("boot"), moment("ready"), moment("alarm"), trouble)).toMatchObject({
      boots: 1,
      alarms: 1,
      troubles: 1,
    });
  });
});
