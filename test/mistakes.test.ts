import { existsSync, readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { mistakes, mistakesIn } from "./planted/mistakes.mjs";
import { made, plant } from "./planted/plant.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = [...new Set(mistakes.flatMap(({ edits }) => edits.map(({ file }) => file)))];

test.each(files)("the code that the mistakes next to %s change occurs there once", (file) => {
  const source = readFileSync(`${root}${file}`, "utf8");
  expect(plant(source, file, mistakes)).not.toBe(source);
});

const caughtBy = mistakes.flatMap((mistake) => mistake.caughtBy?.file ?? []);

test.each([...new Set(caughtBy)])("%s, which has to catch mistakes, exists", (file) => {
  expect(existsSync(`${root}${file}`)).toBe(true);
});

/** All files that may plant mistakes: tests, and the tables of mistakes found by searches. */
const planters = ["packages", "test"]
  .flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`),
  )
  .filter((path) => !path.includes("/node_modules/"))
  .filter((path) => path.endsWith(".test.ts") || /^test\/planted\/[^/]+\.ts$/.test(path))
  .map((path) => readFileSync(`${root}${path}`, "utf8"));

test("every mistake is planted by a test or a table", () => {
  const forgotten = mistakes.filter(
    ({ name, caughtBy: test }) =>
      test === undefined && !planters.some((text) => new RegExp(`\\b${name}\\b`).test(text)),
  );
  expect(forgotten.map(({ name }) => name)).toEqual([]);
});

test("every mistake is described in a sentence", () => {
  expect(mistakes.filter(({ why }) => why.length < 20)).toEqual([]);
});

const withMistake = (source: string, lines: string) =>
  made(source, mistakesIn(`wrong: It is wrong.\n${lines}`, "a.mistakes")[0]!.edits, "wrong");

const right = `
class Door {
  #count = 0;
  open(guest: Guest, now: number): boolean {
    this.#count += 1; // one more
    if (guest.isKnown! && (now < this.closesAt)) return this.#greet(guest, now);
    return false;
  }
  close(now: number) {
    this.#count = 0;
  }
}`;

test.each<[string, string, string]>([
  ["a statement goes", "  drop this.#count += 1;", "{  } // one more"],
  ["an operand goes", "  drop guest.isKnown", "if (((now < this.closesAt))) return"],
  ["a condition is never true", "  never now < this.closesAt", "&& ((false)))"],
  ["a whole condition is always true", "  always if (guest.isKnown && $)", "if ((true)) return"],
  ["an expression is another", "  - now < this.closesAt\n  + now <= this.closesAt", "(now <= this.closesAt)"],
  [
    "statements come after one that stays",
    "    this.#count += 1;\n  + now += 1;",
    "{ this.#count += 1;\nnow += 1; }",
  ],
  [
    "placeholders stand for code",
    "  - this.#greet($who, ...)\n  + $who.isKnown",
    "return ((guest).isKnown);",
  ],
  ["a function is named", "  in Door.close\n  drop this.#count = 0;", "close(now: number) {\n    {  }"],
])("%s", (_, lines, wrong) => {
  expect(withMistake(right, lines)).toContain(wrong);
});

const other = `
class Door {
  #count = 0;
  open(visitor: Guest, time: number): boolean {
    this.#count += 1;
    if (
      // a comment
      visitor.isKnown &&
      time < this.closesAt
    ) {
      return this.#greet(
        visitor,
        time,
      );
    }
    return false;
  }
}`;

test("a mistake survives another format and other names of parameters and variables", () => {
  expect(withMistake(other, "  never now < this.closesAt")).toContain("(false)");
  expect(withMistake(other, "  - this.#greet(guest, now)\n  + { guest, now }")).toContain(
    "return ({ guest: visitor, now: time });",
  );
});

test("only names of parameters and variables may differ, and not all of them", () => {
  expect(() => withMistake(other, "  drop this.#total += 1;")).toThrow(
    "wrong in a.mistakes: this does not stand in a.ts, where nothing is called #total: this.#total += 1;",
  );
  expect(() => withMistake("function f(a: number) { return a; }", "  - b\n  + 0")).toThrow(
    "does not stand in",
  );
  expect(() => withMistake("function f(a: number, b: number) { g(b); }", "  drop g(a);")).toThrow(
    "not stand",
  );
});

test("code that occurs nowhere, or twice, is refused: the mistake would be at another place than named", () => {
  expect(() => withMistake("f(1);\nf(2);\n", "  drop f(3);")).toThrow("does not stand in a.ts: f(3);");
  expect(() => withMistake("f(1);\nf(2);\n", "  drop f($);")).toThrow(
    "stands in lines 1, 2, and not once, in a.ts",
  );
  expect(() => withMistake(right, "  in lock\n  drop return false;")).toThrow(
    "does not stand in lock of a.ts",
  );
});

test("mistakes at one place, and one inside of another, have a switch each", () => {
  const both = mistakesIn(
    [
      "a: It is wrong.\n  never x > 0",
      "b: It is wrong.\n  - x > 0\n  + x",
      "c: It is wrong.\n  - 0\n  + 1",
    ].join("\n\n"),
    "a.mistakes",
  );
  expect(plant("f(x > 0);", "a.ts", both)).toContain(
    "f((plantedMistakes.a ? (false) : plantedMistakes.b ? (x) : (x > (plantedMistakes.c ? (1) : (0)))));",
  );
});

test("a file of mistakes with any other content is refused", () => {
  expect(() => mistakesIn("wrong: It is wrong.\n  remove f();", "a.mistakes")).toThrow("remove f();");
  expect(() => mistakesIn("  drop f();", "a.mistakes")).toThrow("a.mistakes");
});

test("a mistake that doesn't exist is refused", async () => {
  const { withFaults } = await import("./planted/switches.js");
  expect(() => withFaults({ noSuchMistake: true }, () => true)).toThrow(
    'no mistake is called "noSuchMistake"',
  );
});

test("no package contains mistakes", () => {
  const packed = readdirSync(`${root}packages`).flatMap((name) => {
    const dist = `${root}packages/${name}/dist`;
    return existsSync(dist) ? readdirSync(dist, { recursive: true, encoding: "utf8" }) : [];
  });
  expect(packed.filter((path) => path.endsWith(".mistakes"))).toEqual([]);
});
