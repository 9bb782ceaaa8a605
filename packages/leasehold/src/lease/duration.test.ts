import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { durationMsMax, formatDuration, parseDuration } from "./duration.js";

describe("parseDuration", () => {
  test.each([
    [0, 0],
    [1500, 1500],
    [0.25, 0.25],
    ["0s", 0],
    ["500ms", 500],
    ["15s", 15_000],
    ["1.5s", 1_500],
    ["1.001s", 1_001],
    ["1m", 60_000],
    ["2h", 7_200_000],
  ])("%s is %d ms", (input, ms) => {
    expect(parseDuration(input)).toBe(ms);
  });

  test.each([
    "",
    "15",
    "15 s",
    " 15s",
    "s",
    "1d",
    "-1s",
    "+1s",
    "1e3s",
    ".5s",
    "1.s",
    "1,5s",
    "1m30s",
    "Infinity",
    "NaN",
    "15S",
  ])("refuses %j and quotes it", (input) => {
    expect(() => parseDuration(input, "ttl")).toThrow(
      expect.objectContaining({
        code: "INVALID_DURATION",
        message: expect.stringContaining(`ttl: ${JSON.stringify(input)}`),
      }),
    );
  });

  test("accepts the longest duration and rejects any longer one, as a number or as text", () => {
    expect(parseDuration(durationMsMax)).toBe(durationMsMax);
    expect(parseDuration(`${durationMsMax}ms`)).toBe(durationMsMax);
    for (const tooLong of [durationMsMax + 1, Number.MAX_VALUE, "9007199254740992ms", `${"9".repeat(20)}s`]) {
      expect(() => parseDuration(tooLong, "wait", { infinity: true })).toThrow(
        expect.objectContaining({
          code: "INVALID_DURATION",
          message: expect.stringMatching(/longest is \d+ms/),
        }),
      );
    }
  });

  test.each([Number.NaN, -1, -Infinity, Infinity])("refuses the number %d", (input) => {
    expect(() => parseDuration(input)).toThrow(
      expect.objectContaining({ code: "INVALID_DURATION", message: expect.stringContaining(String(input)) }),
    );
  });

  test("accepts Infinity only where the caller allows it, and never as text", () => {
    expect(parseDuration(Infinity, "wait", { infinity: true })).toBe(Infinity);
    expect(() => parseDuration(`${"9".repeat(400)}s`, "wait", { infinity: true })).toThrow(
      /is not a duration/,
    );
    expect(() => parseDuration(Number.NaN, "wait", { infinity: true })).toThrow(/NaN/);
  });

  test.each([undefined, null, {}, [], true, 15n])("refuses %s from programs without types", (input) => {
    expect(() => parseDuration(input as never)).toThrow(
      expect.objectContaining({ code: "INVALID_DURATION" }),
    );
  });

  test("shortens a long rejected text in its message", () => {
    expect(() => parseDuration("x".repeat(10_000))).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^.{1,250}$/) }),
    );
  });
});

describe("formatDuration", () => {
  test.each([
    [0, "0ms"],
    [1, "1ms"],
    [0.5, "0.5ms"],
    [999, "999ms"],
    [1_000, "1s"],
    [1_500, "1.5s"],
    [15_000, "15s"],
    [60_000, "1m"],
    [90_000, "90s"],
    [7_200_000, "2h"],
    [Infinity, "forever"],
  ])("%d ms is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test("writes text that parses to the same value, for whole milliseconds", () => {
    fc.assert(
      fc.property(fc.nat(1_000_000_000), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});
