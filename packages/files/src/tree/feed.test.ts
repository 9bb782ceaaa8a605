import { expect, test } from "vitest";
import { bytes, FilesCluster, names } from "../../../../test/support/files-cluster.js";
import type { ChangesOptions, FileChange } from "../types.js";
import { Feed } from "./feed.js";

async function* of(content: string): AsyncGenerator<Uint8Array> {
  yield bytes(content);
}

const shown = ({ what, path, from, kind }: FileChange): string =>
  `${what} ${kind} ${from === undefined ? "" : `${from} to `}${path}`;

/** Takes changes until there are so many. */
async function take(
  cluster: FilesCluster,
  name: string,
  count: number,
  options: ChangesOptions = {},
  folder = "",
): Promise<{ changes: FileChange[]; cursor: string }> {
  const changes: FileChange[] = [];
  for await (const batch of cluster.named.get(name)!.changes(folder, options)) {
    changes.push(...batch.changes);
    if (changes.length >= count) return { changes, cursor: batch.cursor };
  }
  throw new Error("the changes have ended");
}

test("each change is told once and in order, at any node, and after the primary has died", async () => {
  const cluster = await FilesCluster.startNamed();
  const a = cluster.named.get("a")!;
  await cluster.during(a.put("first", of("1")));
  const { cursor } = await cluster.during(take(cluster, "b", 0));
  const following = take(cluster, "c", 6, { after: cursor });
  const put = await cluster.during(a.put("d/e/x", of("12")));
  await cluster.during(a.put("d/e/x", of("123")));
  await cluster.during(a.rename("d/e", "f"));
  await cluster.during(a.remove("f", { recursive: true }));
  const seen = await cluster.during(following);
  expect(seen.changes.map(shown)).toEqual([
    "created folder d",
    "created folder d/e",
    "created file d/e/x",
    "replaced file d/e/x",
    "renamed folder d/e to f",
    "removed folder f",
  ]);
  expect(seen.changes[2]).toMatchObject({ version: put.version, size: 2 });
  const primary = names.find((name) => cluster.nodes.get(name)!.router.primaryHere("names") !== undefined)!;
  const other = names.find((name) => name !== primary);
  await cluster.during(cluster.named.get(primary)!.close());
  const after = seen.changes[3]!.cursor;
  const again = await cluster.during(take(cluster, other!, 2, { after }));
  expect(again.changes).toEqual(seen.changes.slice(4));
  expect((await cluster.during(take(cluster, other!, 1, { after: cursor }, "f"))).changes.map(shown)).toEqual(
    ["created folder f", "removed folder f"],
  );
});

test("a cursor that is none, or of another cluster, is refused", async () => {
  const cluster = await FilesCluster.startNamed();
  await cluster.during(cluster.named.get("a")!.put("first", of("1")));
  const gone = { code: "CURSOR_GONE" };
  for (const after of ["", "x", "x-1", "0-zzzzzzzzzzz", "store-\n"])
    await expect(cluster.during(take(cluster, "a", 0, { after }))).rejects.toMatchObject(gone);
  await expect(cluster.during(take(cluster, "a", 0, {}, "../x"))).rejects.toMatchObject({
    code: "INVALID_PATH",
  });
});

test("a wait ends with the signal, and with the node", async () => {
  const cluster = await FilesCluster.startNamed();
  await cluster.during(cluster.named.get("a")!.put("first", of("1")));
  const leaving = new AbortController();
  const waiting = take(cluster, "b", 1, { signal: leaving.signal });
  const closing = take(cluster, "c", 1);
  await cluster.cluster.advance("100ms");
  leaving.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  const ended = Promise.allSettled([closing]);
  await cluster.during(cluster.named.get("c")!.close());
  expect(await ended).toMatchObject([{ reason: { code: "CLOSED" } }]);
});

test("a thousand followers wait by one question, and no more are taken", async () => {
  let asked = 0;
  let news = (): void => undefined;
  let last = 1;
  const feed = new Feed(async (operation) => {
    if (operation.kind === "changes")
      return { feed: "f", page: { events: [], last: operation.after ?? last, isMore: false } };
    asked += 1;
    if (last === 1) await new Promise<void>((resolve) => (news = resolve));
    return { last };
  });
  const all = Array.from({ length: 1_024 }, () => feed.follow("", {}));
  await Promise.all(all.map((each) => each.next()));
  const waiting = all.map((each) => each.next());
  for (let turns = 0; turns < 10; turns += 1) await Promise.resolve();
  expect(asked).toBe(1);
  const late = feed.follow("", {});
  await late.next();
  await expect(late.next()).rejects.toMatchObject({ code: "OVERLOADED" });
  const ended = Promise.allSettled(waiting);
  feed.close();
  news();
  expect((await ended).every(({ status }) => status === "rejected")).toBe(true);
  last = 2;
});
