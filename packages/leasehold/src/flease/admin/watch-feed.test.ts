import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  benchSettings,
  readyAcceptor,
  releaseOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { Cells } from "../protocol/cells.js";
import type { ListedLease } from "./listing.js";
import type { Steps } from "./fair-work.js";
import { listedMax } from "./listing.js";
import { WatchFeed } from "./watch-feed.js";
import type { FeedBounds, FeedPage, Follower } from "./watch-feed.js";
import { WatchView } from "./watch-view.js";

function setUp(bounds?: FeedBounds) {
  const acceptor = readyAcceptor();
  const feed = new WatchFeed(acceptor, bounds);
  const perform = (request: ReturnType<typeof acquireOf>, ms: number, resource = "r") => {
    ask(acceptor, { ...request, resource }, at(ms));
    feed.note(resource, at(ms));
  };
  const take = (follower: Follower, ms = 0) => ended(feed.take(follower, () => at(ms)));
  return { acceptor, feed, perform, take };
}

/** Runs all steps at once. */
function ended<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

const textOf = ({ held, free, more, anew }: FeedPage) =>
  [
    anew ? "anew" : "",
    ...held.map(({ resource, owner }) => `${resource} ${owner}`),
    ...free.map((name) => `${name} free`),
    more ? "more" : "",
  ]
    .filter((word) => word !== "")
    .join(", ");

test("a follower gets the held leases, then acquisitions and releases, once each; renewals are no change", () => {
  const { feed, perform, take } = setUp();
  perform(acquireOf("p.1", 0, 500), 0);
  const follower = feed.follow("");
  expect(textOf(take(follower))).toBe("anew, r p.1");
  perform(writeOf("p.1", 0, 1, 600), 20);
  perform(acquireOf("q.1", 20, 600), 20, "s");
  expect(textOf(take(follower))).toBe("s q.1");
  perform(releaseOf("p.1", 0, 2), 30);
  perform(releaseOf("p.1", 0, 2), 30);
  expect(textOf(take(follower))).toBe("r free");
  expect(textOf(take(follower))).toBe("");
});

test("unread changes are merged into the newest", () => {
  const { feed, perform, take } = setUp();
  const follower = feed.follow("");
  for (let ms = 0; ms < 100; ms += 1) {
    perform(acquireOf("p.1", ms, ms + 500), ms);
    perform(releaseOf("p.1", ms, 1), ms);
  }
  perform(acquireOf("q.1", 100, 600), 100);
  expect(textOf(take(follower))).toBe("anew, r q.1");
  perform(releaseOf("q.1", 100, 1), 110);
  for (let ms = 110; ms < 200; ms += 1) {
    perform(acquireOf("p.1", ms, ms + 500), ms);
    perform(releaseOf("p.1", ms, 1), ms);
  }
  expect(textOf(take(follower))).toBe("r free");
});

test("an expiry is noticed when the lease is over on both clocks, however often it was renewed", () => {
  const { feed, perform, take } = setUp();
  const follower = feed.follow("");
  perform(acquireOf("p.1", 0, 500), 0);
  perform(writeOf("p.1", 0, 1, 700), 200);
  take(follower);
  for (const ms of [499, 501, 700, 709]) feed.expire(at(ms));
  expect(textOf(take(follower))).toBe("");
  feed.expire(at(709.5, { mono: 800 }));
  expect(textOf(take(follower))).toBe("");
  feed.expire(at(830));
  expect(textOf(take(follower))).toBe("r free");
});

test("prefixes, pages, and followers that leave", () => {
  const { feed, perform, take } = setUp();
  const [all, some] = [feed.follow(""), feed.follow("x/")];
  for (let number = 0; number < 3 * listedMax; number += 1)
    perform(acquireOf("p.1", 0, 500), 0, `y/${number}`);
  perform(acquireOf("p.1", 0, 500), 0, "x/1");
  expect(textOf(take(some))).toBe("anew, x/1 p.1");
  for (const [count, more] of [
    [listedMax, true],
    [listedMax, true],
    [listedMax, true],
    [1, false],
  ]) {
    const page = take(all);
    expect([page.held.length, page.more]).toEqual([count, more]);
  }
  const late = feed.follow("x/");
  expect(textOf(take(late))).toBe("anew, x/1 p.1");
  for (const follower of [all, some, late]) feed.unfollow(follower);
  expect(feed.isFollowed).toBe(false);
  perform(releaseOf("p.1", 0, 1), 20, "x/1");
  expect(textOf(take(feed.follow("x/")))).toBe("anew");
});

test("a watcher that lags by more changes than are kept starts over, and no other does", () => {
  const { feed, perform, take } = setUp({ pageMax: 10, looksPerStep: 10, changesMax: 4 });
  const [behind, ahead] = [feed.follow("n"), feed.follow("n")];
  for (const follower of [behind, ahead]) expect(textOf(take(follower))).toBe("anew");
  for (let number = 0; number < 4; number += 1) perform(acquireOf("p.1", 0, 500), 0, `n${number}`);
  expect(take(ahead).held).toHaveLength(4);
  perform(acquireOf("p.1", 0, 500), 0, "m");
  expect(textOf(take(ahead))).toBe("");
  expect(textOf(take(behind))).toBe("anew, n0 p.1, n1 p.1, n2 p.1, n3 p.1");
});

test("a new follower gets the held leases in steps, so that no other client waits long", () => {
  const { acceptor, feed, perform } = setUp();
  for (let number = 0; number < 5_000; number += 1) perform(acquireOf("p.1", 0, 500), 0, `n${number}`);
  const follower = feed.follow("none");
  let looked = 0;
  const isOver = acceptor.isOver.bind(acceptor);
  acceptor.isOver = (entry, now) => {
    looked += 1;
    return isOver(entry, now);
  };
  const followsAll = feed.follow("n");
  const page = feed.take(followsAll, () => at(0));
  expect([page.next().done, looked]).toEqual([true, listedMax]);
  const steps = feed.take(follower, () => at(0));
  for (let step = 0; step < 5; step += 1) expect(steps.next().done).toBe(false);
  expect(steps.next().value).toEqual({ held: [], free: [], more: false, anew: true });
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
  view.apply(1, { held: [lease("r", "q.1", 3)], free: [], more: false, anew: false });
  expect(view.judge("r")).toBeUndefined();
  view.apply(2, { held: [lease("r", "q.1", 3)], free: [], more: false, anew: false });
  expect(view.judge("r")).toMatchObject({ state: "held", lease: { owner: "q.1", token: 3 } });
  view.forget(1);
  expect(view.judge("r")).toBeUndefined();
  expect([...view.begin(1, known())].includes("r")).toBe(true);
  view.apply(2, { held: [], free: ["r"], more: false, anew: false });
  expect(view.judge("r")).toEqual({ state: "free" });
});
