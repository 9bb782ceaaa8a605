import { expect, test } from "vitest";
import { eventLog } from "../runtime/log-events.js";
import { silent } from "../runtime/logger.js";
import { lineLogger, type LoggerOptions } from "./line-logger.js";

function written(options: LoggerOptions = {}) {
  const lines: string[] = [];
  const logger = lineLogger({ write: (line) => lines.push(line), nowMs: () => 1_000, ...options });
  return { lines, logger, events: eventLog(logger) };
}

test("a JSON line has level, time, event and message, and then the event's fields", () => {
  const { lines, events } = written();
  events.log("member-lost", "lost member c: silence", { member: "c", address: "h:1", reason: "silence" });
  expect(lines).toEqual([
    '{"level":"warn","ts":"1970-01-01T00:00:01.000Z","event":"member-lost","msg":"lost member c: silence","member":"c","address":"h:1","reason":"silence"}',
  ]);
});

test("a text line is one line, whatever the message has", () => {
  const { lines, events } = written({ format: "text" });
  events.log("clock-fault", "a\nb\u001b[2Jc\u2028d", { reason: "" });
  expect(lines).toEqual(["1970-01-01T00:00:01.000Z error clock-fault: a b [2Jc d"]);
});

test("lines below the level are left out, except for those of the audit trail", () => {
  const { lines, events, logger } = written({ level: "error" });
  events.log("member-ready", "a is ready", { member: "a" });
  const who = { by: "member b", name: "b.1", address: "h:1" };
  events.log("lease-broken", "broken", { resource: "x", holder: "c.1", ...who });
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { event: "lease-broken", audit: true, by: "member b" },
  ]);
  logger.level = "info";
  events.log("member-ready", "a is ready", { member: "a" });
  expect(lines).toHaveLength(2);
});

test("an unknown format or level is refused", () => {
  expect(() => lineLogger({ level: "loud" as "info" })).toThrow(/"loud": debug, info, warn, error/);
  expect(() => lineLogger({ format: "xml" as "json" })).toThrow(/"xml": json, text/);
});

test("what others trigger is logged once for each cause, and a logger without `debug` is enough", () => {
  const { lines, events } = written({ format: "text" });
  for (let again = 0; again < 3; again += 1)
    events.limited("connection-repelled", "key", "no", { address: `h:${again}`, cause: "key" });
  events.limited("connection-repelled", "tls", "no", { address: "h:1", cause: "tls" });
  events.limited("credential-refused", "key", "no", { address: "h:1", cause: "key" });
  expect(lines).toHaveLength(3);
  expect(() => eventLog(silent).log("member-ready", "", { member: "a" })).not.toThrow();
});
