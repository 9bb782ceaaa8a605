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
  state.endReplay();
  expect(state.size).toBe(depth);
  state.apply([[1, null]]);
  expect(state.size).toBe(0);
  state.replay(Array.from({ length: depth }, (_, at) => folder(at + 2, at + 1)));
  state.endReplay();
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
