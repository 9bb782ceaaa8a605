import { describe, expect, test } from "vitest";
import { headerBy, journalOf, looks } from "../../../../../../test/support/histories.js";
import { historyLine } from "./format.js";
import { HistoryJudge, checkHistory } from "../judge.js";
import { HistoryError } from "./journal.js";

const header = historyLine(headerBy("a")).trimEnd();
const sample =
  '{"event":"sample","m1":"1","m2":"2","pid":7,"incarnation":"a.1","resource":"r","token":"10","ok":true,"remainingMs":5.5}';
const op =
  '{"event":"op","m1":"1","m2":"2","pid":7,"incarnation":"a.1","resource":"r","token":"10","result":"accepted"}';
const decision = '{"event":"accepted","m":"1","resource":"r","token":"1","order":3}';
const mark = '{"event":"fault","m":"1","phase":"begin","kind":"cut","target":"a"}';

function check(...lines: string[]) {
  return checkHistory({ "a.log": lines.map((line) => `${line}\n`).join("") });
}

function refusal(...lines: string[]): unknown {
  try {
    return check(...lines);
  } catch (error) {
    return error;
  }
}

describe("a journal", () => {
  test("may have every kind of line, and unknown fields", () => {
    const about = '"pid":7,"incarnation":"a.1","resource":"r","token":"10"';
    const report = check(
      header,
      '{"event":"boot","m":"0","pid":7,"comment":"hello"}',
      '{"event":"ready","m":"0","pid":7}',
      mark,
      mark.replace("begin", "end"),
      sample,
      op,
      op.replace("accepted", "refused"),
      op.replace("accepted", "unknown"),
      `{"event":"lost","m":"3",${about}}`,
      `{"event":"release","m":"3",${about}}`,
      '{"event":"stopped","m":"3","pid":7}',
      '{"event":"continued","m":"3","pid":7}',
      '{"event":"killed","m":"4","pid":7}',
      '{"event":"alarm","m":"5","pid":7}',
      '{"event":"trouble","m":"5","pid":7,"code":"TIMEOUT","message":"late"}',
      decision.replace('"m":"1"', '"m":"5"'),
    );
    expect(report).toMatchObject({ journals: 1, samples: 1, boots: 1, alarms: 1, troubles: 1 });
    expect(report.tenures).toMatchObject([{ token: 10n, pid: 7, incarnation: "a.1", resource: "r" }]);
  });

  test("is read in pieces of any length", () => {
    const text = journalOf(looks("a", 1, 0, 10, 20));
    for (const size of [1, 7, 100]) {
      const judge = new HistoryJudge();
      const journal = judge.journal("a.log");
      for (let from = 0; from < text.length; from += size) journal.feed(text.slice(from, from + size));
      journal.end();
      expect(judge.report()).toEqual(checkHistory({ "a.log": text }));
    }
  });

  test.each([
    ["not a line of JSON", '{"event":"sam'],
    ["not a line of JSON", ""],
    ["not an object", "7"],
    ["event is not a text", "{}"],
    ['no event is called "smaple"', sample.replace("sample", "smaple")],
    ["m1 is not a string of digits", sample.replace('"m1":"1"', '"m1":1')],
    ["m2 is before m1", sample.replace('"m1":"1"', '"m1":"3"')],
    ["ok is not true or false", sample.replace("true", '"yes"')],
    ["token is not a string of digits", sample.replace('"10"', '"-1"')],
    ["resource is not a text", sample.replace('"r"', '""')],
    ["incarnation is not a text", sample.replace('"a.1"', "1")],
    ["pid is not a whole number", sample.replace("7,", "null,")],
    ["remainingMs is not a number", sample.replace("5.5", "null")],
    ["m is not a string of digits", '{"event":"killed","pid":7}'],
    ["result is not one of accepted, refused, unknown", op.replace("accepted", "yes")],
    ["order is not a whole number", decision.replace("3", "-3")],
    ["mode is not one of shared, exclusive", sample.replace("5.5", '5.5,"mode":"read"')],
    ["mode is not one of shared, exclusive", decision.replace("3", '3,"mode":1')],
    ["pool is not a text", sample.replace("5.5", '5.5,"limit":2')],
    ["limit is not a whole number", sample.replace("5.5", '5.5,"pool":"p"')],
    ["limit is below 1", sample.replace("5.5", '5.5,"pool":"p","limit":0')],
    ["phase is not one of begin, end", mark.replace("begin", "middle")],
    ["kind is not a text", mark.replace('"cut"', "null")],
    ["code is not a text", '{"event":"trouble","m":"1","pid":7,"message":"late"}'],
    ["a second header: each process writes a journal of its own", header],
    ["out of order: its stamp 1 is before 2 of the line above", '{"event":"killed","m":"1","pid":7}'],
    ["fault cut of a ends but has not begun", mark.replace("begin", "end").replace('"1"', '"2"')],
  ])("is refused with its position: %s", (problem, line) => {
    expect(refusal(header, sample, line)).toEqual(new HistoryError("a.log", 3, problem));
  });

  test.each([
    ["fault cut of a has begun already", mark],
    ["out of order: decision 3 of r comes after decision 3", decision],
  ])("is refused for a repeated line: %s", (problem, line) => {
    expect(refusal(header, line, line)).toEqual(new HistoryError("a.log", 3, problem));
  });

  test.each([
    ['no header: the first line of a journal is {"event":"history",…}', sample],
    ["version 2 of the format; this build reads 1", header.replace('"version":1', '"version":2')],
    ["version undefined of the format; this build reads 1", '{"event":"history"}'],
    ["run is not a text", header.replace('"run":"run-1",', "")],
    ["clock is not a text", header.replace('"clock-1"', "3")],
  ])("is refused without a valid header: %s", (problem, line) => {
    expect(refusal(line, sample)).toEqual(new HistoryError("a.log", 1, problem));
  });

  test("that is truncated is refused, even if the rest can be parsed", () => {
    const whole = `${header}\n${sample}\n`;
    for (const length of [whole.length - 1, whole.length - 20, header.length + 2]) {
      expect(() => checkHistory({ "a.log": whole.slice(0, length) })).toThrow(
        "a.log:2: truncated: the last line has no newline",
      );
    }
    expect(() => checkHistory({ "a.log": "" })).toThrow("a.log:1: empty: it has no header");
  });

  test("without newlines is not collected in memory", () => {
    expect(() => checkHistory({ "a.log": `${header}\n${"x".repeat(70_000)}` })).toThrow(
      "a.log:2: longer than 65536 characters",
    );
  });
});

describe("several journals", () => {
  const withHeader = (fields: object) => historyLine({ ...headerBy("b"), ...fields }) + `${sample}\n`;
  const first = `${header}\n${sample}\n`;

  test.each([
    ["its run is run-2, while that of a.log is run-1", { run: "run-2" }],
    ["its clock is after boot, while that of a.log is clock-1", { clock: "after boot" }],
    ["its writer is a, as in a.log; each writer has one journal", { by: "a" }],
  ])("are refused when they do not belong together: %s", (problem, fields) => {
    expect(() => checkHistory({ "a.log": first, "b.log": withHeader(fields) })).toThrow(
      `b.log:1: ${problem}`,
    );
  });

  test("must not share the decisions of one resource", () => {
    const journals = {
      "a.log": `${header}\n${decision}\n`,
      "b.log": `${historyLine(headerBy("b"))}${decision.replace("3", "4")}\n`,
    };
    expect(() => checkHistory(journals)).toThrow("b.log:2: decisions of r are in a.log too");
  });

  test("with a refused or unfinished one are not judged", () => {
    const judge = new HistoryJudge();
    const journal = judge.journal("a.log");
    journal.feed(first);
    expect(() => judge.report()).toThrow("not been read to their end");
    expect(() => journal.feed("nonsense\n")).toThrow(HistoryError);
    expect(() => judge.report()).toThrow("a.log:3: not a line of JSON");
  });

  test("are refused with an error that has a code, a source and a line", () => {
    expect(refusal("{}")).toMatchObject({ code: "BAD_HISTORY", source: "a.log", line: 1 });
  });
});
