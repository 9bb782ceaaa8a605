import { expect, test } from "vitest";
import { Cells } from "../protocol/cells.js";
import { DataTeller } from "./data-teller.js";

/** Three members, which keep what they are told unless they are `deaf`. */
function setUp() {
  const links: (object | undefined)[] = [{}, {}, {}];
  const told: [member: number, resource: string][] = [];
  const deaf = new Set<number>();
  let nowMs = 0;
  let underWay = 0;
  let most = 0;
  const teller = new DataTeller(new Cells(["a", "b", "c"], 3), {
    link: (member) => links[member],
    ask: async (member, method, params) => {
      expect(method).toBe("data");
      underWay += 1;
      most = Math.max(most, underWay);
      await Promise.resolve();
      underWay -= 1;
      told.push([member, (params as { resource: string }).resource]);
      return !deaf.has(member);
    },
    nowMs: () => nowMs,
  });
  const settle = async () => {
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  };
  return {
    teller,
    links,
    deaf,
    told: async () => (await settle(), told.splice(0)),
    pass: (ms: number) => {
      nowMs += ms;
      teller.maintain();
    },
    most: () => most,
  };
}

const all = [
  [0, "r"],
  [1, "r"],
  [2, "r"],
];

test("data is sent to each member once, and again a second later to one that has not stored it", async () => {
  const { teller, deaf, told, pass } = setUp();
  deaf.add(1);
  teller.tell("r", 1n, "1");
  expect(await told()).toEqual(all);
  pass(999);
  expect(await told()).toEqual([]);
  deaf.clear();
  pass(1);
  expect(await told()).toEqual([[1, "r"]]);
  pass(10_000);
  expect(await told()).toEqual([]);
});

test("data is sent again over each new connection, while the tenure lasts", async () => {
  const { teller, links, told, pass } = setUp();
  teller.tell("r", 1n, "1");
  await told();
  links[2] = undefined;
  pass(5_000);
  expect(await told()).toEqual([]);
  links[2] = {};
  teller.connected();
  pass(100);
  expect(await told()).toEqual([[2, "r"]]);
  teller.forget("r");
  links[2] = {};
  teller.connected();
  pass(5_000);
  expect(await told()).toEqual([]);
});

test("data of many tenures is sent with a few concurrent calls, in turn", async () => {
  const { teller, told, most } = setUp();
  for (let index = 0; index < 1_000; index += 1) teller.tell(`r/${index}`, 1n, "1");
  let count = 0;
  for (let looks = 0; looks < 100 && count < 3_000; looks += 1) count += (await told()).length;
  expect(count).toBe(3_000);
  expect(most()).toBeLessThan(40);
});
