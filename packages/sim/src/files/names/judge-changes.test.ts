import { expect, test } from "vitest";
import type { FileChange, FileStat } from "@leasehold/files/inner/types.js";
import { judgeChanges } from "./judge-changes.js";

type Told = Omit<FileChange, "cursor">;

/** The verdict on a follower that received these changes, when these files exist at the end. */
function verdict(told: readonly Told[], files: Readonly<Record<string, string>>): string | undefined {
  const changes = told.map((change, at) => ({ ...change, cursor: `a-${at + 1}` }));
  const stats = Object.entries(files).map(([path, version]) => ({ path, version }) as FileStat);
  return judgeChanges([[changes]], [], [renamed("d/y", "y"), renamed("d/e", "e")], stats);
}

const renamed = (from: string, to: string) => ({ kind: "rename", from, to }) as const;
const copied: Told = { what: "created", kind: "folder", path: "d" };
const moved = (kind: "file" | "folder", name: string): Told => ({
  what: "renamed",
  kind,
  path: name,
  from: `d/${name}`,
  ...(kind === "file" && { version: "1" }),
});

test("a file that comes out of a folder, which came with its contents, is told by its renaming", () => {
  expect(verdict([copied, moved("file", "y")], { y: "1", "d/x": "2" })).toBeUndefined();
  expect(verdict([copied, moved("file", "y")], { y: "2" })).toContain("has version 2 in the end");
  expect(verdict([copied, moved("file", "y")], { "d/x": "2" })).toContain("y is not there in the end");
  expect(verdict([copied, moved("folder", "e")], { "e/f": "1" })).toBeUndefined();
});

test("a file that no change has brought is not told", () => {
  expect(verdict([copied], { "d/x": "1", y: "1" })).toBe("y is there in the end, and was not told");
});
