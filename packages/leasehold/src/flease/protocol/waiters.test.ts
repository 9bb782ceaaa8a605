import { describe, expect, test } from "vitest";
import { notListed } from "./message.js";
import { Waiters } from "./waiters.js";

const patienceMs = 50;
const owner = "p.1";

function listOf(resource: string, ...peers: number[]): Waiters {
  const waiters = new Waiters(patienceMs);
  for (const peer of peers) waiters.add(resource, peer, owner);
  return waiters;
}

describe("waiters", () => {
  test("each learns how many are ahead of it, and asking again changes nothing", () => {
    const waiters = new Waiters(patienceMs);
    const add = (resource: string, peer: number) => waiters.add(resource, peer, owner);
    expect([add("r", 5), add("r", 6), add("r", 7), add("r", 6), add("s", 6)]).toEqual([0, 1, 2, 1, 0]);
    waiters.remove("r", 5);
    expect([add("r", 7), add("r", 5)]).toEqual([1, 2]);
    expect(waiters.size).toBe(4);
  });

  test("the first waiter is notified once, and the next when that one has acquired the resource or passed it on", () => {
    const waiters = listOf("r", 5, 6, 7);
    expect([waiters.next("r", 0), waiters.next("r", 1)]).toEqual([5, undefined]);
    waiters.taken("r", 5);
    expect(waiters.next("r", 2)).toBe(6);
    waiters.remove("r", 6);
    expect(waiters.next("r", 3)).toBe(7);
  });

  test("a favoured waiter is notified before all others, and those after it in their order", () => {
    const waiters = listOf("r", 5, 6, 7);
    expect(waiters.favour("r", new Set([9]))).toBe(false);
    expect(waiters.favour("s", new Set([7]))).toBe(false);
    expect(waiters.favour("r", new Set([7, 9]))).toBe(true);
    expect([waiters.add("r", 7, owner), waiters.add("r", 5, owner)]).toEqual([0, 0]);
    expect([waiters.next("r", 0), waiters.standsBack("r", 8, 1)]).toEqual([7, true]);
    waiters.taken("r", 7);
    expect(waiters.next("r", 2)).toBe(5);
    waiters.taken("r", 5);
    expect([waiters.next("r", 3), waiters.size]).toEqual([6, 1]);
  });

  test("a waiter that is favoured too late is notified at once, and no other loses its place", () => {
    const waiters = listOf("r", 5, 6);
    expect(waiters.next("r", 0)).toBe(5);
    expect(waiters.favour("r", new Set([6]))).toBe(true);
    expect(waiters.next("r", 1)).toBe(6);
    expect(waiters.next("r", 1 + patienceMs)).toBe(5);
  });

  test("a favoured waiter that disconnects blocks nobody", () => {
    const waiters = listOf("r", 5, 6);
    waiters.favour("r", new Set([6]));
    waiters.forget(6);
    expect([waiters.next("r", 0), waiters.size]).toEqual([5, 1]);
  });

  test("a waiter that does not come loses its place after a while", () => {
    const waiters = listOf("r", 5, 6);
    expect(waiters.next("r", 0)).toBe(5);
    expect(waiters.next("r", patienceMs - 1)).toBeUndefined();
    expect(waiters.next("r", patienceMs)).toBe(6);
    expect(waiters.size).toBe(1);
    expect(waiters.next("r", 2 * patienceMs)).toBeUndefined();
    expect(waiters.size).toBe(0);
  });

  test("a notified waiter that loses the race keeps its place", () => {
    const waiters = listOf("r", 5, 6);
    waiters.next("r", 0);
    waiters.taken("r", 9);
    expect(waiters.next("r", 1)).toBe(5);
  });

  test("a waiter that got the resource only from this member keeps its place, and no other is notified before a release", () => {
    const waiters = listOf("r", 5, 6);
    waiters.next("r", 0);
    waiters.taken("r", 5);
    waiters.lost("r", 5, owner, 1_000);
    expect([waiters.next("r", 2), waiters.next("r", 999), waiters.size]).toEqual([undefined, undefined, 2]);
    waiters.released("r");
    expect([waiters.next("r", 3), waiters.next("r", 4)]).toEqual([5, undefined]);
  });

  test("a participant on no list that got the resource only here joins the end of the list", () => {
    const waiters = listOf("r", 5, 6);
    waiters.taken("r", 7);
    waiters.lost("r", 7, owner, 1_000);
    expect(waiters.next("r", 1_000)).toBe(5);
    waiters.taken("r", 5);
    expect(waiters.next("r", 1_001)).toBe(6);
    waiters.taken("r", 6);
    expect(waiters.next("r", 1_002)).toBe(7);
  });

  test("a waiter that has left or disconnected is not notified", () => {
    const waiters = listOf("r", 5, 6, 7);
    waiters.add("s", 6, owner);
    waiters.remove("r", 5);
    waiters.remove("r", 8);
    waiters.remove("unknown", 5);
    waiters.forget(6);
    expect([waiters.next("r", 0), waiters.next("s", 0), waiters.size]).toEqual([7, undefined, 1]);
  });
});

test("participants off the list yield to a notified waiter for its time, and no longer", () => {
  const waiters = listOf("r", 5, 6);
  const standsBack = (peer: number, mono: number) => waiters.standsBack("r", peer, mono);
  expect(standsBack(9, 0)).toBe(false);
  waiters.next("r", 0);
  expect([standsBack(9, 0), standsBack(5, 0), standsBack(6, 0)]).toEqual([true, false, false]);
  expect([standsBack(9, patienceMs - 1), standsBack(9, patienceMs)]).toEqual([true, false]);
  waiters.next("r", patienceMs);
  waiters.taken("r", 6);
  expect(standsBack(9, patienceMs)).toBe(false);
});

describe("bounds", () => {
  test("a list takes 10,000 waiters, and refuses later ones", () => {
    const waiters = new Waiters(patienceMs);
    for (let peer = 0; peer < 10_000; peer += 1) expect(waiters.add("r", peer, owner)).toBe(peer);
    expect(waiters.add("r", 10_000, owner)).toBe(notListed);
    expect(waiters.add("r", 9_999, owner)).toBe(9_999);
    waiters.remove("r", 0);
    expect(waiters.add("r", 10_000, owner)).toBe(9_999);
  });

  /** Waits for one resource after another until no place is left. Returns how many resources it waits for. */
  function fill(waiters: Waiters, peer: number, of: string, nameOf = (each: number) => `${of}/${each}`) {
    let count = 0;
    while (count < 110_000 && waiters.add(nameOf(count), peer, of) !== notListed) count += 1;
    return count;
  }

  test("one account gets 78,905 of the 100,000 places, and one more when it gives one back", () => {
    const waiters = new Waiters(patienceMs);
    waiters.quotas.introduce("a.1", "a");
    expect([fill(waiters, 1, "a.1"), waiters.size]).toEqual([78_905, 78_905]);
    waiters.remove("a.1/7", 1);
    expect(waiters.add("one more", 1, "a.1")).toBe(0);
    expect(waiters.add("and another", 1, "a.1")).toBe(notListed);
  });

  test("connections of one account share its quota, and leave the others theirs", () => {
    const waiters = new Waiters(patienceMs, 10_000);
    const greedy = ["a.1", "b.1", "c.1", "d.1", "e.1"];
    for (const each of greedy) waiters.quotas.introduce(each, "address 10.0.0.1");
    waiters.quotas.introduce("z.1", "address 10.0.0.2");
    for (const [peer, each] of greedy.entries()) fill(waiters, peer, each);
    expect(waiters.size).toBeLessThan(8_100);
    expect(fill(waiters, 9, "z.1")).toBeGreaterThan(800);
  });

  test("when many accounts have used their quotas, each of a hundred others still gets a place", () => {
    const waiters = new Waiters(patienceMs, 10_000);
    for (let each = 0; each < 50; each += 1) {
      waiters.quotas.introduce(`g${each}.1`, `g${each}`);
      fill(waiters, each, `g${each}.1`);
    }
    expect(waiters.size).toBeGreaterThan(8_900);
    for (let each = 50; each < 150; each += 1) {
      waiters.quotas.introduce(`l${each}.1`, `l${each}`);
      expect(fill(waiters, each, `l${each}.1`)).toBeGreaterThanOrEqual(1);
    }
    expect(waiters.quotas.used).toBeLessThanOrEqual(10_000);
  });

  test.each([
    ["of 40 bytes", "x".repeat(32), 1],
    ["of 41 bytes", "x".repeat(33), 2],
    ["of 512 bytes", "x".repeat(504), 5],
    ["in letters of two bytes", "ä".repeat(17), 2],
  ])("a waiter for a resource with a name %s takes its bytes in places", (_what, name, places) => {
    const waiters = new Waiters(patienceMs, 1_000);
    const nameOf = (each: number) => `${name}${`${each}`.padStart(8, "0")}`;
    expect(waiters.add(nameOf(0), 1, owner)).toBe(0);
    expect(waiters.quotas.used).toBe(places);
    const count = 1 + fill(waiters, 1, owner, (each) => nameOf(each + 1));
    expect(Math.abs(count * places - 790)).toBeLessThan(10);
    waiters.forget(1);
    expect([waiters.size, waiters.quotas.used]).toEqual([0, 0]);
  });

  test("places are returned whether a waiter is served, leaves, is dropped or goes with all others", () => {
    const waiters = new Waiters(patienceMs);
    for (const peer of [1, 2, 3, 4, 5, 6]) waiters.add("r", peer, owner);
    waiters.taken("r", 1);
    waiters.remove("r", 2);
    waiters.forget(3);
    waiters.next("r", 0);
    waiters.next("r", patienceMs);
    expect([waiters.size, waiters.quotas.used]).toEqual([2, 2]);
    waiters.clear();
    expect([waiters.size, waiters.quotas.used, waiters.sizeOf("r")]).toEqual([0, 0, 0]);
  });

  test("a sweep visits every resource, some at a time", () => {
    const waiters = new Waiters(patienceMs);
    for (let resource = 0; resource < 10; resource += 1) waiters.add(`r${resource}`, 1, owner);
    const seen = new Set<string>();
    for (let call = 0; call < 4; call += 1) for (const resource of waiters.sweep(3)) seen.add(resource);
    expect(seen.size).toBe(10);
    expect([...waiters.sweep(3)]).toHaveLength(3);
  });
});
