import { expect, test } from "vitest";
import { Draft } from "./draft.js";
import { NamesState, rootId } from "./state.js";
import { type Content, emptyContent, type Fact, type Name } from "./types.js";

const folder = (id: number, parent: number): Fact => [
  id,
  { id, parent, name: `f${id}`, entry: { kind: "folder", modifiedMs: 0 } },
];

function fileOf(id: number, content: Content): Name {
  return {
    id,
    parent: rootId,
    name: `f${id}`,
    entry: { kind: "file", content, version: "v", modifiedMs: 0 },
  };
}

const depth = 20_000;

test("folders that were moved into one another, deeper than the stack, are removed and dropped", () => {
  const state = new NamesState();
  state.replay(Array.from({ length: depth }, (_, at) => folder(at + 1, at)));
  Array.from(state.endReplay());
  expect(state.size).toBe(depth);
  state.apply([[1, null]]);
  expect(state.size).toBe(0);
  state.replay(Array.from({ length: depth }, (_, at) => folder(at + 2, at + 1)));
  Array.from(state.endReplay());
  expect(state.size).toBe(0);
});

test("a snapshot ends also if each of its names is changed while it is written", () => {
  const state = new NamesState();
  state.apply(Array.from({ length: 10 }, (_, at) => [at + 1, fileOf(at + 1, emptyContent)]));
  const seen: number[] = [];
  for (const { id, parent } of state.all()) {
    if (parent < 0) continue;
    seen.push(id);
    expect(seen.length).toBeLessThan(100);
    state.apply([[id, fileOf(id, emptyContent)]]);
  }
  expect(seen).toHaveLength(10);
});

test("a change of one file does not look through all that are written in place", () => {
  const state = new NamesState();
  const fixed = { ...emptyContent, id: "fixed" };
  state.apply([[1, fileOf(1, fixed)]]);
  state.liveIds = () => expect.unreachable("all live contents were looked through");
  const circumstances = {
    version: () => "w",
    nowMs: 0,
    mayName: () => [],
    mayPlace: () => undefined,
    keepers: [],
  };
  const draft = new Draft(state);
  const move = {
    kind: "move",
    from: "f1",
    to: "g",
    makeFolders: false,
    over: "nothing",
    sealed: [],
  } as const;
  draft.make({ ...move, isDeep: false, ifVersion: null }, circumstances);
  draft.make({ kind: "remove", path: "g", isDeep: false, ifVersion: null, sealed: [] }, circumstances);
  expect(draft.facts).toHaveLength(2);
});

test("a replay of many names ends in steps, so that leases are renewed between them", () => {
  const state = new NamesState();
  const entry = { kind: "folder", modifiedMs: 0 } as const;
  for (let id = 1; id <= 50_000; id += 1)
    state.replay([[id, { id, parent: id % 100 === 1 ? 0 : id - 1, name: `f${id}`, entry }]]);
  // Its folder is gone, with everything below it.
  state.replay([[100_000, { id: 100_000, parent: 99_999, name: "orphan", entry }]]);
  state.replay([[100_001, { id: 100_001, parent: 100_000, name: "below", entry }]]);
  expect([...state.endReplay()].length).toBeGreaterThan(15);
  expect([state.size, state.usage.of(0).files]).toEqual([50_000, 50_000]);
});

test("a replay puts a long folder in order in steps", () => {
  const state = new NamesState();
  const count = 30_000;
  const names = Array.from({ length: count }, (_, at) => `f${(at * 7_919) % count}`);
  for (const [at, name] of names.entries())
    state.replay([[at + 1, { ...fileOf(at + 1, emptyContent), name }]]);
  expect([...state.endReplay()].length).toBeGreaterThan(12);
  expect([...state.children(0, "")].map(({ name }) => name)).toEqual(names.toSorted());
});

test("pages of contents have those of each folder once, in whatever order folders came", () => {
  const state = new NamesState();
  const folder = { kind: "folder", modifiedMs: 0 } as const;
  const nodes = ["a"];
  const ids: string[] = [];
  for (const parent of [30, 4, 100]) {
    state.replay([[parent, { id: parent, parent: 0, name: `d${parent}`, entry: folder }]]);
    for (let at = 0; at < 5; at += 1) {
      const id = parent * 1_000 + at;
      const content = { ...emptyContent, id: `c${id}` };
      ids.push(content.id);
      state.replay([[id, { ...fileOf(id, content), parent }]], [[content.id, nodes]]);
    }
  }
  state.replay([], [["unused", nodes]]);
  Array.from(state.endReplay());
  const seen: string[] = [];
  for (let after: string | undefined = ""; after !== undefined;) {
    const page = state.contents("a", after, 2, () => undefined);
    seen.push(...page.contents.map(({ id }) => id));
    after = page.next;
  }
  expect(seen).toHaveLength(ids.length);
  expect(new Set(seen)).toEqual(new Set(ids));
  expect([state.placedOn("a"), state.placementOf("unused")]).toEqual([ids.length, []]);
});
