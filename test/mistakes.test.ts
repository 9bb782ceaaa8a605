import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { mistakes } from "./planted/mistakes/table.mjs";
import { plant } from "./planted/plant.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = [...new Set(mistakes.flatMap(({ edits }) => edits.map(({ file }) => file)))];

test.each(files)("what the mistakes in %s replace stands there, once", (file) => {
  const source = readFileSync(`${root}${file}`, "utf8");
  expect(plant(source, file, mistakes)).not.toBe(source);
});

const caughtBy = mistakes.flatMap((mistake) => ("caughtBy" in mistake ? [mistake.caughtBy.file] : []));

test.each([...new Set(caughtBy)])("%s, which has to catch mistakes, is there", (file) => {
  expect(existsSync(`${root}${file}`)).toBe(true);
});

/** All that may plant mistakes: tests, and the tables of those that searches find. */
const planters = ["packages", "test"]
  .flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`),
  )
  .filter((path) => !path.includes("/node_modules/"))
  .filter((path) => path.endsWith(".test.ts") || /^test\/planted\/[^/]+\.ts$/.test(path))
  .map((path) => readFileSync(`${root}${path}`, "utf8"));

test("every mistake is planted by something: none is forgotten", () => {
  const forgotten = mistakes.filter(
    (mistake) =>
      !("caughtBy" in mistake) && !planters.some((text) => new RegExp(`\\b${mistake.name}\\b`).test(text)),
  );
  expect(forgotten.map(({ name }) => name)).toEqual([]);
});

test("a mistake has a name of its own", () => {
  const names = mistakes.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test("text that stands nowhere, or twice, is refused: the mistake would not be where it says", () => {
  const mistake = (find: string) => [
    { name: "wrong", why: "", edits: [{ file: "a.ts", find, replace: "0" }] },
  ];
  expect(() => plant("f(1);\nf(2);\n", "a.ts", mistake("3"))).toThrow("exactly once");
  expect(() => plant("f(1);\nf(2);\n", "a.ts", mistake("f"))).toThrow("exactly once");
  expect(plant("f(1);\nf(2);\n", "a.ts", mistake("1"))).toContain("f((plantedMistakes.wrong ? (0) : (1)));");
});
