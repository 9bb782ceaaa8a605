import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
/** The pages about the protocol as one text. */
const text = readdirSync(`${root}docs/internals`)
  .filter((name) => name.startsWith("flease"))
  .map((name) => readFileSync(`${root}docs/internals/${name}`, "utf8"))
  .join("\n");
const scenarios = readdirSync(`${root}test/scenarios/flease`);
const sources = [
  "packages/leasehold/src/flease",
  "packages/leasehold/src/flease/admin",
  "packages/leasehold/src/flease/protocol",
].flatMap((folder) =>
  readdirSync(`${root}${folder}`, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ name, path: `${root}${folder}/${name}` })),
);

test("every finding has a row that names a test or scenario, and these exist", () => {
  for (let number = 1; number <= 21; number += 1) {
    const row = new RegExp(`^\\| F${number} \\|.*$`, "m").exec(text)?.[0] ?? "";
    const shown = [...row.matchAll(/`([\w-]+\.(?:test\.ts|txt))`/g)].map((match) => match[1]!);
    expect([number, shown.length > 0]).toEqual([number, true]);
    const absent = shown.filter(
      (shower) => !scenarios.includes(shower) && !sources.some(({ name }) => name === shower),
    );
    expect(absent).toEqual([]);
  }
});

test("every section that the code cites exists", () => {
  const cited = new Set<string>();
  for (const { name, path } of sources) {
    if (name.endsWith(".test.ts")) continue;
    const source = readFileSync(path, "utf8");
    for (const match of source.matchAll(/(?:section |\()(3\.\d+)/g)) cited.add(match[1]!);
  }
  expect(cited.size).toBeGreaterThan(5);
  expect([...cited].filter((section) => !text.includes(`\n## ${section} `))).toEqual([]);
});
