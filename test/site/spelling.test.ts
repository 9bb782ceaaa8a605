import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** The pages are in British English. `site/cspell.json` lists terms and names. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const generated = [":!docs/api", ":!CODE_OF_CONDUCT.md"];

/** One line for each unknown word: `file:line:column - Unknown word (…)`. */
function unknownWords(paths: readonly string[], cwd: string): readonly string[] {
  const words = ["--config", join(root, "site/cspell.json"), "--root", cwd, "--no-progress", "--no-summary"];
  const program = join(root, "site/node_modules/cspell/bin.mjs");
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, ...words, ...paths], {
    cwd,
    encoding: "utf8",
  });
  const found = stdout.split("\n").filter((line) => line !== "");
  if (status !== 0 && found.length === 0) throw new Error(stderr);
  return found;
}

test("no page has an unknown word", () => {
  const listed = execFileSync("git", ["ls-files", "*.md", ...generated], { cwd: root, encoding: "utf8" });
  const pages = listed.trim().split("\n");
  expect(pages.length).toBeGreaterThan(100);
  expect(unknownWords(pages, root)).toEqual([]);
});

test("misspelt and American words are found, but not in code", () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-spelling-"));
  writeFileSync(
    join(folder, "page.md"),
    "A lease that is recieved, its behavior, and `recieve` of a grpc call.\n",
  );
  expect(unknownWords(["page.md"], folder)).toEqual([
    expect.stringMatching(/^page\.md:1:17 .*recieved/),
    expect.stringMatching(/^page\.md:1:31 .*behavior/),
  ]);
  rmSync(folder, { recursive: true });
});
