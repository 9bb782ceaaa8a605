import { expect, test } from "vitest";
import { at, benchSettings } from "../../../test/support/flease-bench.js";
import { FleasePeer } from "../peer.js";
import { memberIdsMax } from "../protocol/settings.js";
import { defineCluster } from "./cluster.js";
import { silent } from "../../runtime/logger.js";
import { realWorld } from "../../runtime/world.js";
import { FleaseNode } from "./flease-node.js";
import { NodeViews } from "./node-views.js";
import type { ViewsHost } from "./node-views.js";
import type { Link } from "./transport/link.js";
import type { Identity } from "./wire/identity.js";
import { readToldView } from "./view-notes.js";
import type { ToldView, ViewFile } from "./view-notes.js";

const ports = (ids: readonly string[]) => Object.fromEntries(ids.map((id, index) => [id, `h:${index + 1}`]));

/** A member with a file in memory, which hears what a test says. */
function aMember() {
  const founding = benchSettings();
  const cluster = defineCluster("test", founding, ports(founding.members));
  let ms = 0;
  let kept: unknown;
  const timers: (() => void)[] = [];
  const undialed: string[] = [];
  const undial = (address: string) => void undialed.push(address);
  const file: Pick<ViewFile, "read" | "write"> = {
    read: () => undefined,
    write: (told: ToldView) => void (kept = JSON.parse(JSON.stringify({ ...told, settled: [] }))),
  };
  const host = {
    nodeId: founding.members[0]!,
    role: "member",
    cluster,
    transport: { links: [], loopback: undefined, dial: () => undefined, undial },
    now: () => host.peer.read(at(ms).mono, at(ms).wall),
    link: () => undefined,
    dialMembers: () => undefined,
    after: (_delayMs: number, run: () => void) => void timers.push(run),
    log: () => undefined,
  } as unknown as ViewsHost & { peer: FleasePeer };
  const views = new NodeViews(host, file as ViewFile, undefined);
  const medium = { send: () => undefined, reaches: () => true, tell: () => false };
  const options = { owner: "a.1", seed: 1, acceptor: true, views: views.port() };
  host.peer = new FleasePeer(cluster.settings, options, at(0).mono, at(0).wall, medium, () => undefined);
  const tells = (peerId: string, params: object) =>
    views.heard({ role: "member", peerId } as Link, params) as { stamp: number; consents: boolean };
  const later = (passMs: number) => void (ms += passMs);
  return { cluster, host, views, tells, later, timers, undialed, kept: () => kept };
}

function viewOf(number: number, members: readonly string[]) {
  const view = { number, stamp: number, members, cellSize: members.length };
  return { view, barrier: 0, settled: [], addresses: ports(members) };
}

test("of two that begin a change at one moment one gets a member's consent, and the other when that was given up", () => {
  const { views, tells, later } = aMember();
  const begins = { ...views.document(), begins: true };
  expect([tells("b", begins).consents, tells("c", begins).consents]).toEqual([true, false]);
  expect([tells("b", begins).consents, tells("c", views.document()).consents]).toEqual([true, true]);
  later(4_000);
  expect([tells("c", begins).consents, tells("b", begins).consents]).toEqual([true, false]);
  // It was for a change of that view, which is over.
  tells("c", viewOf(3, ["a", "b"]));
  expect(tells("b", begins).consents).toBe(true);
});

test("a view with more ids than a process can know is not entered, and the file can be read again", () => {
  const { cluster, host, tells, kept } = aMember();
  const room = memberIdsMax - cluster.settings.members.length;
  const many = Array.from({ length: room }, (_, index) => `x${index}`);
  for (const id of many.splice(5)) expect(cluster.learn(id, "h:9")).toBe(true);
  for (const [index, id] of many.entries()) {
    const number = 2 + index;
    expect(tells("b", viewOf(number, ["b", "c", id])).stamp).toBe(number);
  }
  const { number } = host.peer.views.view;
  expect(() => tells("b", viewOf(number + 1, ["b", "c", "oneMore"]))).toThrow("restart it");
  expect(host.peer.views.view.number).toBe(number);
  expect(readToldView(kept()).view.number).toBe(number);
});

test("an id that was to be added and did not connect takes no place for good", () => {
  const { cluster } = aMember();
  const before = [...cluster.settings.members];
  expect(cluster.learn("typo", "h:9")).toBe(true);
  cluster.unlearn("typo");
  expect([cluster.settings.members, cluster.addresses.length]).toEqual([before, before.length]);
  cluster.unlearn(before.at(-1)!);
  expect(cluster.settings.members).toEqual(before);
});

test("a member that was to be added here and was added elsewhere meanwhile keeps its place", async () => {
  const { cluster, views, tells, timers, undialed } = aMember();
  const adding = views.change({ mayBeMember: true } as Link, { add: "d", address: "h:4" });
  const outcome = adding.then(
    () => "begun",
    (error: Error) => error.message,
  );
  tells("b", viewOf(2, ["a", "b", "c", "d"]));
  for (let looks = 0; looks < 1_000; looks += 1) {
    timers.shift()?.();
    await Promise.resolve();
  }
  expect(await outcome).toContain("d cannot be reached");
  expect([cluster.settings.members.at(-1), undialed]).toEqual(["d", []]);
  expect(readToldView(views.document()).addresses["d"]).toBe("h:4");
});

/** A process that has the members a, b and c in its settings, and what it says to others who are members. */
function aNode(nodeId: string) {
  const founding = benchSettings();
  const cluster = defineCluster("test", founding, ports(founding.members));
  if (!founding.members.includes(nodeId)) cluster.learn(nodeId, "h:99");
  const file = { read: () => undefined, write: () => undefined } as unknown as ViewFile;
  const node = new FleaseNode({
    world: realWorld(),
    cluster,
    role: "member",
    nodeId,
    logger: silent,
    viewFile: file,
  });
  const closed: string[] = [];
  const refusal = (id: string) => node.admit({ role: "member", nodeId: id } as Identity)?.reason;
  const connect = (peerId: string) => {
    const owner = `${peerId}.1`;
    const calls = { open: true, sendCall: () => false, close: () => void closed.push(peerId) };
    const link = { role: "member", peerId, incarnation: "1", owner, account: "", address: "h:1", ...calls };
    node.connected(link as unknown as Link);
    return link as unknown as Link;
  };
  const tells = (link: Link, number: number, members: readonly string[]) =>
    void node.answer(link, "view", viewOf(number, members));
  return { node, cluster, refusal, connect, tells, closed };
}

test("a member that no view names yet lets in members that it does not know, until a view names it", async () => {
  const { node, cluster, refusal, connect, tells, closed } = aNode("n");
  expect([refusal("x"), refusal("a")]).toEqual([undefined, undefined]);
  const [x, y] = [connect("x"), connect("y")];
  expect(node.reachable()).toBe(0);
  // What it answers them confirms them, so that others are told of them from the start.
  expect(node.membership.duplicates.connected).toEqual({ x: "1", y: "1" });
  tells(x, 5, ["x", "z"]);
  // Now it knows where x belongs, and has no vote yet.
  expect(node.link(cluster.settings.members.indexOf("x"))).toBe(x);
  expect([node.reachable(), refusal("v"), closed]).toEqual([1, undefined, []]);
  tells(y, 6, ["n", "x", "z"]);
  expect([refusal("v"), refusal("z"), closed]).toEqual(["notAdmitted", undefined, ["y"]]);
  expect(aNode("a").refusal("x")).toBe("notAdmitted");
  await node.close();
});

test("members that are not known are let in under as many ids as a cluster has in its time", async () => {
  const { node, refusal, connect } = aNode("n");
  for (let count = 0; count < memberIdsMax; count += 1) connect(`x${count}`);
  expect([refusal("one-more"), refusal("x0")]).toEqual(["notAdmitted", undefined]);
  await node.close();
});
