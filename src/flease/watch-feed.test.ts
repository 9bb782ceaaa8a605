import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  benchSettings,
  readyAcceptor,
  releaseOf,
  writeOf,
} from "../../test/support/flease-bench.js";
import { Cells } from "./cells.js";
import type { ListedLease } from "./listing.js";
import { WatchFeed, type FeedPage } from "./watch-feed.js";
import { WatchView } from "./watch-view.js";

function setUp() {
  const acceptor = readyAcceptor();
  const feed = new WatchFeed(acceptor);
  const perform = (request: ReturnType<typeof acquireOf>, ms: number, resource = "r") => {
    ask(acceptor, { ...request, resource }, at(ms));
    feed.note(resource, at(ms));
  };
  return { acceptor, feed, perform };
}

const textOf = ({ held, free, more }: FeedPage) =>
  [
    ...held.map(({ resource, owner }) => `${resource} ${owner}`),
    ...free.map((name) => `${name} free`),
    more ? "more" : "",
  ]
    .join(", ")
    .replace(/, $/, "");

test("a follower is told what is held, then acquisitions and releases, once each; renewals are no change", () => {
  const { feed, perform } = setUp();
  perform(acquireOf("p.1", 0, 500), 0);
  const follower = feed.follow("", at(10));
  expect(textOf(feed.take(follower))).toBe("r p.1");
  perform(writeOf("p.1", 0, 1, 600), 20);
  perform(acquireOf("q.1", 20, 600), 20, "s");
  expect(textOf(feed.take(follower))).toBe("s q.1");
  perform(releaseOf("p.1", 0, 2), 30);
  perform(releaseOf("p.1", 0, 2), 30);
  expect(textOf(feed.take(follower))).toBe("r free");
  expect(textOf(feed.take(follower))).toBe("");
});

test("what was not taken is merged into the newest", () => {
  const { feed, perform } = setUp();
  const follower = feed.follow("", at(0));
  for (let ms = 0; ms < 100; ms += 1) {
    perform(acquireOf("p.1", ms, ms + 500), ms);
    perform(releaseOf("p.1", ms, 1), ms);
  }
  perform(acquireOf("q.1", 100, 600), 100);
  expect(textOf(feed.take(follower))).toBe("r q.1");
});

test("an expiry is noticed when the lease is over on both clocks, however often it was renewed", () => {
  const { feed, perform } = setUp();
  const follower = feed.follow("", at(0));
  perform(acquireOf("p.1", 0, 500), 0);
  perform(writeOf("p.1", 0, 1, 700), 200);
  feed.take(follower);
  for (const ms of [499, 501, 700, 709]) feed.expire(at(ms));
  expect(textOf(feed.take(follower))).toBe("");
  feed.expire(at(709.5, { mono: 800 }));
  expect(textOf(feed.take(follower))).toBe("");
  feed.expire(at(830));
  expect(textOf(feed.take(follower))).toBe("r free");
});

test("prefixes, pages, and followers who go", () => {
  const { feed, perform } = setUp();
  const [all, some] = [feed.follow("", at(0)), feed.follow("x/", at(0))];
  for (let number = 0; number < 1_500; number += 1) perform(acquireOf("p.1", 0, 500), 0, `y/${number}`);
  perform(acquireOf("p.1", 0, 500), 0, "x/1");
  expect(textOf(feed.take(some))).toBe("x/1 p.1");
  for (const [count, more] of [
    [500, true],
    [500, true],
    [500, true],
    [1, false],
  ]) {
    const page = feed.take(all);
    expect([page.held.length, page.more]).toEqual([count, more]);
  }
  const late = feed.follow("x/", at(10));
  expect(textOf(feed.take(late))).toBe("x/1 p.1");
  for (const follower of [all, some, late]) feed.unfollow(follower);
  expect(feed.isFollowed).toBe(false);
  perform(releaseOf("p.1", 0, 1), 20, "x/1");
  expect(textOf(feed.take(feed.follow("x/", at(20))))).toBe("");
});

test("a follower that does not ask while everything changes has to begin anew", () => {
  const { feed, perform } = setUp();
  const [behind, elsewhere] = [feed.follow("n", at(0)), feed.follow("m", at(0))];
  for (let number = 0; number < 200_000; number += 1) perform(acquireOf("p.1", 0, 500), 0, `n${number}`);
  expect([behind.lost, behind.changed.size]).toEqual([false, 200_000]);
  perform(acquireOf("p.1", 0, 500), 0, "n");
  expect([behind.lost, behind.changed.size, elsewhere.lost]).toEqual([true, 0, false]);
});

const lease = (resource: string, owner: string, token: number): ListedLease => ({
  resource,
  owner,
  token,
  number: token,
  sequence: 0,
  until: 0,
});
const known = (...leases: ListedLease[]) => new Map(leases.map((one) => [one.resource, one]));

test("a resource is held or free when a majority of its cell says so, and undecided in between", () => {
  const view = new WatchView(new Cells(benchSettings().members, 3));
  expect(view.judge("r")).toBeUndefined();
  expect([...view.begin(0, known(lease("r", "p.1", 1)))]).toEqual(["r"]);
  expect(view.judge("r")).toBeUndefined();
  view.begin(1, known(lease("r", "p.1", 1), lease("s", "q.1", 2)));
  expect(view.judge("r")).toMatchObject({ state: "held", lease: { owner: "p.1", token: 1 } });
  expect(view.judge("s")).toBeUndefined();
  view.begin(2, known());
  expect(view.judge("s")).toEqual({ state: "free" });
  view.apply(1, { held: [lease("r", "q.1", 3)], free: [], more: false });
  expect(view.judge("r")).toBeUndefined();
  view.apply(2, { held: [lease("r", "q.1", 3)], free: [], more: false });
  expect(view.judge("r")).toMatchObject({ state: "held", lease: { owner: "q.1", token: 3 } });
  view.forget(1);
  expect(view.judge("r")).toBeUndefined();
  expect([...view.begin(1, known())].includes("r")).toBe(true);
  view.apply(2, { held: [], free: ["r"], more: false });
  expect(view.judge("r")).toEqual({ state: "free" });
});
