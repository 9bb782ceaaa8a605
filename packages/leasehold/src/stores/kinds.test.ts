import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { needsFront } from "../cli/common/front.js";
import { openFlease } from "../entry/flease.js";
import { schemeNames } from "./farm-address.js";

/** Other places list the kinds of stores, too, and no other test fails if a new kind is missing there. */

/** Kinds whose operations use files: such an operation may never end (`cli/common/front.ts`). */
const onFiles = ["file", "block"];
/** Kinds whose operations can be given up. */
const givenUp = ["memory", "redis", "rediss", "postgres", "postgresql", "s3"];

const pageOf = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), "utf8");
const missingIn = (path: string, schemes: readonly string[]) =>
  schemes
    .filter((scheme) => !pageOf(path).includes(`delta+${scheme}:`))
    .map((scheme) => `${path} has no address delta+${scheme}:`);

test("each kind is on the pages that list them", () => {
  const own = schemeNames.filter((scheme) => scheme !== "postgresql");
  const main = own.filter((scheme) => scheme !== "rediss");
  expect([
    ...missingIn("docs/storage.md", own),
    ...missingIn("packages/leasehold/src/index.ts", main),
  ]).toEqual([]);
});

test("each kind has a column in the table of stores", () => {
  const [, header = ""] = /^## The stores\n\n(\|.*)$/m.exec(pageOf("docs/storage.md")) ?? [];
  const without = schemeNames.filter(
    (scheme) => !["memory", "rediss", "postgresql"].includes(scheme) && !header.includes(`\`${scheme}\``),
  );
  expect(without.map((scheme) => `docs/storage.md: "The stores" has no column \`${scheme}\``)).toEqual([]);
});

test("each kind that uses files, and no other, has a process in front of its commands", () => {
  const unlisted = schemeNames.filter((scheme) => ![...onFiles, ...givenUp].includes(scheme));
  expect(unlisted.map((scheme) => `${scheme} belongs in onFiles or givenUp of this file`)).toEqual([]);
  expect(schemeNames.filter((scheme) => needsFront(["--endpoints", `delta+${scheme}:/a`]))).toEqual(onFiles);
});

test("an address without delta+ is answered with the one that is meant", async () => {
  const kinds = schemeNames.filter((scheme) => scheme !== "memory");
  const answers = await Promise.all(
    kinds.map((scheme) => openFlease([`${scheme}://h/a`]).catch((error: unknown) => String(error))),
  );
  const wrong = kinds.filter(
    (scheme, index) => !String(answers[index]).includes(`did you mean delta+${scheme}://h/a?`),
  );
  expect(wrong.map((scheme) => `meantBy of entry/flease.ts does not suggest delta+${scheme}:`)).toEqual([]);
});
