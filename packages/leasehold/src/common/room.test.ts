import fc from "fast-check";
import { expect, test } from "vitest";
import { Charge, Room } from "./room.js";

const roomOf = (max: number) => new Room(max, (client) => new Error(`full for ${client}`));

test("one client gets half and no more; the next gets half of the rest", () => {
  const room = roomOf(8);
  expect(room.tryTake("one", 9)).toBe(false);
  expect(room.tryTake("one", 4)).toBe(true);
  expect(room.tryTake("one", 1)).toBe(false);
  expect(room.tryTake("two", 2)).toBe(true);
  expect(room.tryTake("two", 1)).toBe(false);
  expect(room.used).toBe(6);
  room.release("one", 4);
  expect(room.tryTake("two", 1)).toBe(true);
});

test("a greedy client gets half, several get equal shares, and as much is left for the next", () => {
  const room = roomOf(1_200);
  const had = [0, 0, 0, 0, 0];
  for (let client = 0; client < had.length; client += 1) {
    while (room.tryTake(`${client}`, 1)) had[client]! += 1;
    // Each client occasionally releases some, and then takes as much as it can get.
    for (let round = 0; round < 2_000; round += 1) {
      const one = round % (client + 1);
      room.release(`${one}`, 1);
      had[one]! -= 1;
      while (room.tryTake(`${one}`, 1)) had[one]! += 1;
    }
    for (const each of had.slice(0, client + 1))
      expect(each).toBeGreaterThanOrEqual(1_200 / (client + 2) - 2);
    expect(room.hasRoomFor("next")).toBe(true);
  }
});

test("no client has more than was free when it took it, and nothing is given out twice", () => {
  const step = fc.record({
    client: fc.nat(4),
    amount: fc.integer({ min: 1, max: 40 }),
    isTaking: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const room = roomOf(100);
      const had = [0, 0, 0, 0, 0];
      for (const { client, amount, isTaking } of steps) {
        const own = had[client]!;
        const free = 100 - had.reduce((sum, each) => sum + each, 0);
        const given = isTaking ? -amount : Math.min(amount, own);
        const isDone = isTaking ? room.tryTake(`${client}`, amount) : given > 0;
        expect(isDone).toBe(isTaking ? own + amount <= free : own > 0);
        if (isDone && !isTaking) room.release(`${client}`, given);
        if (isDone) had[client] = own - given;
        expect(room.used).toBe(had.reduce((sum, each) => sum + each, 0));
      }
    }),
  );
});

test("a full room throws its refusal for that client, and takes nothing", () => {
  const room = roomOf(2);
  room.take("one", 1);
  expect(() => room.take("one", 1)).toThrow("full for one");
  expect(room.used).toBe(1);
  room.overdraw("one", 5);
  expect([room.used, room.hasRoomFor("one"), room.hasRoomFor("two")]).toEqual([6, false, false]);
});

test("a charge follows its use, changes nothing where it is refused, and is released once", () => {
  const room = roomOf(10);
  const charge = new Charge(room, "one");
  expect(charge.trySet(5)).toBe(true);
  expect(charge.trySet(6)).toBe(false);
  expect(room.used).toBe(5);
  expect(charge.trySet(2)).toBe(true);
  expect(charge.tryAdd(3)).toBe(true);
  charge.overdraw(4);
  expect(room.used).toBe(9);
  // The use already has more than is free now. It doesn't grow, so it isn't refused.
  expect(charge.tryAdd(0)).toBe(true);
  charge.end();
  charge.end();
  expect(room.used).toBe(0);
  expect(charge.trySet(3)).toBe(true);
  charge.overdraw(3);
  expect(room.used).toBe(0);
});

test("parts of a charge change by themselves, and are refused together", () => {
  const room = roomOf(10);
  const charge = new Charge(room, "one");
  const [head, body] = [charge.part(), charge.part()];
  head(2);
  body(3);
  expect(() => body(4)).toThrow("full for one");
  expect(room.used).toBe(5);
  head(1);
  body(4);
  body(0);
  expect(room.used).toBe(1);
  charge.end();
  body(4);
  expect(room.used).toBe(0);
});
