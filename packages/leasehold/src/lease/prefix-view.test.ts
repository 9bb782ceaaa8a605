import { expect, test } from "vitest";
import { PrefixView } from "./prefix-view.js";
import type { ResourceHint } from "./types.js";

const held = (resource: string): ResourceHint => ({ resource, state: "held" });
const free = (resource: string): ResourceHint => ({ resource, state: "free" });

test("a list reports everything that is held, and everything that is missing as free", () => {
  const reported: ResourceHint[] = [];
  const view = new PrefixView((hint) => reported.push(hint));
  view.list([held("a"), held("b")]);
  view.free("a");
  view.held(held("c"));
  reported.length = 0;
  view.list([held("d"), held("c")]);
  expect(reported).toEqual([free("b"), held("d"), held("c")]);
});

test("a view that is stopped during a list reports nothing more", () => {
  const reported: ResourceHint[] = [];
  const view = new PrefixView((hint) => {
    reported.push(hint);
    view.stop();
  });
  view.list([held("a"), held("b")]);
  view.free("a");
  expect(reported).toEqual([held("a")]);
  expect(view.isStopped).toBe(true);
});
