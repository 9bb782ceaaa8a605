import { expect, test } from "vitest";
import { at, benchSettings } from "../../../../../../test/support/flease-bench.js";
import { duringFaults } from "../../../../../../test/planted/switches.js";
import { FleasePeer } from "../../peer.js";
import { memberIdsMax } from "../../protocol/settings.js";
import { defineCluster } from "../cluster.js";
import { isAddress } from "../../../runtime/address.js";
import { silent } from "../../../runtime/logger.js";
import { realWorld } from "../../../runtime/world.js";
import { FleaseNode } from "../flease-node.js";
import { NodeViews } from "./node-views.js";
import type { ViewsHost } from "./views-host.js";
import type { Link } from "../transport/link.js";
import type { Identity } from "../wire/identity.js";
import { readPublishedView } from "../../views/document.js";
import type { ViewFile } from "./view-file.js";
import type { FiledView } from "../../views/document.js";

const ports = (ids: readonly string[]) => Object.fromEntries(ids.map((id, index) => [id, `h:${index + 1}`]));

/** A member with a file in memory, which receives notes from the test. */
function aMember() {
  const founding = benchSettings();
  const cluster = defineCluster("test", founding, ports(founding.members));
  let ms = 0;
  let kept: unknown;
  const undialed: string[] = [];
  const undial = (address: string) => void undialed.push(address);
  const file: Pick<ViewFile, "read" | "write" | "path"> = {
    path: "views.json",
    read: () => undefined,
    write: (filed: FiledView) => {
      if (isBroken) throw new Error("the disk is full");
      kept = JSON.parse(JSON.stringify({ ...filed, settled: [] }));
    },
  };
  let isBroken = false;
  const breakFile = () => void (isBroken = true);
  const host = {
    nodeId: founding.members[0]!,
    role: "member",
    cluster,
    transport: { links: [], loopback: undefined, dial: () => undefined, undial },
    now: () => host.peer.read(at(ms).mono, at(ms).wall),
    membership: { duplicates: { votes: () => true, counts: () => true } },
    linkTo: () => undefined,
    dialMembers: () => undefined,
    events: { log: () => undefined, limited: () => undefined },
  } as unknown as ViewsHost & { peer: FleasePeer };
  const views = new NodeViews(host, { file, state: "new" });
  const medium = { send: () => undefined, reaches: () => true, notify: () => false };
  const options = { owner: "a.1", seed: 1, acceptor: true, views: views.port() };
  host.peer = new FleasePeer(cluster.settings, options, at(0).mono, at(0).wall, medium, () => undefined);
  const sends = (peerId: string, params: object) =>
    views.heard({ role: "member", peerId } as Link, params) as { stamp: number };
  const asks = (peerId: string, params: object) =>
    views.answer({ role: "member", peerId } as Link, "standing", params) as { consents: boolean };
  const later = (passMs: number) => void (ms += passMs);
  return { cluster, host, views, sends, asks, later, undialed, breakFile, kept: () => kept };
}

function viewOf(number: number, members: readonly string[]) {
  const view = { number, stamp: number, members, cellSize: members.length };
  return { view, barrier: 0, settled: [], addresses: ports(members) };
}

test("of two concurrent changes one gets a member's consent, and the other after the first was given up", () => {
  const { asks, sends, later } = aMember();
  const begins = { begins: true };
  expect([asks("b", begins).consents, asks("c", begins).consents]).toEqual([true, false]);
  expect([asks("b", begins).consents, asks("c", {}).consents]).toEqual([true, true]);
  later(4_000);
  expect([asks("c", begins).consents, asks("b", begins).consents]).toEqual([true, false]);
  // The consent was for a change of that view, which is over.
  sends("c", viewOf(3, ["a", "b"]));
  expect(asks("b", begins).consents).toBe(true);
});

test("a view with more ids than a process can know is not entered, and the file can be read again", () => {
  const { cluster, host, sends, kept } = aMember();
  const room = memberIdsMax - cluster.settings.members.length;
  const many = Array.from({ length: room }, (_, index) => `x${index}`);
  for (const id of many.splice(5)) expect(cluster.learn(id, "h:9")).toBe(true);
  for (const [index, id] of many.entries()) {
    const number = 2 + index;
    expect(sends("b", viewOf(number, ["b", "c", id])).stamp).toBe(number);
  }
  const { number } = host.peer.views.view;
  expect(() => sends("b", viewOf(number + 1, ["b", "c", "oneMore"]))).toThrow("restart it");
  expect(host.peer.views.view.number).toBe(number);
  expect(readPublishedView(kept(), isAddress).view.number).toBe(number);
});

test("an address dialed for a joining member that never came is dropped", async () => {
  const { host, views, sends, later, undialed } = aMember();
  const add = (id: string, address: string) =>
    views.change({ mayBeMember: true } as Link, { add: id, address });
  later(2_000);
  host.peer.maintain(host.now());
  expect((await add("d", "h:4")).waiting).toMatchObject({ code: "UNREACHABLE" });
  expect((await add("e", "h:5")).waiting).toMatchObject({ code: "UNREACHABLE" });
  await expect(add("f", "h:2")).rejects.toThrow("h:2 is the address of b");
  sends("b", viewOf(2, ["a", "b", "c", "d"]));
  later(3_999);
  views.maintain(host.now());
  expect(undialed).toEqual([]);
  later(1);
  views.maintain(host.now());
  expect(undialed).toEqual(["h:5"]);
});

test("a joining member announced at another address is no longer dialed at the first one", async () => {
  const { host, views, later, undialed } = aMember();
  const add = (id: string, address: string) =>
    views.change({ mayBeMember: true } as Link, { add: id, address });
  later(2_000);
  host.peer.maintain(host.now());
  await add("d", "h:4");
  await add("d", "h:5");
  await add("d", "h:5");
  expect(undialed).toEqual(["h:4"]);
  later(4_000);
  views.maintain(host.now());
  expect(undialed).toEqual(["h:4", "h:5"]);
});

/** A member whose peers answer as the test says, and a record of what it asked them. */
function aBeginner() {
  const member = aMember();
  const { host, later } = member;
  const others = { standing: {} as object, invite: { invited: true } as object, delayMs: 0 };
  later(2_000);
  host.peer.maintain(host.now());
  const call = async (_link: unknown, method: string) => {
    later(others.delayMs);
    const { stamp } = host.peer.views.view;
    const standing = { stamp, keeps: true, votes: true, waitMs: 0, knowsComing: true, consents: true };
    return method === "standing" ? { ...standing, ...others.standing } : others.invite;
  };
  Object.assign(host, { linkTo: (id: string) => ({ peerId: id }) });
  Object.assign(host.transport, { call });
  const remove = (id: string) => member.views.change({ mayBeMember: true } as Link, { remove: id });
  return { ...member, others, remove };
}

test("a joining member with the address of a running one is not dialed before that one has stopped", async () => {
  const { host, views } = aBeginner();
  const dialed: string[] = [];
  Object.assign(host.transport, { dial: (address: string) => void dialed.push(address) });
  const replace = (id: string) => {
    const add = { add: "d", address: host.cluster.addresses[host.cluster.settings.members.indexOf(id)]! };
    return views.change({ mayBeMember: true } as Link, { ...add, remove: id });
  };
  for (const id of ["a", "b"]) {
    const { waiting, number } = await replace(id);
    expect([number, dialed]).toEqual([1, []]);
    expect(waiting).toMatchObject({
      code: "UNREACHABLE",
      text: expect.stringMatching(`^${id} still runs at`) as string,
    });
  }
  // b has stopped, and c is connected.
  Object.assign(host, { linkTo: (id: string) => (id === "b" ? undefined : { peerId: id }) });
  await replace("b");
  expect(dialed).toEqual(["h:2"]);
});

test("an invited member that knows of a later view is waited for; one that cannot store the invitation is refused", async () => {
  const { host, others, views, sends } = aBeginner();
  const add = () => views.change({ mayBeMember: true } as Link, { add: "d", address: "h:4" });
  others.invite = { invited: false, isPast: true };
  expect((await add()).waiting).toMatchObject({
    code: "TIMEOUT",
    text: expect.stringContaining("another change") as string,
  });
  others.invite = { invited: false, isPast: false };
  await expect(add()).rejects.toThrow("d cannot write its file for views");
  others.invite = { invited: true };
  expect((await add()).number).toBe(2);
  expect(host.peer.views.view.members).toContain("d");
  // The same from the other side.
  const comer = aMember();
  const invited = (number: number) =>
    comer.views.answer({ role: "member", peerId: "b" } as Link, "invite", { number });
  comer.sends("b", viewOf(4, ["b", "c"]));
  expect([invited(4), invited(5)]).toEqual([
    { invited: false, isPast: true },
    { invited: true, isPast: false },
  ]);
  comer.breakFile();
  expect(invited(6)).toEqual({ invited: false, isPast: false });
  expect(sends("b", viewOf(9, ["b"])).stamp).toBe(9);
});

test("a change begins in time or not at all: consents expire", async () => {
  const { others, remove, host } = aBeginner();
  others.delayMs = 1_500;
  expect((await remove("c")).waiting).toMatchObject({ code: "TIMEOUT" });
  expect(host.peer.views.view.number).toBe(1);
  others.delayMs = 100;
  expect(await remove("c")).toMatchObject({ number: 2, joint: { before: ["a", "b", "c"] } });
  const late = aBeginner();
  late.others.delayMs = 1_500;
  expect((await duringFaults({ consentForEver: true }, () => late.remove("c"))).number).toBe(2);
});

test("of members that begin changes concurrently all but the smallest id yield", async () => {
  const { others, remove, asks, later } = aBeginner();
  const isFree = () => asks("b", { begins: true }).consents;
  others.standing = { consents: false, consentTo: "b" };
  expect((await remove("c")).waiting).toMatchObject({ code: "TIMEOUT" });
  // b receives this, and stands back.
  expect(isFree()).toBe(false);
  others.standing = { consents: false, consentTo: "A" };
  expect((await remove("c")).waiting).toMatchObject({ code: "TIMEOUT" });
  expect(isFree()).toBe(true);
  others.standing = {};
  later(4_900);
  expect((await remove("c")).waiting).toMatchObject({ text: "A is beginning another change" });
  later(101);
  expect((await remove("c")).number).toBe(2);
});

test("a member that has learnt of a view that it cannot store begins no change, and reports that", async () => {
  const { others, remove, sends, host, breakFile } = aBeginner();
  Object.defineProperty(others, "standing", {
    get: () => {
      breakFile();
      sends("b", viewOf(3, ["a", "b"]));
      return {};
    },
  });
  expect((await remove("c")).waiting).toMatchObject({ code: "NO_QUORUM", elsewhere: true });
  expect(host.peer.views.view.number).toBe(1);
});

test("a member outside every view refers change requests to another", async () => {
  const { sends, remove } = aBeginner();
  sends("b", viewOf(3, ["b", "c"]));
  expect((await remove("c")).waiting).toMatchObject({ elsewhere: true });
});

/** A process that has members a, b and c in its settings, and what it sends to other members. */
function aNode(nodeId: string) {
  const founding = benchSettings();
  const cluster = defineCluster("test", founding, ports(founding.members));
  if (!founding.members.includes(nodeId)) cluster.learn(nodeId, "h:99");
  const file = { path: "views.json", read: () => undefined, write: () => undefined };
  const node = new FleaseNode({
    world: realWorld(),
    cluster,
    role: "member",
    nodeId,
    logger: silent,
    viewKeeping: { file, state: founding.members.includes(nodeId) ? "new" : undefined },
  });
  const closed: string[] = [];
  const refusal = (id: string) => node.connections.admit({ role: "member", nodeId: id } as Identity)?.reason;
  const connect = (peerId: string) => {
    const owner = `${peerId}.1`;
    const calls = { open: true, sendCall: () => false, close: () => void closed.push(peerId) };
    const link = { role: "member", peerId, incarnation: "1", owner, account: "", address: "h:1", ...calls };
    node.connections.connected(link as unknown as Link);
    return link as unknown as Link;
  };
  const sends = (link: Link, number: number, members: readonly string[]) =>
    void node.calls.answer(link, "view", viewOf(number, members));
  return { node, cluster, refusal, connect, sends, closed };
}

test("a member admits members that it does not know, and places them when a view names them", async () => {
  const { node, cluster, refusal, connect, sends, closed } = aNode("n");
  expect([refusal("x"), refusal("a")]).toEqual([undefined, undefined]);
  const [x, y] = [connect("x"), connect("y")];
  expect(node.reachable()).toBe(0);
  // The node's answers confirm both, so that others learn of them from the start.
  expect(node.membership.duplicates.connected).toEqual({ x: "1", y: "1" });
  sends(x, 5, ["x", "z"]);
  // Now it knows that x is a member, and has no vote yet.
  expect(node.link(cluster.settings.members.indexOf("x"))).toBe(x);
  expect([node.reachable(), refusal("v"), closed]).toEqual([1, undefined, []]);
  sends(y, 6, ["n", "x", "z"]);
  expect([refusal("v"), refusal("z"), closed]).toEqual([undefined, undefined, []]);
  // A member with a vote may have an old view, and learn of a newer one from members added since.
  const { node: a, refusal: atA, connect: toA, sends: sendA } = aNode("a");
  expect(atA("x")).toBeUndefined();
  sendA(toA("x"), 7, ["x", "z"]);
  expect([a.status().view, a.status().state]).toEqual([7, "learner"]);
  await a.close();
  await node.close();
});

test("unknown members are admitted under at most as many ids as a cluster has in its lifetime", async () => {
  const { node, refusal, connect } = aNode("n");
  for (let count = 0; count < memberIdsMax; count += 1) connect(`x${count}`);
  expect([refusal("one-more"), refusal("x0")]).toEqual(["notAdmitted", undefined]);
  await node.close();
});
