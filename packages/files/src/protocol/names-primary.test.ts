import { expect, test } from "vitest";
import { FilesCluster, joinedDisk, names } from "../../../../test/support/files-cluster.js";
import { type Change, emptyContent } from "../names/types.js";

const unconditional = { sealed: [], ifVersion: null } as const;

const putAt = (path: string): Change => ({
  kind: "put",
  path,
  content: emptyContent,
  makeFolders: true,
  ifMissing: false,
  ifContent: null,
  ...unconditional,
});

const copy = (from: string, to: string): Change => ({
  kind: "copy",
  from,
  to,
  makeFolders: true,
  over: "nothing",
  isDeep: true,
  ...unconditional,
});

/** A cluster with a folder of files with the longest names, and a change from its first node. */
async function withFiles(count: number): Promise<(changes: readonly Change[]) => Promise<string[]>> {
  const files = await FilesCluster.start(await Promise.all(names.map(joinedDisk)));
  const { router } = files.nodes.get("a")!;
  const codeOf = (change: Change): Promise<string> =>
    router.names({ kind: "commit", change }).then(
      () => "done",
      ({ code }: { code: string }) => code,
    );
  const make = (changes: readonly Change[]) => files.during(Promise.all(changes.map(codeOf)));
  await make([putAt("first")]);
  const paths = Array.from({ length: count }, (_, at) => `from/${String(at).padStart(470, "n")}`);
  expect(new Set(await make(paths.map(putAt)))).toEqual(new Set(["done"]));
  return make;
}

test("a record has the changes that fit, and one that is too large leaves the others alone", async () => {
  const make = await withFiles(1_600);
  const copies = ["x", "y", "z", "a"].map((name) => copy("from", `big/${name}`));
  expect(new Set(await make([...copies, putAt("z")]))).toEqual(new Set(["done"]));
  expect(await make([putAt("u"), copy("big", "v"), putAt("w")])).toEqual(["done", "UNSUPPORTED", "done"]);
});
