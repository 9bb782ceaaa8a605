import { expect, test } from "vitest";
import { bytes, FilesCluster, names } from "../../../../test/support/files-cluster.js";
import { ChangeLog, keptAtLeast, type NameEvent } from "../names/change-log.js";
import type { NamesOperation, NamesResult } from "../names/types.js";
import type { ChangeBatch, ChangesOptions, FileChange } from "../types.js";
import { Feed } from "./feed.js";

async function* of(content: string): AsyncGenerator<Uint8Array> {
  yield bytes(content);
}

const shown = ({ what, path, from, kind }: FileChange): string =>
  `${what} ${kind} ${from === undefined ? "" : `${from} to `}${path}`;

/** Takes changes until there are this many. */
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
  const following = take(cluster, "c", 5, { after: cursor });
  const put = await cluster.during(a.put("d/e/x", of("12")));
  await cluster.during(a.put("d/e/x", of("123")));
  await cluster.during(a.rename("d/e", "f"));
  await cluster.during(a.remove("f", { recursive: true }));
  const seen = await cluster.during(following);
  expect(seen.changes.map(shown)).toEqual([
    "created folder d",
    "created file d/e/x",
    "replaced file d/e/x",
    "renamed folder d/e to f",
    "removed folder f",
  ]);
  expect(seen.changes[1]).toMatchObject({ version: put.version, size: 2 });
  const primary = names.find((name) => cluster.nodes.get(name)!.router.primaryHere("names") !== undefined)!;
  const other = names.find((name) => name !== primary);
  await cluster.during(cluster.named.get(primary)!.close());
  const after = seen.changes[2]!.cursor;
  const again = await cluster.during(take(cluster, other!, 2, { after }));
  expect(again.changes).toEqual(seen.changes.slice(3));
  expect((await cluster.during(take(cluster, other!, 1, { after: cursor }, "f"))).changes.map(shown)).toEqual(
    ["created folder f", "removed folder f"],
  );
});

test("a cursor that is none, or of another cluster, is refused", async () => {
  const cluster = await FilesCluster.startNamed();
  await cluster.during(cluster.named.get("a")!.put("first", of("1")));
  const gone = { code: "CURSOR_GONE" };
  for (const after of ["", "x", "x-1", "store.1-0", "0.1-zzzzzzzzzzz", "store-\n"])
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

const change = (path: string): NameEvent => ({ what: "created", path, isFolder: false });

/** A primary that counts the requests it receives. */
class Primary {
  readonly log = new ChangeLog(10_000);
  readonly feed = new Feed((operation) => this.#answer(operation));
  readonly asked = { changes: 0, news: 0 };
  #changed = (): void => undefined;

  add(...paths: string[]): void {
    this.log.add(this.log.part(paths.map(change)));
    this.#changed();
  }

  async #answer(ask: NamesOperation): Promise<NamesResult> {
    if (ask.kind !== "changes" && ask.kind !== "news") throw new Error("unexpected");
    this.asked[ask.kind] += 1;
    const { last } = this.log;
    if (ask.kind === "changes" && ask.after === null)
      return { feed: "f.1", page: { events: [], last, isMore: false } };
    if (ask.kind === "news" && ask.after === last)
      await new Promise<void>((resolve) => (this.#changed = resolve));
    const page = this.log.after(ask.after!, ask.kind === "changes" ? ask.folder : "", ask.limit)!;
    return { feed: "f.1", last: this.log.last, page };
  }
}

const pathsOf = ({ value }: IteratorResult<ChangeBatch, undefined>): string | undefined =>
  value?.changes.map(({ path }) => path).join();

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
};

test("a thousand followers read the next changes by one question, and no more are taken", async () => {
  const primary = new Primary();
  const { feed, asked } = primary;
  const all = Array.from({ length: 1_024 }, (_, at) => feed.follow(at % 2 === 0 ? "" : "d", {}));
  await Promise.all(all.map((each) => each.next()));
  const waiting = all.map((each) => each.next());
  await turns();
  expect(asked).toEqual({ changes: 1_024, news: 1 });
  const late = feed.follow("", {});
  await late.next();
  await expect(late.next()).rejects.toMatchObject({ code: "OVERLOADED" });
  asked.changes = 0;
  primary.add("x", "d/y");
  const paths = (await Promise.all(waiting)).map(pathsOf);
  expect(paths).toEqual(all.map((_, at) => (at % 2 === 0 ? "x,d/y" : "d/y")));
  const ended = Promise.allSettled(all.map((each) => each.next()));
  await turns();
  expect(asked).toEqual({ changes: 0, news: 2 });
  feed.close();
  expect((await ended).every(({ status }) => status === "rejected")).toBe(true);
});

test("a follower that others have overtaken goes on at once", async () => {
  const primary = new Primary();
  const { feed, asked } = primary;
  const slow = feed.follow("", {});
  const fast = feed.follow("", {});
  await Promise.all([slow.next(), fast.next()]);
  for (const path of ["a", "b"]) {
    const next = fast.next();
    await turns();
    primary.add(path);
    await next;
  }
  const next = fast.next();
  await turns();
  // The node waits for the third change now, and the slow one has not seen the first.
  expect(pathsOf(await slow.next())).toBe("a,b");
  expect(asked.changes).toBe(3);
  primary.add("c");
  await next;
  // The follower has seen everything before the last page.
  expect(pathsOf(await slow.next())).toBe("c");
  expect(asked.changes).toBe(3);
});

test("changes elsewhere move the cursor before they take the place of those after it", async () => {
  const primary = new Primary();
  const quiet = primary.feed.follow("quiet", {});
  await quiet.next();
  const next = quiet.next();
  const long = "\u4e00".repeat(160);
  let moved = false;
  void next.then(() => (moved = true));
  for (let at = 0; at < keptAtLeast / 2; at += 100) {
    await turns();
    primary.add(...Array<string>(100).fill(long));
  }
  await turns();
  expect(moved).toBe(true);
});

test("parts of uploads are no changes until they have a place elsewhere", async () => {
  const cluster = await FilesCluster.startNamed();
  const a = cluster.named.get("a")!;
  await cluster.during(a.put("first", of("1")));
  const { cursor } = await cluster.during(take(cluster, "a", 0));
  await cluster.during(a.makeFolder(".s3-uploads/u"));
  const { version } = await cluster.during(a.put(".s3-uploads/u/1", of("1")));
  await cluster.during(a.put(".s3-uploads/part", of("2")));
  await cluster.during(a.compose("b/whole", "id", ".s3-uploads/u", [["1", version]]));
  await cluster.during(a.rename(".s3-uploads/part", "b/part"));
  await cluster.during(a.rename("b/part", ".s3-uploads/part"));
  const { changes } = await cluster.during(take(cluster, "b", 4, { after: cursor }));
  expect(changes.map(shown)).toEqual([
    "created folder b",
    "created file b/whole",
    "created file b/part",
    "removed file b/part",
  ]);
});
