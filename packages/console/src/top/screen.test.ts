import { expect, test } from "vitest";
import { type Paint, cellsOf, paintFor, unpainted } from "leasehold/cli";
import type { GroundView } from "../record/messages.js";
import { LeaseRecord } from "../record/record.js";
import { holderRows, leaseRows } from "./lists.js";
import { Rates } from "./rates.js";
import { type Size, type TopScene, pageOf, sparkline, topLines, wrap } from "./screen.js";
import { type TopState, firstState, press } from "./state.js";

const plain: Paint = paintFor(false, {});
const colours: Paint = paintFor(true, {});
const nowMs = 1_700_000_000_000;

function recordOf(count: number): LeaseRecord {
  const record = new LeaseRecord();
  const hint = (at: number) => ({
    resource: `jobs/${String(at).padStart(6, "0")}`,
    state: "held" as const,
    holder: `worker-${at % 7}.0123456789abcdef`,
    token: BigInt(at + 1),
    remainingMs: 1_000 + ((at * 37) % 9_000),
    label: `host-${at % 7}`,
  });
  record.begin(
    Array.from({ length: count }, (_, at) => hint(at)),
    nowMs,
  );
  return record;
}

const ground: GroundView = {
  kind: "members",
  isAble: true,
  summary: "2 of 3 members ready",
  maxClockSkewMs: 500,
  parts: [
    {
      id: "a",
      address: "10.0.0.1:7400",
      state: "ready",
      text: "ready",
      facts: [["waiters", "3"]],
      peers: [
        { id: "b", isConnected: true, skewMs: 0.4, skewErrorMs: 0.2, roundTripMs: 0.3 },
        { id: "c", isConnected: false },
      ],
    },
    { id: "c", address: "10.0.0.3:7400", state: "silent", text: "no answer: refused", facts: [] },
  ],
};

function sceneOf(record: LeaseRecord, state: TopState, changes: Partial<TopScene> = {}): TopScene {
  const leases = leaseRows(record, state);
  return {
    nowMs: nowMs + 500,
    endpoints: "flease://10.0.0.1:7400",
    ground,
    trouble: undefined,
    total: record.size,
    leases,
    latest: (name) => record.get(name),
    holders: holderRows(leases, state),
    events: record.eventsAfter(0),
    rates: [0, 1, 4, 2],
    detail: undefined,
    ...changes,
  };
}

const after = (keys: readonly string[], rows: readonly string[] = [], page = 10): TopState =>
  keys.reduce((state, key) => press(state, key, { rows, page }), firstState);

const small: Size = { columns: 80, rows: 24 };

test.each([
  [80, 24],
  [200, 60],
  [140, 50],
  [20, 5],
  [1, 1],
])("a screen of %i columns and %i rows is filled, and no line is wider", (columns, rows) => {
  const record = recordOf(300);
  for (const key of ["1", "2", "3", "4", "?"])
    for (const keys of [[key], [key, "return"], [key, "/", "x"]])
      for (const paint of [plain, colours]) {
        const state = after(keys, record.names());
        const lines = topLines(sceneOf(record, state), state, { columns, rows }, paint);
        expect(lines).toHaveLength(rows);
        for (const line of lines) expect(cellsOf(line)).toBeLessThan(Math.max(2, columns));
      }
});

test("a row shows a lease's holder, token, the time that is left, and how long it has been held", () => {
  const record = recordOf(3);
  const lines = topLines(sceneOf(record, firstState), firstState, small, plain);
  expect(lines[0]).toContain("flease://10.0.0.1:7400");
  expect(lines[1]).toBe("2 of 3 members ready");
  expect(lines[2]).toContain("3 leases, 1.8 changes a second");
  expect(lines[4]).toMatch(/LEASE ▼ +HOLDER +TOKEN +TIME LEFT +HELD FOR/);
  expect(lines[5]).toMatch(/jobs\/000000 +worker-0\.012345… +1 +█.* 0\.5 s +> 0\.5 s/);
  expect(lines.at(-1)).toContain("q quit");
});

test("the cursor moves over the visible rows, and stays with its lease when others come", () => {
  const record = recordOf(100);
  const names = record.names();
  const page = pageOf(small, firstState);
  const chosen = (...keys: string[]) => after(keys, names, page).chosen;
  expect([chosen("down"), chosen("end"), chosen("end", "pageup"), chosen("down", "home")]).toEqual([
    names[1],
    names[99],
    names[99 - page],
    names[0],
  ]);
  const state = after(["end"], names, page);
  const shown = () => topLines(sceneOf(record, state), state, small, colours).slice(4);
  const inverse = String.fromCodePoint(27) + "[7m ";
  // The last page is as full as the others.
  expect(shown().filter((line) => /jobs\/.* s\b.* s\b/.test(unpainted(line)))).toHaveLength(page);
  expect(shown().find((line) => line.startsWith(inverse))).toContain("jobs/000099");
  record.change({ resource: "jobs/0000zz", state: "held", holder: "x", token: 5n } as never, nowMs);
  expect(shown().find((line) => line.startsWith(inverse))).toContain("jobs/000099");
  record.change({ resource: "jobs/000099", state: "free" } as never, nowMs);
  expect(shown().find((line) => line.startsWith(inverse))).toBeUndefined();
});

test("typed text filters names, holders and labels; Esc clears it", () => {
  const record = recordOf(20);
  const count = (...keys: string[]) => leaseRows(record, after(keys)).length;
  expect([
    count("/", ..."HOST-3"),
    count("/", ..."host-3"),
    count("/", ..."worker-3"),
    count("/", ..."s/00001"),
  ]).toEqual([0, 3, 3, 10]);
  // A letter that is a key elsewhere, and a letter that is deleted.
  expect(after(["/", "q", "s", "backspace", "return", "s"])).toMatchObject({
    filter: "q",
    isTyping: false,
    order: "holder",
  });
  expect(after(["/", "q", "escape"])).toMatchObject({ filter: "", isTyping: false });
  expect(after(["/", ..."a".repeat(300)]).filter).toHaveLength(256);
});

test("leases are sorted by each column, in either direction", () => {
  const record = recordOf(9);
  const first = (...keys: string[]) => leaseRows(record, after(keys))[0]?.name.slice(-1);
  expect([first(), first("r"), first("s", "r"), first("s", "s"), first("s", "s", "r")]).toEqual([
    "0",
    "8",
    "6",
    "0",
    "8",
  ]);
});

test("Enter leads from a holder to its leases, and from a lease to its details", () => {
  const record = recordOf(20);
  const holders = holderRows(leaseRows(record, firstState), firstState).map(({ holder }) => holder);
  const state = press(after(["2"]), "return", { rows: holders, page: 10 });
  expect(state).toMatchObject({ view: "leases", filter: holders[0] });
  const open = press(state, "return", { rows: leaseRows(record, state).map(({ name }) => name), page: 10 });
  expect([open.isOpen, open.chosen]).toEqual([true, "jobs/000000"]);
  expect(press(open, "escape", { rows: [], page: 10 })).toMatchObject({ isOpen: false, filter: holders[0] });
});

test("outdated data, a ground without a majority and a member that is cut off are shown", () => {
  const record = recordOf(1);
  const lines = (changes: Partial<TopScene>, ...keys: string[]) =>
    topLines(sceneOf(record, after(keys), changes), after(keys), small, plain);
  expect(lines({ trouble: "NO_QUORUM" })[1]).toBe("what is shown may be old: NO_QUORUM");
  expect(lines({ ground: { ...ground, isAble: false } })[1]).toContain("no lease can be had now");
  expect(lines({}, "3").join("\n")).toMatch(
    /● a .*ready\n +waiters 3\n +b: clock \+0\.4 ms.*\n +c is cut off/,
  );
});

test("names cannot contain sequences that move the cursor or change colours", () => {
  const record = new LeaseRecord();
  const evil = `a${String.fromCodePoint(27)}[2Jb`;
  record.begin(
    [{ resource: evil, state: "held", holder: evil, token: 1n, remainingMs: 9, label: evil }],
    nowMs,
  );
  record.note("trouble", evil, nowMs);
  const detail = { name: evil, lease: undefined, tenures: record.tenures(evil), failure: evil };
  for (const keys of [["1"], ["2"], ["4"], ["1", "return"], ["/", ...evil]]) {
    const state = after(keys, [evil]);
    const scene = sceneOf(record, state, { endpoints: evil, trouble: evil, detail });
    const text = topLines(scene, state, { columns: 150, rows: 40 }, plain).join("");
    expect([...text].filter((each) => each < " ")).toEqual([]);
  }
});

test("the changes of each second have a height, and seconds pass", () => {
  const rates = new Rates(4, nowMs);
  rates.add(4, nowMs);
  rates.add(2, nowMs + 1_000);
  rates.add(1, nowMs + 2_000);
  expect(rates.perSecond(nowMs + 2_000)).toEqual([0, 4, 2]);
  expect(rates.perSecond(nowMs + 3_000)).toEqual([4, 2, 1]);
  expect(rates.perSecond(nowMs + 1e9)).toEqual([0, 0, 0]);
  expect(sparkline([0, 1, 4, 8])).toBe(" ▁▄█");
});

test("long lines are wrapped between words, and the rest is indented like the beginning", () => {
  expect(wrap("  one two three", 9)).toEqual(["  one two", "  three"]);
  expect(wrap("  abcdefghijkl", 9)).toEqual(["  abcdef…"]);
  expect(wrap(colours("red", "short"), 9).map(unpainted)).toEqual(["short"]);
});

test("of 100,000 leases, the rows around the cursor are shown", () => {
  const record = recordOf(100_000);
  const state = after(["s", "s"]);
  const lines = topLines(sceneOf(record, state), state, { columns: 110, rows: 24 }, plain);
  expect(lines[4]).toContain("1 to 12 of 100000");
});
