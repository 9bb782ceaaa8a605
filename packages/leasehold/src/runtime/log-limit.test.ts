import { expect, it } from "vitest";
import { logCausesMax, logLimitMs, LogLimit } from "./log-limit.js";

it("logs a cause once a minute, with the number of suppressed lines", () => {
  const limit = new LogLimit();
  expect(limit.line("key", "first", 1_000)).toBe("first");
  for (let again = 1; again <= 5; again += 1)
    expect(limit.line("key", "more", 1_000 + again)).toBeUndefined();
  expect(limit.line("key", "more", 1_000 + logLimitMs - 1)).toBeUndefined();
  expect(limit.line("key", "then", 1_000 + logLimitMs)).toBe(
    "then (and 6 more like it since the last such line)",
  );
  expect(limit.line("key", "later", 1_000 + 2 * logLimitMs)).toBe("later");
});

it("does not suppress one cause for another", () => {
  const limit = new LogLimit();
  limit.line("key", "a wrong key", 0);
  expect(limit.line("expired", "an old certificate", 1)).toBe("an old certificate");
});

it("remembers a bounded number of causes; those beyond it share one line a minute", () => {
  const limit = new LogLimit();
  let lines = 0;
  for (let cause = 0; cause < 10 * logCausesMax; cause += 1) {
    if (limit.line(`cause ${cause}`, "text", cause) !== undefined) lines += 1;
  }
  expect(lines).toBe(logCausesMax + 1);
  expect(limit.line("cause 0", "known ones still count on their own", logLimitMs)).toBeDefined();
});

it("forgets causes that may be logged again: a stranger cannot silence others for good", () => {
  const limit = new LogLimit();
  for (let cause = 0; cause <= logCausesMax; cause += 1) limit.line(`stranger ${cause}`, "text", 0);
  expect(limit.line("another", "text", 1)).toBeUndefined();
  for (const cause of ["one", "two", "three"]) expect(limit.line(cause, "text", logLimitMs)).toBeDefined();
});
