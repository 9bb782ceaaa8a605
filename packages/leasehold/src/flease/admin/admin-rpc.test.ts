import { expect, test } from "vitest";
import { acquireOf, at, benchSettings } from "../../../../../test/support/flease-bench.js";
import { Message } from "../protocol/message.js";
import { FleasePeer } from "../peer.js";
import { duringFaults } from "../../../../../test/planted/switches.js";
import { listFrom, pageFrom } from "./admin-answers.js";
import { AdminRpc } from "./admin-rpc.js";
import type { AdminLink } from "./admin-rpc.js";
import { listedMax } from "./listing.js";

const heldCount = 1_200;

class Observer implements AdminLink {
  readonly owner: string;
  readonly role = "observer";
  readonly handle = 1_000;
  constructor(owner: string) {
    this.owner = owner;
  }
}

/** A member with some leases that answers step by step; `looked` counts the leases it has visited. */
function setUp(watchedMost?: number) {
  const settings = benchSettings();
  let ms = 0;
  const start = at(-2_000);
  const peer = new FleasePeer(
    settings,
    { owner: "a.1", seed: 1, acceptor: true },
    start.mono,
    start.wall,
    { send: () => {}, reaches: () => true, notify: () => false },
    () => {},
  );
  const now = () => peer.read(at(ms).mono, at(ms).wall);
  peer.maintain(now());
  const take = (resource: string) =>
    peer.receive(1_000, { ...acquireOf("p.1", ms, ms + 900, 900), resource }, now(), new Message());
  for (let index = 0; index < heldCount; index += 1) take(`held/${index}`);
  let looked = 0;
  const entries = peer.acceptor!.entries.bind(peer.acceptor!);
  peer.acceptor!.entries = () => {
    const cursor = entries();
    const next = cursor.next.bind(cursor);
    cursor.next = () => {
      looked += 1;
      return next();
    };
    return cursor;
  };
  const calls = new AdminRpc<Observer>(
    {
      peer,
      now,
      adminWork: () => {},
      status: () => "well",
      provider: { releaseRequested: () => {} },
      transport: { loopback: undefined, links: [], call: () => Promise.resolve(true) },
    },
    { set: () => true, of: (owner) => `label of ${owner}`, gone: () => {}, sweep: () => {} },
    watchedMost,
  );
  return {
    calls,
    take,
    pass: (forMs: number) => {
      ms += forMs;
      peer.maintain(now());
      calls.maintain(now());
    },
    /** Runs one step; returns what it visited. */
    step: () => {
      const before = looked;
      calls.work(() => false);
      return looked - before;
    },
  };
}

/** Continues all lists until they are complete. */
async function listed(calls: AdminRpc<Observer>, link: Observer, session: number, prefix: string) {
  const names: string[] = [];
  for (let page = 0; ; page += 1) {
    const { held, more } = listFrom(await calls.answer(link, "list", { session, prefix, page }));
    for (const { resource } of held) names.push(resource);
    if (!more) return names;
  }
}

/** Twelve concurrent lists on one connection, and one query on another. */
async function storm() {
  const { calls, step } = setUp();
  const [many, one] = [new Observer("many.1"), new Observer("one.1")];
  const prefixes = ["none", ...Array.from({ length: 11 }, () => "held/")];
  const came: { lists?: string[][] } = {};
  let answered = false;
  void Promise.all(prefixes.map((prefix, session) => listed(calls, many, session, prefix))).then(
    (lists) => (came.lists = lists),
  );
  void calls.answer(one, "explain", { resource: "held/1" }).then(() => (answered = true));
  let most = 0;
  let stepsOfOthers = 0;
  while (came.lists === undefined) {
    most = Math.max(most, step());
    if (!answered) stepsOfOthers += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { lists: came.lists, most, stepsOfOthers };
}

test("twelve concurrent lists visit a thousand entries in a turn, and another connection's query waits for one step", async () => {
  const { lists, most, stepsOfOthers } = await storm();
  expect(lists.map((names) => new Set(names).size)).toEqual([
    0,
    ...Array.from({ length: 11 }, () => heldCount),
  ]);
  expect(most).toBeLessThanOrEqual(1_000);
  expect(stepsOfOthers).toBeLessThanOrEqual(2);
});

test("the mistakes of making a list in one step, and of answering the first connection in full, are found", async () => {
  const inOneStep = await duringFaults({ scansInOneStep: true }, storm);
  expect(inOneStep.most).toBeGreaterThan(1_000);
  const inOneQueue = await duringFaults({ oneQueueForAll: true }, storm);
  expect(inOneQueue.stepsOfOthers).toBeGreaterThan(2);
});

test("a member bars a holder for all participants, and confirms that to those in its view", async () => {
  const { calls, step } = setUp();
  const link = new Observer("one.1");
  const bar = async (params: object) => {
    const answer = calls.answer(link, "break", { resource: "held/1", owner: "p.1", ...params });
    step();
    return answer;
  };
  const barred = async () => {
    const answer = calls.answer(link, "explain", { resource: "held/1" });
    step();
    return ((await answer) as { barred: string }).barred;
  };
  expect([await bar({ view: 2, owner: "q.1" }), await barred()]).toEqual([false, ""]);
  expect([await bar({ view: 2 }), await barred()]).toEqual([false, "p.1"]);
  // An early build does not report its view.
  expect([await bar({ view: 1 }), await bar({})]).toEqual([true, true]);
  expect(await duringFaults({ breakInAnotherView: true }, () => bar({ view: 2 }))).toBe(true);
});

test("a list continues where it was while leases come and go, and reports when it was dropped", async () => {
  const { calls, take, pass, step } = setUp();
  const link = new Observer("one.1");
  const ask = async (session: number, page: number) => {
    const answer = calls.answer(link, "list", { session, prefix: "", page });
    answer.catch(() => {});
    while (step() > 0);
    return listFrom(await answer);
  };
  const first = await ask(1, 0);
  expect([first.held.length, first.more, first.held[0]!.label]).toEqual([listedMax, true, "label of p.1"]);
  take("late");
  const rest = new Set<string>();
  for (let page = 1, more = true; more; page += 1) {
    const next = await ask(1, page);
    for (const { resource } of next.held) rest.add(resource);
    ({ more } = next);
  }
  expect([rest.size, rest.has("late"), rest.has(first.held[0]!.resource)]).toEqual([
    heldCount - listedMax + 1,
    true,
    false,
  ]);
  await expect(ask(1, 7)).rejects.toMatchObject({ code: "UNREACHABLE" });
  await ask(2, 0);
  for (let session = 3; session <= 66; session += 1) await ask(session, 0);
  await expect(ask(2, 1)).rejects.toMatchObject({ code: "UNREACHABLE" });
  pass(20_000);
  await expect(ask(66, 1)).rejects.toMatchObject({ code: "UNREACHABLE" });
});

test("an owner's data of its lease is shown with it, and notifies watchers; no other participant can set it", async () => {
  const { calls, pass } = setUp();
  const [owner, other] = [new Observer("p.1"), new Observer("q.1")];
  const call = async (link: Observer, method: string, params: object) => {
    const answer = calls.answer(link, method, params);
    answer.catch(() => {});
    while (calls.work(() => false));
    return answer;
  };
  const resource = "held/777";
  const { token } = (await call(other, "explain", { resource })) as { token: number };
  for (let more = true; more;)
    ({ more } = pageFrom(await call(other, "watch", { session: 1, prefix: resource })));
  const news = calls.answer(other, "watch", { session: 1, prefix: resource });
  const hostile = [
    {},
    { resource },
    { resource, token, data: "x".repeat(2_000) },
    { resource, token, data: {} },
  ];
  for (const params of hostile) expect(await call(owner, "data", params)).toBe(false);
  expect(await call(other, "data", { resource, token, data: "1" })).toBe(false);
  expect(await call(owner, "data", { resource, token, data: '{"port":1}' })).toBe(true);
  pass(100);
  while (calls.work(() => false));
  expect(pageFrom(await news).held).toMatchObject([{ resource, data: '{"port":1}' }]);
  expect(await call(other, "explain", { resource })).toMatchObject({ data: '{"port":1}' });
  const { held } = listFrom(await call(other, "list", { session: 2, prefix: resource, page: 0 }));
  expect(held).toMatchObject([{ resource, data: '{"port":1}' }]);
});

test("a watch gets everything page by page without a pause, then changes at each maintenance", async () => {
  const { calls, take, pass, step } = setUp();
  const link = new Observer("one.1");
  const ask = () => calls.answer(link, "watch", { session: 1, prefix: "" });
  const names = new Set<string>();
  for (let more = true; more;) {
    const asked = ask();
    while (calls.work(() => false));
    const page = pageFrom(await asked);
    expect(page.anew).toBe(names.size === 0);
    for (const { resource } of page.held) names.add(resource);
    ({ more } = page);
  }
  expect(names.size).toBe(heldCount);
  const asked = ask();
  take("late");
  step();
  step();
  let told = false;
  void asked.then(() => (told = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toBe(false);
  pass(100);
  step();
  expect(pageFrom(await asked).held.map(({ resource }) => resource)).toEqual(["late"]);
});

test("a watch that is too wide is refused before its first answer, in steps; a longer prefix is not", async () => {
  const { calls, take, step } = setUp(heldCount);
  const watched = (link: Observer, prefix: string) => calls.answer(link, "watch", { session: 1, prefix });
  take("one/more");
  const refused = watched(new Observer("one.1"), "").catch((error: unknown) => error);
  const looks: number[] = [];
  for (let looked = step(); looked > 0; looked = step()) looks.push(looked);
  expect(await refused).toMatchObject({ code: "WATCH_TOO_WIDE" });
  expect(looks.length).toBeGreaterThan(1);
  expect(Math.max(...looks)).toBeLessThan(heldCount);
  const served = watched(new Observer("two.1"), "held/");
  while (calls.work(() => false));
  expect(pageFrom(await served)).toMatchObject({ anew: true, more: true });
});
