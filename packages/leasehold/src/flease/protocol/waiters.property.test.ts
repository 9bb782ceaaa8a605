import fc from "fast-check";
import { expect, test } from "vitest";
import { notListed } from "./message.js";
import { weightOf } from "./quotas.js";
import { Waiters } from "./waiters.js";

// Whatever peers do, exactly the places of listed peers are charged, no account keeps others out, and a
// disconnected peer leaves nothing behind.

const [patienceMs, places] = [50, 400];
/** Peers by account: three connections of a greedy account, and one each of two others. */
const accounts = ["greedy", "greedy", "greedy", "other", "third"];
const ownerOf = (peer: number) => `n${peer}.1`;
const names = Array.from({ length: 300 }, (_, each) => `${each}`.padEnd(each % 3 === 0 ? 200 : 3, "x"));

const acts = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ act: fc.constant("flood" as const), peer: fc.nat({ max: 2 }) }) },
    {
      weight: 8,
      arbitrary: fc.record({
        act: fc.constantFrom("add", "remove", "taken", "lost", "next", "favour", "released", "forget"),
        peer: fc.nat({ max: accounts.length - 1 }),
        name: fc.nat({ max: 30 }),
        ms: fc.nat({ max: 40 }),
      }),
    },
  ),
  { minLength: 10, maxLength: 80 },
);

test("waiters are charged for exactly as long as they are on a list, whatever they do", () => {
  let [refused, listed] = [0, 0];
  const property = fc.property(acts, (script) => {
    const waiters = new Waiters(patienceMs, places);
    for (const [peer, account] of accounts.entries()) waiters.quotas.introduce(ownerOf(peer), account);
    let ms = 0;
    const add = (name: string, peer: number) => {
      if (waiters.add(name, peer, ownerOf(peer)) === notListed) refused += 1;
      else listed += 1;
    };
    for (const step of script) {
      if (step.act === "flood") {
        for (const name of names) add(name, step.peer);
      } else {
        const name = names[step.name]!;
        const { peer } = step;
        ms += step.ms;
        if (step.act === "add") add(name, peer);
        else if (step.act === "lost") waiters.lost(name, peer, ownerOf(peer), ms + 100);
        else if (step.act === "next") waiters.next(name, ms);
        else if (step.act === "favour") waiters.favour(name, new Set([peer]));
        else if (step.act === "released") waiters.released(name);
        else if (step.act === "forget") waiters.forget(peer);
        else waiters[step.act](name, peer);
      }
      const counted = names.map((name) => [waiters.sizeOf(name), weightOf(name.length)] as const);
      expect(waiters.size).toBe(counted.reduce((sum, [size]) => sum + size, 0));
      expect(waiters.quotas.used).toBe(counted.reduce((sum, [size, weight]) => sum + size * weight, 0));
      expect(waiters.quotas.used).toBeLessThanOrEqual(places);
    }
    // However greedy one account was, another account with no places yet is listed.
    waiters.forget(3);
    expect(waiters.add("last", 3, ownerOf(3))).toBe(0);
    for (const peer of accounts.keys()) waiters.forget(peer);
    expect([waiters.size, waiters.quotas.used]).toEqual([0, 0]);
  });
  fc.assert(property, { numRuns: 100 });
  expect(refused).toBeGreaterThan(1_000);
  expect(listed).toBeGreaterThan(1_000);
});
