import { expect, it } from "vitest";
import { Exclusion } from "./exclusion.js";
import { Tokens } from "./tokens.js";

interface Hold {
  readonly name: string;
  readonly held?: boolean;
  readonly shared?: boolean;
}

function foundIn(holds: readonly Hold[]): string[] {
  const found: string[] = [];
  const rules = {
    isHeld: ({ held = true }: Hold) => held,
    nameOf: ({ name }: Hold) => name,
    isShared: ({ shared = false }: Hold) => shared,
  };
  new Exclusion(rules, (text) => void found.push(text)).look("r", holds);
  return found;
}

it("two holders of one resource are reported, also after a third whose hold has run out", () => {
  expect(foundIn([{ name: "a" }])).toEqual([]);
  expect(foundIn([{ name: "a" }, { name: "b", held: false }])).toEqual([]);
  expect(foundIn([{ name: "a", held: false }, { name: "b" }, { name: "c" }])).toEqual([
    "b and c both hold r",
  ]);
});

it("readers exclude writers only", () => {
  const readers = [
    { name: "a", shared: true },
    { name: "b", shared: true },
  ];
  expect(foundIn(readers)).toEqual([]);
  expect(foundIn([...readers, { name: "c" }])).toEqual(["a and c both hold r"]);
  expect(foundIn([{ name: "c" }, ...readers])).toEqual(["c and a both hold r"]);
});

it("a token that is given out twice, or after a greater one, is reported", () => {
  const found: string[] = [];
  const tokens = new Tokens<bigint>({ twice: () => found.push("twice"), falls: () => found.push("falls") });
  const given = (token: bigint, more = {}) => {
    tokens.given({ resource: "r", token, who: "a", ...more });
    return found.splice(0);
  };
  expect(given(5n)).toEqual([]);
  expect(given(5n)).toEqual(["twice", "falls"]);
  expect(given(4n)).toEqual(["falls"]);
  expect(given(3n, { ordered: false })).toEqual([]);
  expect([given(7n, { shared: true }), given(7n, { shared: true })]).toEqual([[], []]);
  expect(given(7n, { ordered: false })).toEqual(["twice"]);
  expect(given(1n, { resource: "another" })).toEqual([]);
});
