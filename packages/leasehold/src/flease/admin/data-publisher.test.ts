import { expect, test } from "vitest";
import { Cells } from "../protocol/cells.js";
import { DataPublisher } from "./data-publisher.js";

/** Three members that store what they are sent unless they are `deaf`. */
function setUp() {
  const links: (object | undefined)[] = [{}, {}, {}];
  const sent: [member: number, resource: string][] = [];
  const deaf = new Set<number>();
  let nowMs = 0;
  let underWay = 0;
  let most = 0;
  const publisher = new DataPublisher(new Cells(["a", "b", "c"], 3), {
    link: (member) => links[member],
    ask: async (member, method, params) => {
      expect(method).toBe("data");
      underWay += 1;
      most = Math.max(most, underWay);
      await Promise.resolve();
      underWay -= 1;
      sent.push([member, (params as { resource: string }).resource]);
      return !deaf.has(member);
    },
    nowMs: () => nowMs,
  });
  const settle = async () => {
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  };
  return {
    publisher,
    links,
    deaf,
    sent: async () => (await settle(), sent.splice(0)),
    pass: (ms: number) => {
      nowMs += ms;
      publisher.maintain();
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
  const { publisher, deaf, sent, pass } = setUp();
  deaf.add(1);
  publisher.publish("r", 1n, "1");
  expect(await sent()).toEqual(all);
  pass(999);
  expect(await sent()).toEqual([]);
  deaf.clear();
  pass(1);
  expect(await sent()).toEqual([[1, "r"]]);
  pass(10_000);
  expect(await sent()).toEqual([]);
});

test("data is sent again over each new connection, while the tenure lasts", async () => {
  const { publisher, links, sent, pass } = setUp();
  publisher.publish("r", 1n, "1");
  await sent();
  links[2] = undefined;
  pass(5_000);
  expect(await sent()).toEqual([]);
  links[2] = {};
  publisher.connected();
  pass(100);
  expect(await sent()).toEqual([[2, "r"]]);
  publisher.forget("r");
  links[2] = {};
  publisher.connected();
  pass(5_000);
  expect(await sent()).toEqual([]);
});

test("data of many tenures is sent with a few concurrent calls, in turn", async () => {
  const { publisher, sent, most } = setUp();
  for (let index = 0; index < 1_000; index += 1) publisher.publish(`r/${index}`, 1n, "1");
  let count = 0;
  for (let looks = 0; looks < 100 && count < 3_000; looks += 1) count += (await sent()).length;
  expect(count).toBe(3_000);
  expect(most()).toBeLessThan(40);
});
