import { expect, test } from "vitest";
import type { Action, Sequence } from "./action.js";
import { shrunk } from "./shrink.js";

const put = (number: number): Action => ({
  service: "KV",
  method: "Put",
  request: { number, key: "a2V5", nested: { list: [1, 2, 3], other: true } },
});

test("what is left of a sequence are the actions and the parts of requests without which it would not fail", async () => {
  const sequence: Sequence = { withRights: false, actions: Array.from({ length: 40 }, (_, at) => put(at)) };
  const fails = async ({ actions }: Sequence) => {
    const numbers = actions.map(({ request }) => request["number"]);
    const last = actions.find(({ request }) => request["number"] === 31)?.request;
    const list = (last?.["nested"] as { list?: number[] } | undefined)?.list;
    return numbers.includes(7) && numbers.indexOf(31) > numbers.indexOf(7) && list?.includes(2) === true;
  };
  const { actions } = await shrunk(sequence, fails);
  expect(actions.map(({ request }) => request)).toEqual([
    { number: 7 },
    { number: 31, nested: { list: [2] } },
  ]);
});

test("a sequence that fails whatever is left out ends as nothing, one that fails as a whole only stays", async () => {
  const sequence: Sequence = { withRights: false, actions: [put(1), put(2), put(3)] };
  expect((await shrunk(sequence, async () => true)).actions).toEqual([]);
  expect(await shrunk(sequence, async () => false)).toEqual(sequence);
});
