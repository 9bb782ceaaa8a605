import { expect, test } from "vitest";
import { newMember } from "../state/members.js";
import { Guests } from "./roll.js";

const roll = { members: [newMember(1n, ["http://a:1"], false)], removed: new Set<bigint>() };
const callOf = (id: bigint, host: string, port = 1) => ({ id, peerUrls: [`http://${host}:${port}`], host });
const ids = (guests: Guests) => guests.all.map(({ id }) => id).sort((one, other) => Number(one - other));
const nobody = () => false;

/** Nine of one place have come: as many as are kept. */
function crowded(): Guests {
  const guests = new Guests();
  for (let id = 11n; id < 20n; id += 1n) guests.meet(callOf(id, "crowd"), roll, 0);
  return guests;
}

test("a guest goes when it has said nothing for ten seconds, unless there is a connection", () => {
  const guests = new Guests();
  for (const id of [2n, 3n, 4n]) guests.meet(callOf(id, `h${id}`), roll, 0);
  guests.meet(callOf(3n, "h3"), roll, 8_000);
  expect(guests.expire(10_000, nobody)).toBe(false);
  expect(guests.expire(12_000, (id) => id === 4n)).toBe(true);
  expect(ids(guests)).toEqual([3n, 4n]);
  // Its connection has ended: from then on it counts.
  expect(guests.expire(22_000, nobody)).toBe(true);
  expect(ids(guests)).toEqual([4n]);
  expect(guests.expire(22_001, nobody)).toBe(true);
  expect(ids(guests)).toEqual([]);
});

test("who claims to be many takes the places of its own, and not those of others", () => {
  const guests = crowded();
  expect(guests.meet(callOf(2n, "h2"), roll, 1)).toBe(true);
  for (let id = 20n; id < 50n; id += 1n) guests.meet(callOf(id, "crowd"), roll, 2);
  expect(guests.meet(callOf(3n, "h3"), roll, 3)).toBe(true);
  for (let id = 50n; id < 99n; id += 1n) guests.meet(callOf(id, "crowd"), roll, 2);
  expect(ids(guests).filter((id) => id < 10n)).toEqual([2n, 3n]);
  expect(guests.all).toHaveLength(9);
});

test("who was reached stays before those who were not, and gives way to one from elsewhere", () => {
  const guests = crowded();
  guests.reached(11n);
  for (let id = 20n; id < 50n; id += 1n) guests.meet(callOf(id, "crowd"), roll, 1);
  expect(guests.has(11n)).toBe(true);
  for (const { id } of guests.all) guests.reached(id);
  expect(guests.meet(callOf(50n, "crowd"), roll, 2)).toBe(false);
  expect(guests.meet(callOf(2n, "h2"), roll, 2)).toBe(true);
  expect(guests.all).toHaveLength(9);
});

test("where a guest is that was reached, nobody else says; of another the newest word counts", () => {
  const guests = new Guests();
  guests.meet(callOf(2n, "h2"), roll, 0);
  guests.meet(callOf(2n, "h2", 2), roll, 1);
  expect(guests.all[0]!.peerUrls).toEqual(["http://h2:2"]);
  guests.reached(2n);
  guests.meet(callOf(2n, "thief"), roll, 9_000);
  expect(guests.all[0]!.peerUrls).toEqual(["http://h2:2"]);
  // Words of others do not keep it there.
  expect(guests.expire(10_002, nobody)).toBe(true);
  guests.meet(callOf(2n, "h2", 3), roll, 10_003);
  expect(guests.all[0]!.peerUrls).toEqual(["http://h2:3"]);
});

test("no member is a guest, and nobody who was removed", () => {
  const guests = new Guests();
  const removed = new Set([2n]);
  expect(guests.meet(callOf(1n, "a"), roll, 0)).toBe(false);
  expect(guests.meet(callOf(2n, "h2"), { ...roll, removed }, 0)).toBe(false);
  expect(guests.meet(callOf(2n, "h2"), roll, 0)).toBe(true);
  guests.update({ ...roll, removed });
  expect(guests.all).toEqual([]);
});
