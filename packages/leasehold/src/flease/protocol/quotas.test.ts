import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  benchSettings,
  readOf,
  readyAcceptor,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { Quotas, weightOf } from "./quotas.js";

/** Acquires resources in rotation until no account is given any more. Returns how many each has. */
function takeTurns(quotas: Quotas, owners: readonly string[]): number[] {
  for (let goes = true; goes;) {
    goes = false;
    for (const owner of owners) {
      const payer = quotas.payerOf(owner);
      if (!quotas.allows(payer, 1)) continue;
      quotas.charge(payer, 1);
      goes = true;
    }
  }
  return owners.map((owner) => quotas.payerOf(owner).used);
}

function quotasOf(...owners: readonly (readonly [owner: string, account: string])[]): Quotas {
  const quotas = new Quotas(100_000);
  for (const [owner, account] of owners) quotas.introduce(owner, account);
  return quotas;
}

test("a single account gets nearly all, several that want more get equal parts", () => {
  const owners = ["a.1", "b.1", "c.1"];
  const inAccounts = owners.map((owner) => [owner, owner] as const);
  for (const [count, part] of [
    [1, 0.78],
    [2, 0.42],
    [3, 0.28],
  ] as const) {
    const some = owners.slice(0, count);
    const parts = takeTurns(quotasOf(...inAccounts.slice(0, count)), some);
    for (const each of parts) expect(each / 100_000).toBeGreaterThan(part);
    expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
    const together = takeTurns(quotasOf(...some.map((owner) => [owner, "same"] as const)), some);
    expect(Math.max(...together) - Math.min(...together)).toBeLessThanOrEqual(1);
  }
});

test("a client that arrives after another has used its quota still gets a part; more names do not enlarge an account's part", () => {
  const quotas = quotasOf(["greedy.1", "g"], ["late.1", "l"]);
  takeTurns(quotas, ["greedy.1"]);
  expect(takeTurns(quotas, ["late.1"])[0]).toBeGreaterThan(5_000);
  const many = Array.from({ length: 2_000 }, (_, index) => `name${index}.1`);
  const crowd = quotasOf(...many.map((owner) => [owner, "g"] as const), ["late.1", "l"]);
  const taken = takeTurns(crowd, many);
  expect(taken.reduce((sum, each) => sum + each)).toBeLessThan(91_000);
  expect(takeTurns(crowd, ["late.1"])[0]).toBeGreaterThanOrEqual(10);
});

test("a hundred small accounts get their guaranteed minimum when others have all the rest", () => {
  const greedy = Array.from({ length: 50 }, (_, index) => `greedy${index}.1`);
  const little = Array.from({ length: 50 }, (_, index) => `little${index}.1`);
  const quotas = quotasOf(...[...greedy, ...little].map((owner) => [owner, owner] as const));
  for (const owner of greedy) takeTurns(quotas, [owner]);
  for (const owner of little) expect(takeTurns(quotas, [owner])[0]).toBeGreaterThanOrEqual(10);
});

test("returned quota is available again, an incarnation is not a new name, and no payer is kept without need", () => {
  const quotas = quotasOf(["a.1", "x"]);
  const [first] = takeTurns(quotas, ["a.1"]);
  quotas.gone("a.1", "x");
  quotas.introduce("a.2", "x");
  expect(quotas.payerOf("a.2").used).toBe(first);
  expect(quotas.allows(quotas.payerOf("a.2"), 1)).toBe(false);
  expect(quotas.greatest()).toBe("a");
  quotas.charge(quotas.payerOf("a.2"), -first!);
  expect([quotas.used, quotas.greatest()]).toEqual([0, "a"]);
  const payer = quotas.payerOf("a.2");
  quotas.everybodyGone();
  quotas.introduce("a.2", "x");
  expect(quotas.payerOf("a.2")).not.toBe(payer);
});

test("a key that is a client and an observer stays with its account when either of them leaves", () => {
  const quotas = quotasOf(["a.1", "x"], ["a.1", "x"]);
  const payer = quotas.payerOf("a.1");
  quotas.charge(payer, 3);
  quotas.gone("a.1", "x");
  expect(quotas.payerOf("a.1")).toBe(payer);
  quotas.gone("a.1", "x");
  expect(quotas.payerOf("a.1").account).not.toBe(payer.account);
});

test("for a key that connects from two addresses, the account still connected pays", () => {
  const quotas = quotasOf(["a.1", "x"], ["a.1", "y"]);
  expect(quotas.payerOf("a.1").account.key).toBe("x");
  quotas.gone("a.1", "z");
  quotas.gone("a.1", "x");
  expect(quotas.payerOf("a.1").account.key).toBe("y");
  quotas.introduce("a.1", "x");
  quotas.everybodyGone();
  expect(quotas.payerOf("a.1").account.key).toBe("");
});

test.each([
  [1, 1],
  [40, 1],
  [41, 2],
  [340, 3],
  [512, 5],
])("a name of %i bytes counts for %i", (length, weight) => {
  expect(weightOf(length)).toBe(weight);
});

test("a full acceptor names the largest payer, renews and releases existing leases, and takes nothing new beyond the minimum", () => {
  const acceptor = readyAcceptor({ ...benchSettings(), resourcesMax: 1_000 });
  const take = (owner: string, resource: string) =>
    ask(acceptor, { ...acquireOf(owner, 0, 500), resource }, at(0))!;
  let taken = 0;
  while (wordOf(take("greedy.1", `${taken}`)) === "ack") taken += 1;
  expect(taken).toBeGreaterThan(750);
  const refusal = take("greedy.1", "one more");
  expect([wordOf(refusal), refusal.fullBy]).toEqual(["full", "greedy"]);
  expect(wordOf(ask(acceptor, { ...readOf("greedy.1", 1), resource: "one more" }, at(1)))).toBe("full");
  expect(wordOf(ask(acceptor, { ...writeOf("greedy.1", 0, 1, 600), resource: "7" }, at(2)))).toBe("ack");
  expect(wordOf(take("other.1", "first"))).toBe("ack");
});

test("a free resource that another participant used is charged to its new holder, if that has quota left", () => {
  const acceptor = readyAcceptor({ ...benchSettings(), resourcesMax: 100 });
  ask(acceptor, { ...acquireOf("a.1", 0, 300, 300), resource: "shared" }, at(0));
  expect(acceptor.quotas!.payerOfKept(acceptor.entry("shared")!)!.name).toBe("a");
  for (let index = 0; index < 100; index += 1)
    ask(acceptor, { ...acquireOf("b.1", 0, 900, 900), resource: `b/${index}` }, at(0));
  expect(wordOf(ask(acceptor, { ...acquireOf("b.1", 400, 900), resource: "shared" }, at(400)))).toBe("full");
  expect(wordOf(ask(acceptor, { ...acquireOf("c.1", 401, 900), resource: "shared" }, at(401)))).toBe("ack");
  expect(acceptor.quotas!.payerOfKept(acceptor.entry("shared")!)!.name).toBe("c");
});
