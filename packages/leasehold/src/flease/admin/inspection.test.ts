import { expect, test } from "vitest";
import { benchProvider } from "../../../../../test/support/provider-bench.js";
import { LeaseholdError } from "../../lease/errors.js";

/** Members that take a long time for each answer, within their timeouts, and report one lease each. */
function slowMembers(answerMs: number, pages: number, leftMs = 900) {
  const { world, driver, peer, provider } = benchProvider();
  const asked: string[] = [];
  const answerTo = (method: string, page: number): unknown => {
    if (method === "list") return { held: [leaseOf(`r${page}`)], more: page + 1 < pages };
    if (method !== "explain") return true;
    const { owner, until, token } = leaseOf("r0");
    return { state: "ready", lease: "live", owner, until, token, waiting: 0 };
  };
  const leaseOf = (resource: string) => ({
    resource,
    owner: "q.1",
    number: 1,
    sequence: 0,
    until: world.clock.wallMs() + leftMs,
    token: 1,
  });
  driver.ask = (_member, method, params, timeoutMs) =>
    new Promise((resolve, reject) => {
      asked.push(method);
      const { page = 0 } = params as { page?: number };
      if (timeoutMs >= answerMs) world.timers.after(answerMs, () => resolve(answerTo(method, page)));
      else world.timers.after(timeoutMs, () => reject(new LeaseholdError("UNREACHABLE", "late")));
    });
  return { world, inspection: provider.inspection, asked, ttlMaxMs: peer.settings.ttlMaxMs };
}

test("a list of many pages takes no longer than its time-out", async () => {
  const { world, inspection } = slowMembers(100, 4);
  const enough = inspection.list("", 400, undefined).then((list) => list.length);
  await world.advance(400);
  expect(await enough).toBe(4);
  const told: unknown[] = [];
  const late = inspection.list("", 399, undefined).catch((error: unknown) => told.push(error));
  await world.advance(399);
  expect(told).toMatchObject([{ code: "NO_QUORUM" }]);
  await late;
});

test("no hint shows more remaining time than the longest lease has, whichever clock its end is by", async () => {
  const { world, inspection, ttlMaxMs } = slowMembers(1, 1, 100_000);
  const asked = Promise.all([inspection.list("", 100, undefined), inspection.explain("r0", 100)]);
  await world.advance(100);
  const [[listed], explained] = await asked;
  expect(listed).toMatchObject({ remainingMs: ttlMaxMs });
  expect(explained).toMatchObject({ remainingMs: ttlMaxMs });
});

test("a list without an end fails, and is not truncated as if it were complete", async () => {
  const { world, inspection } = slowMembers(1, Infinity);
  const failed = inspection.list("", 10_000, () => undefined).catch((error: unknown) => error);
  await world.advance(5_000);
  expect(await failed).toMatchObject({ code: "WATCH_TOO_WIDE" });
});

test("a list as long as a member keeps by default is complete: 4,000 full pages, and an empty one", async () => {
  const { world, inspection } = slowMembers(1, 4_001);
  const listed = inspection.list("", 10_000, undefined).then((list) => list.length);
  await world.advance(5_000);
  expect(await listed).toBe(4_001);
});

test("a lost member's partial list counts", async () => {
  const { driver, provider } = benchProvider();
  const held = { owner: "q.1", number: 1, sequence: 0, until: 900, token: 1 };
  driver.ask = (member, _method, params) => {
    const { page } = params as { page: number };
    if (member === 2) return Promise.reject(new LeaseholdError("UNREACHABLE", "it never answers"));
    if (member === 1 && page === 1) return Promise.reject(new LeaseholdError("UNREACHABLE", "it is lost"));
    return Promise.resolve({ held: [{ ...held, resource: `r${page}` }], more: page === 0 });
  };
  const incomplete: string[] = [];
  const list = await provider.inspection.list("", 1_000, (why) => incomplete.push(why));
  expect(list).toMatchObject([
    { resource: "r0", confirmed: true },
    { resource: "r1", confirmed: false },
  ]);
  expect(incomplete).toHaveLength(1);
});

test("a watch that is too wide fails, and does not wait for ever", async () => {
  const { world, driver, provider } = benchProvider();
  driver.ask = () => Promise.reject(new LeaseholdError("WATCH_TOO_WIDE"));
  const failures: LeaseholdError[] = [];
  provider.inspection.watch(
    "",
    () => undefined,
    (error) => failures.push(error),
  );
  await world.advance(10_000);
  expect(failures.map(({ code }) => code)).toEqual(["WATCH_TOO_WIDE"]);
});

test.each(["requestRelease", "breakLease"] as const)(
  "%s asks several times within one time-out",
  async (method) => {
    const { world, inspection, asked } = slowMembers(100, 1);
    let done: boolean | undefined;
    const asking = inspection[method]("r0", 250).then((action) => (done = action.done));
    await world.advance(250);
    expect([done, new Set(asked).size]).toEqual([true, method === "breakLease" ? 3 : 2]);
    await asking;
  },
);

/** A cell in which each member knows a lease of a different owner, until `hung` never answers. */
function cellOfOwners(owners: readonly string[], hung: number) {
  const bench = benchProvider();
  const { world, driver } = bench;
  const asked: string[] = [];
  driver.ask = (member, method, params, timeoutMs) =>
    new Promise((resolve, reject) => {
      asked.push(`${method} ${member}`);
      if (member === hung)
        world.timers.after(timeoutMs, () => reject(new LeaseholdError("UNREACHABLE", "it hangs")));
      else if (method !== "explain") resolve((params as { owner: string }).owner === owners[member]);
      else {
        const owner = owners[member]!;
        const until = world.clock.wallMs() + 900;
        resolve({ state: "ready", lease: "live", owner, until, token: owner === "q.1" ? 7 : 5, waiting: 0 });
      }
    });
  return { ...bench, asked };
}

test.each(["requestRelease", "breakLease"] as const)(
  "%s reaches the holder when a member hangs, without waiting for it",
  async (method) => {
    const { world, provider, asked } = cellOfOwners(["p.1", "p.1", "p.1"], 2);
    let action: unknown;
    void provider.inspection[method]("r", 1_000).then((came) => (action = came));
    await world.advance(1);
    expect(action).toMatchObject({ done: true, holder: "p.1", token: 5n });
    expect(asked).toContain("requestRelease 0");
  },
);

test("a lease known to a majority determines the holder, whatever a newer attempt has left at a member", async () => {
  const { world, provider } = cellOfOwners(["p.1", "q.1", "p.1"], -1);
  const asking = Promise.all([
    provider.inspection.explain("r", 1_000),
    provider.inspection.breakLease("r", 1_000),
  ]);
  await world.advance(1);
  const [explanation, action] = await asking;
  expect(explanation).toMatchObject({ holder: "p.1", token: 5n, confirmed: true });
  expect(action).toMatchObject({ holder: "p.1", done: true });
});

test("a watch follows the members of the present view: added ones, and no removed ones", async () => {
  const { world, driver, provider, peer, runner } = benchProvider();
  const [a, b, c] = peer.settings.members;
  const view = (number: number, ...members: string[]) =>
    peer.hearView(
      {
        view: { number, stamp: number, members, cellSize: members.length, before: undefined },
        barrier: 0,
        settled: new Map(),
      },
      runner.now(),
    );
  let asked: number[] = [];
  driver.ask = (member, method) =>
    new Promise((resolve) => {
      if (method !== "watch") return resolve(true);
      asked.push(member);
      const lease = { resource: "r", owner: "q.1", number: 1, sequence: 0, until: 900, token: 1 };
      // The first answer comes at once; afterwards the member has nothing to report.
      const isFirst = asked.filter((each) => each === member).length === 1;
      const page = { held: isFirst ? [lease] : [], free: [], more: false, anew: isFirst };
      world.timers.after(isFirst ? 0 : 5_000, () => resolve(page));
    });
  expect(view(2, a!, b!)).toBe(true);
  const told: string[] = [];
  const watch = provider.inspection.watch(
    "",
    ({ resource }) => told.push(resource),
    () => undefined,
  );
  await world.advance(1_000);
  expect([new Set(asked), told]).toEqual([new Set([0, 1]), ["r"]]);
  expect(view(4, b!, c!)).toBe(true);
  await world.advance(10_000);
  expect(asked).toContain(2);
  asked = [0, 1, 2, 0, 1, 2];
  await world.advance(20_000);
  expect(asked.slice(6)).not.toContain(0);
  expect(new Set(asked.slice(6))).toEqual(new Set([1, 2]));
  watch.stop();
});
