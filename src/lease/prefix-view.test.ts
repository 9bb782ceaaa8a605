import { expect, test } from "vitest";
import { PrefixView } from "./prefix-view.js";
import type { ResourceHint } from "./types.js";

const held = (resource: string): ResourceHint => ({ resource, state: "held" });
const free = (resource: string): ResourceHint => ({ resource, state: "free" });

test("a list tells all that is held, and that what it has no more is free", () => {
  const told: ResourceHint[] = [];
  const view = new PrefixView((hint) => told.push(hint));
  view.list([held("a"), held("b")]);
  view.free("a");
  view.held(held("c"));
  told.length = 0;
  view.list([held("d"), held("c")]);
  expect(told).toEqual([free("b"), held("d"), held("c")]);
});

test("a view that is stopped while it tells a list tells nothing more", () => {
  const told: ResourceHint[] = [];
  const view = new PrefixView((hint) => {
    told.push(hint);
    view.stop();
  });
  view.list([held("a"), held("b")]);
  view.free("a");
  expect(told).toEqual([held("a")]);
  expect(view.isStopped).toBe(true);
});
