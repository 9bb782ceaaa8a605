import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acquireOf,
  ask,
  at,
  ballot,
  readyAcceptor,
  releaseOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import type { Acceptor } from "../protocol/acceptor.js";
import type { Steps } from "./fair-work.js";
import { type Faults, withFaults } from "../../../../../test/planted/switches.js";
import { WatchFeed } from "./watch-feed.js";
import type { FeedPage, Follower } from "./watch-feed.js";

/** Bounds small enough that a few operations fill a page, need several steps and drop changes. */
const bounds = { pageMax: 2, looksPerStep: 2, changesMax: 3 };
const resources = ["a/1", "a/2", "a/3", "b/1", "b/2", "b/3"];
const prefixes = ["", "a/", "b/", "b/2"];
const owners = ["p.1", "q.1"];

type Act =
  | { readonly act: "acquire" | "renew" | "release"; readonly owner: number; readonly resource: number }
  | { readonly act: "pass"; readonly ms: number }
  | { readonly act: "follow" | "leave" | "read"; readonly follower: number; readonly steps: number };

const number = (below: number) => fc.integer({ min: 0, max: below - 1 });
/** Often about as long as a lease, so that events fall just before and just after its end. */
const passed = fc.oneof(number(800), fc.integer({ min: 470, max: 520 }));
const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        act: fc.constantFrom("acquire", "renew", "release"),
        owner: number(owners.length),
        resource: number(resources.length),
      }),
    },
    { weight: 1, arbitrary: fc.record({ act: fc.constant("pass"), ms: passed }) },
    {
      weight: 4,
      arbitrary: fc.record({
        act: fc.constantFrom("follow", "leave", "read", "read", "read"),
        follower: number(prefixes.length),
        steps: number(4),
      }),
    },
  ),
  { minLength: 20, maxLength: 100 },
);

/** A watching client: which leases it believes to be held, and the new complete report it is receiving. */
class Reader {
  readonly prefix: string;
  readonly follower: Follower;
  held = new Map<string, string>();
  #first: Map<string, string> | undefined;
  #steps: Steps<FeedPage> | undefined;
  readonly #feed: WatchFeed;
  readonly #now: () => ReturnType<typeof at>;

  constructor(feed: WatchFeed, prefix: string, now: () => ReturnType<typeof at>) {
    this.#feed = feed;
    this.#now = now;
    this.prefix = prefix;
    this.follower = feed.follow(prefix);
  }

  /** True when the page it has read is the last one for now. */
  step(): boolean {
    this.#steps ??= this.#feed.take(this.follower, this.#now);
    const step = this.#steps.next();
    if (step.done !== true) return false;
    this.#steps = undefined;
    const page = step.value;
    if (page.anew) this.#first = new Map();
    const into = this.#first ?? this.held;
    for (const { resource, owner, token } of page.held) into.set(resource, `${owner} ${token}`);
    for (const resource of page.free) into.delete(resource);
    if (page.more) return false;
    this.held = into;
    this.#first = undefined;
    return true;
  }

  /** Reads until nothing is new. */
  catchUp(): void {
    for (let steps = 0; steps < 1_000; steps += 1)
      if (this.step() && !this.#feed.hasNews(this.follower)) return;
    throw new Error("it reads and reads, and is never done");
  }
}

function truth(acceptor: Acceptor, prefix: string, ms: number): Map<string, string> {
  const held = [...acceptor.entries()].filter(
    ([resource, entry]) => resource.startsWith(prefix) && !acceptor.isOver(entry, at(ms)),
  );
  return new Map(held.map(([resource, { leaseOwner, token }]) => [resource, `${leaseOwner} ${token}`]));
}

const sorted = (held: Map<string, string>) => [...held].toSorted();

function run(script: readonly Act[]): void {
  const acceptor = readyAcceptor();
  const feed = new WatchFeed(acceptor, bounds);
  const readers = new Map<number, Reader>();
  let ms = 0;
  const perform = (act: "acquire" | "renew" | "release", owner: string, resource: string) => {
    const mine = acceptor.entry(resource);
    const since = mine?.leaseOwner === owner ? mine.leaseNumber : undefined;
    const next = (mine?.leaseSequence ?? 0) + 1;
    const request =
      act === "acquire"
        ? { ...acquireOf(owner, ms, ms + 500), token: ballot(ms) }
        : act === "renew"
          ? { ...writeOf(owner, ms, next, ms + 500), token: mine?.token ?? 0 }
          : releaseOf(owner, ms, next);
    if (act !== "acquire" && since === undefined) return;
    ask(acceptor, { ...request, resource, ...(act !== "acquire" && { number: since! }) }, at(ms));
    feed.note(resource, at(ms));
  };
  for (const step of script) {
    if (step.act === "pass") {
      ms += step.ms;
      feed.expire(at(ms));
      acceptor.discardIdle(at(ms), 3);
    } else if ("owner" in step) {
      perform(step.act, owners[step.owner]!, resources[step.resource]!);
      ms += 1;
    } else {
      const reader = readers.get(step.follower);
      if (step.act === "leave") {
        if (reader !== undefined) feed.unfollow(reader.follower);
        readers.delete(step.follower);
      } else if (reader === undefined) {
        readers.set(step.follower, new Reader(feed, prefixes[step.follower]!, () => at(ms)));
      } else {
        for (let steps = 0; steps <= step.steps; steps += 1) reader.step();
      }
    }
  }
  // A lease that only one clock has ended is checked again later.
  for (let looks = 0; looks < 2; looks += 1) feed.expire(at((ms += 20)));
  for (const reader of readers.values()) {
    reader.catchUp();
    expect(sorted(reader.held)).toEqual(sorted(truth(acceptor, reader.prefix, ms)));
  }
}

const check = (options: { numRuns: number; seed?: number }) => fc.assert(fc.property(acts, run), options);

test("a follower that has read to the end knows the true state, however far it was behind", () => {
  expect(() => check({ numRuns: 300 })).not.toThrow();
});

/** A fixed seed, so that the mistake is found for certain. */
const seed = 4;

test.each<Partial<Faults>>([{ missedChangesAreForgotten: true }, { lateRenewalIsNoNews: true }])(
  "the mistake is found that %o",
  (planted) => {
    withFaults(planted, () => expect(() => check({ numRuns: 10_000, seed })).toThrow("Property failed"));
  },
);
