import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { effort } from "../../../../../test/support/effort.js";
import { type FakeNet, Host } from "../../../../../test/support/fake-net.js";
import { addressOf, ChangingCluster } from "../../../../../test/support/changing-cluster.js";
import { cellFunctionVersion } from "../protocol/cells.js";
import { votersOf } from "../views/view.js";
import { discover } from "./discovery.js";

/**
 * Members come, go, and change ids at one address while clients hold leases. The product's own members,
 * clients and connections run in virtual time. Nothing else fails, so no client may lose a lease or a member.
 */

const fake = vi.hoisted(() => ({ net: undefined as unknown }));
vi.mock("node:net", async (original) => ({
  ...(await original<object>()),
  connect: (options: never) => (fake.net as FakeNet).connect(options),
  createServer: (accept: never) => (fake.net as FakeNet).createServer(accept),
}));

const use = (net: FakeNet) => void (fake.net = net);

// The timer that keeps a process alive while its transport is open.
beforeEach(() => void vi.spyOn(globalThis, "setInterval").mockImplementation((() => undefined) as never));
afterEach(() => void vi.restoreAllMocks());

test("clients keep their leases when the last of many members with the longest ids begins a change", async () => {
  // A joint view of 24 members exceeds the size of a client's call.
  const run = new ChangingCluster(use, 1, effort > 1 ? 40 : 24, 1);
  await run.begin();
  for (const name of ["x", "y"]) await run.hold(run.startClient(name), name);
  const spare = run.spare();
  run.startMember(spare, run.freePort());
  const first = run.present[0]!;
  expect(await run.change(run.present.at(-1)!, { add: spare, remove: first })).toBe(true);
  expect(await run.areConnected()).toBe(true);
  expect([run.lost, run.leases.every((lease) => lease.remaining() > 0)]).toEqual([0, true]);
  run.end();
}, 300_000);

test("clients keep leases and members while members come, go, and change ids at one address", async () => {
  let sameAddress = 0;
  for (let seed = 1; seed <= 6 * effort; seed += 1) {
    const run = new ChangingCluster(use, seed, 3, 3, ["a", "b", "c", "d", "e", "f"]);
    const wereAt = new Map(["a", "b", "c"].map((id, index) => [index + 1, id]));
    await run.begin();
    for (const name of ["x", "y"]) await run.hold(run.startClient(name), name);
    for (let changes = 0; changes < 8; changes += 1) {
      const removed = run.pick(run.present);
      const { length } = run.present;
      const kind =
        length <= 2 ? "grows" : length >= 4 ? "shrinks" : run.pick(["grows", "shrinks", "replaces"]);
      const add = kind === "shrinks" ? undefined : run.spare();
      if (add !== undefined) {
        const port = run.freePort();
        if ((wereAt.get(port) ?? add) !== add) sameAddress += 1;
        wereAt.set(port, add);
        run.startMember(add, port);
      }
      const change = { ...(add !== undefined && { add }), ...(kind !== "grows" && { remove: removed }) };
      const by = run.pick(run.present.filter((id) => id !== removed));
      expect([seed, changes, await run.change(by, change)]).toEqual([seed, changes, true]);
      expect([seed, changes, await run.areConnected(), run.lost]).toEqual([seed, changes, true, 0]);
    }
    run.end();
  }
  expect(sameAddress).toBeGreaterThan(5);
}, 300_000);

test("a client that is given all addresses adopts the newest view, whichever member answers first", async () => {
  const run = new ChangingCluster(use, 1, 1, 3, ["a", "b", "c", "d"]);
  await run.begin();
  await run.hold(run.startClient("x"), "x");
  for (const id of ["b", "d"]) {
    run.startMember(id, run.freePort());
    expect(await run.change("a", { add: id })).toBe(true);
  }
  const ports = [...run.members.values()].map(({ port }) => port);
  // The member has lost its stored view.
  const [first] = [...run.members];
  run.stop(first![0]);
  run.files.delete(first![0]);
  run.startMember(first![0], first![1].port);
  const taken: number[] = [];
  for (const order of [ports, ports.toReversed(), [ports[1]!, ports[0]!, ports[2]!]]) {
    const host = new Host(run.net, `client ${taken.length}`);
    const claims = {
      role: "client",
      nodeId: "client",
      cluster: "",
      configHash: "",
      view: 0,
      cellFunction: cellFunctionVersion,
    } as const;
    run.net.run(host, () => {
      void discover(order.map(addressOf), claims, 5_000, host.world, undefined).then(([found]) =>
        taken.push(votersOf(found!.cluster.current!.view).length),
      );
    });
    const count = taken.length;
    expect(await run.until(() => taken.length > count)).toBe(true);
  }
  expect(taken).toEqual([3, 3, 3]);
  run.end();
}, 300_000);
