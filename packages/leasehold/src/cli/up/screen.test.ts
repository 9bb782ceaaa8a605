import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { colours, plain } from "../output/ansi.js";
import { cellsOf } from "../output/cells.js";
import { type ScreenState, clockTime, drainingBar, renderScreen } from "./screen.js";

const NOW = 100_000;

function state(more: Partial<ScreenState> = {}): ScreenState {
  return {
    nowMs: NOW,
    startedAtMs: NOW - 12_300,
    members: [
      { id: "a", address: "127.0.0.1:7400", state: "ready" },
      { id: "b", address: "127.0.0.1:7401", state: "ready" },
      { id: "c", address: "127.0.0.1:7402", state: "recovering", readyAtMs: NOW + 2_100 },
    ],
    resources: ["demo/backup", "demo/reports"],
    leases: [
      {
        resource: "demo/reports",
        holder: "worker-1",
        token: "7",
        endsAtMs: NOW + 2_000,
        sinceMs: NOW - 650,
        own: true,
        killed: false,
      },
      {
        resource: "demo/hello",
        holder: "host-9",
        token: "12",
        endsAtMs: NOW + 500,
        sinceMs: NOW - 61_000,
        own: false,
        killed: false,
      },
    ],
    waiting: ["demo/reports", "demo/backup", "demo/reports"],
    log: [{ atMs: NOW, kind: "acquired", text: "worker-1 acquired demo/reports, token 7" }],
    ttlMs: 4_000,
    workers: 4,
    kills: true,
    tryCommand: "npx leasehold run demo/hello -- sleep 5",
    ...more,
  };
}

test("the screen shows members, leases, the log and the keys to press, in this order", () => {
  const lines = renderScreen(state(), { columns: 90, rows: 18 }, plain);
  expect(lines).toEqual([
    " Leasehold · 3 members, 4 workers, 12.3 s",
    " ● member a  127.0.0.1:7400  ready",
    " ● member b  127.0.0.1:7401  ready",
    " ○ member c  127.0.0.1:7402  recovering, ready in 2.1 s",
    "",
    " RESOURCE      HOLDER              TOKEN  TIME LEFT              HELD FOR  WAITING",
    " demo/backup   free",
    " demo/hello    host-9                 12  █▌              0.5 s  1 min 1 s",
    " demo/reports  worker-1                7  ██████          2.0 s     0.7 s  2",
    "",
    ` ${clockTime(NOW)}  worker-1 acquired demo/reports, token 7`,
    "",
    "",
    "",
    "",
    "",
    " in a second terminal: npx leasehold run demo/hello -- sleep 5",
    " k kill a holder now and then: on   q quit",
  ]);
});

describe("the screen shows", () => {
  const shown = (more: Partial<ScreenState>): string =>
    renderScreen(state(more), { columns: 90, rows: 24 }, plain).join("\n");

  test("that a holder was killed", () => {
    const [lease] = state().leases;
    expect(shown({ leases: [{ ...lease!, killed: true }] })).toContain("worker-1 (killed)");
  });

  test("that there is no majority", () => {
    const [ready, , recovering] = state().members;
    expect(shown({ members: [ready!, recovering!, recovering!] })).toContain(
      "until a majority of the members is ready",
    );
    expect(shown({})).not.toContain("until a majority");
  });

  test("that it is stopping, and that kills are off", () => {
    expect(shown({ notice: "stopping…", kills: false })).toMatch(/stopping…[^]*now and then: off/);
  });

  test("names of holders without their control characters", () => {
    const [lease] = state().leases;
    expect(shown({ leases: [{ ...lease!, holder: "x\u001b[2J" }] })).not.toContain("\u001b");
  });
});

test("it is never higher or wider than the terminal, whatever its content", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 60 });
  const lease = fc.record({
    resource: text,
    holder: text,
    token: fc.bigInt({ min: 0n, max: 2n ** 64n }).map(String),
    endsAtMs: fc.integer({ min: 0, max: 2 * NOW }),
    sinceMs: fc.integer({ min: 0, max: NOW }),
    own: fc.boolean(),
    killed: fc.boolean(),
  });
  const log = fc.array(fc.record({ atMs: fc.nat(), kind: fc.constant("acquired" as const), text }), {
    maxLength: 30,
  });
  const size = fc.record({
    columns: fc.integer({ min: 1, max: 200 }),
    rows: fc.integer({ min: 1, max: 60 }),
  });
  fc.assert(
    fc.property(
      fc.array(lease, { maxLength: 12 }),
      log,
      size,
      fc.constantFrom(plain, colours),
      (leases, log, size, paint) => {
        const lines = renderScreen(state({ leases, log }), size, paint);
        expect(lines.length).toBe(size.rows);
        for (const line of lines) expect(cellsOf(line)).toBeLessThanOrEqual(size.columns);
      },
    ),
  );
});

test("a bar drains by eighths of a column", () => {
  expect([1, 0.5, 0.26, 0.01, 0, -1, 2].map((share) => drainingBar(share, 4))).toEqual([
    "████",
    "██  ",
    "█   ",
    "    ",
    "    ",
    "    ",
    "████",
  ]);
  expect(drainingBar(0.3, 4)).toBe("█▎  ");
});
