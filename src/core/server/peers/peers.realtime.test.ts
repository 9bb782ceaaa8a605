import { once } from "node:events";
import { type Server as TcpServer, type Socket, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { freePorts } from "../../../../test/free-ports.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { PeerMessage } from "../../replica/types.js";
import type { CoreMember } from "../../state/members.js";
import { snapshotPieces } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { helloBytes, readHello, type Self, welcomeBytes } from "./hello.js";
import { Frames, frame } from "./frames.js";
import { foundingMember } from "../common/identity.js";
import type { TlsFiles } from "../common/config.js";
import { PeerLink } from "./link.js";
import { Peers } from "./peers.js";

/** Servers of one core that only talk to each other, and others who come to their ports. */
const names = ["a", "b"];
let running: Peers[] = [];
let sockets: Socket[] = [];
let servers: TcpServer[] = [];
afterEach(() => {
  for (const peers of running) peers.close();
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
  [running, sockets, servers] = [[], [], []];
});

const eventually = (what: string, holds: () => boolean) =>
  vi.waitFor(
    () => {
      if (!holds()) throw new Error(`it did not happen: ${what}`);
    },
    { timeout: 10_000, interval: 20 },
  );

const selfOf = (index: number, disk: bigint, cluster = 7n): Self => ({
  cluster,
  id: BigInt(index + 1),
  name: names[index]!,
  disk,
});

const meta = { index: 1, term: 1, membership: { voters: [1n, 2n], learners: [] } };

const emptySnapshot = {
  list: () => Promise.resolve([meta]),
  read: () => Promise.resolve({ meta, batches: [[...snapshotPieces(new CoreState())]] }),
};

const membersAt = (ports: readonly number[]) =>
  names.map((name, at) =>
    foundingMember({ id: BigInt(at + 1), name, peerUrls: [`http://127.0.0.1:${ports[at]}`] }),
  );

class Server {
  readonly messages: PeerMessage[] = [];
  readonly troubles: string[] = [];
  readonly disks = new Map<bigint, bigint>();
  snapshots = 0;
  /** How often it was told that it is no member any more. */
  removals = 0;
  /** Its own disk takes that long. */
  writing: Promise<unknown> = Promise.resolve();
  readonly peers: Peers;
  readonly #port: number;

  /** Tokens of the others, by their ids. */
  readonly tokens = new Map<bigint, Uint8Array>();

  constructor(index: number, ports: readonly number[], disk: bigint, cluster?: bigint, known = names) {
    this.#port = ports[index]!;
    const tokenFor = (member: bigint) => Uint8Array.of(index + 1, Number(member));
    this.peers = new Peers({
      self: selfOf(index, disk, cluster),
      roll: { members: membersAt(ports).filter(({ name }) => known.includes(name)), removed: new Set() },
      tls: undefined,
      silenceMs: 1_000,
      snapshots: emptySnapshot as unknown as Snapshots,
      handler: {
        message: (message) => void this.messages.push(message),
        snapshot: () => (this.snapshots += 1),
        snapshotSent: () => undefined,
        unreachable: () => undefined,
        removed: () => (this.removals += 1),
        isKnownDisk: (member, known) =>
          this.disks.has(member) ? this.disks.get(member) === known : undefined,
        learnDisk: async (member, learnt) => {
          await this.writing;
          if (!this.disks.has(member)) this.disks.set(member, learnt);
          return this.disks.get(member) === learnt;
        },
        tokenFor,
        isTokenOf: (member, shown) => Buffer.compare(tokenFor(member), shown) === 0,
        tokenOf: (member) => this.tokens.get(member) ?? new Uint8Array(),
        keepToken: (member, token) => void this.tokens.set(member, token),
        trouble: (_cause, text) => void this.troubles.push(text),
      },
    });
    running.push(this.peers);
  }

  open(): Promise<void> {
    return this.peers.open([{ host: "127.0.0.1", port: this.#port, isTls: false }]);
  }

  /** Until one arrives. */
  async reaches(other: Server, from: bigint, to: bigint): Promise<void> {
    const before = other.messages.length;
    await eventually("a message", () => {
      this.peers.send({ kind: "leader-answer", from, to, number: 1, index: 1, revision: 1, ttlSeconds: 1 });
      return other.messages.length > before;
    });
  }
}

async function come(port: number, words?: Uint8Array, from = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, localAddress: from });
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  if (words !== undefined) for (const part of frame([words])) socket.write(part);
  return socket;
}

test("a stranger that is first to claim a member's name is not taken for that member", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  await a.open();
  const forged = await come(ports[0]!, helloBytes(selfOf(1, 99n), 1n, false));
  forged.resume();
  await once(forged, "close");
  expect(a.troubles.join()).toContain("has to be reached by us first");
  const b = new Server(1, ports, 22n);
  await b.open();
  await a.reaches(b, 1n, 2n);
  await b.reaches(a, 2n, 1n);
  expect([a.disks.get(2n), b.disks.get(1n)]).toEqual([22n, 11n]);
  const again = await come(ports[0]!, helloBytes(selfOf(1, 99n), 1n, false));
  again.resume();
  await once(again, "close");
  expect(a.troubles.join()).toContain("has come back without its data directory");
});

test("a server of another core at a member's address is not taken for that member", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  const other = new Server(1, ports, 99n, 8n);
  await other.open();
  await a.open();
  await eventually("it was met", () => a.troubles.join().includes("its cluster id is"));
  other.peers.close();
  const b = new Server(1, ports, 22n);
  await b.open();
  await a.reaches(b, 1n, 2n);
  expect(a.disks.get(2n)).toBe(22n);
});

test("a server that is refused hears why, however slow its own disk is", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  a.disks.set(2n, 22n);
  await a.open();
  const b = new Server(1, ports, 33n);
  b.writing = eventually("it was refused", () => b.troubles.length > 0);
  await b.open();
  await b.writing;
  expect(b.troubles[0]).toContain("b has come back without its data directory");
});

test("a hundred connections that say nothing keep no member out", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  await a.open();
  const idle = await Promise.all(Array.from({ length: 100 }, () => come(ports[0]!)));
  const b = new Server(1, ports, 22n);
  await b.open();
  await b.reaches(a, 2n, 1n);
  await a.reaches(b, 1n, 2n);
  await eventually("the oldest are given up", () => idle.filter(({ closed }) => closed).length >= 36);
  expect([a.messages.length, b.messages.length].every((count) => count > 0)).toBe(true);
});

test.runIf(process.platform === "linux")(
  "a host that comes again and again keeps nobody of another host out, who needs longer to say who he is",
  async () => {
    const ports = await freePorts(2);
    const a = new Server(0, ports, 11n);
    a.disks.set(2n, 22n);
    await a.open();
    const member = await come(ports[0]!);
    let isHeard = false;
    member.on("data", () => (isHeard = true));
    const crowd = await Promise.all(
      Array.from({ length: 100 }, () => come(ports[0]!, undefined, "127.0.0.2")),
    );
    await eventually("some are given up", () => crowd.filter(({ closed }) => closed).length >= 36);
    for (const part of frame([helloBytes(selfOf(1, 22n), 1n, false)])) member.write(part);
    await eventually("it is answered, or closed", () => isHeard || member.closed);
    expect(isHeard).toBe(true);
  },
);

test("a member that comes again takes the place of its older connection", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  a.disks.set(2n, 22n);
  await a.open();
  const hello = helloBytes(selfOf(1, 22n), 1n, false);
  const first = await come(ports[0]!, hello);
  await once(first, "data");
  const second = await come(ports[0]!, hello);
  await once(first.resume(), "close");
  expect(second.closed).toBe(false);
});

test("a server that has not heard of a member calls it back, and both are heard; who was removed is not", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n, undefined, ["a"]);
  await a.open();
  const b = new Server(1, ports, 22n);
  await b.open();
  await b.reaches(a, 2n, 1n);
  await a.reaches(b, 1n, 2n);
  expect(a.disks.size).toBe(0);
  const forged = await come(ports[0]!, helloBytes(selfOf(1, 99n), 1n, false));
  await once(forged.resume(), "close");
  expect(a.troubles.join()).toContain("has come back without its data directory");
  a.peers.update({ members: membersAt(ports).slice(0, 1), removed: new Set([2n]) });
  await eventually("it is refused", () => b.troubles.join().includes("is no member of this cluster"));
});

/** Tells all that come to a port that they are no members any more. */
async function removerAt(port: number, self: Self): Promise<{ told: number }> {
  const remover = { told: 0 };
  const server = createServer((socket) => {
    sockets.push(socket);
    const frames = new Frames((body) => {
      for (const part of frame([welcomeBytes(self, readHello(body), "", true)])) socket.write(part);
      remover.told += 1;
      setTimeout(() => socket.destroy(), 20);
    });
    socket.on("data", (chunk) => frames.push(chunk)).on("error", () => undefined);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return remover;
}

test("one that nobody knows, or that answers in a member's place, removes nobody; a member does", async () => {
  const [own, other, third] = (await freePorts(3)) as [number, number, number];
  const a = new Server(0, [own, other], 11n);
  a.disks.set(2n, 22n);
  await a.open();
  const imposter = await removerAt(other, selfOf(1, 99n));
  const stranger = { ...selfOf(1, 99n), id: 5n, name: "c", peerUrls: [`http://127.0.0.1:${third}`] };
  const guest = await removerAt(third, stranger);
  await come(own, helloBytes(stranger, 1n, false));
  await eventually("both have told", () => imposter.told > 2 && guest.told > 2);
  expect(a.removals).toBe(0);
  servers.shift()!.close();
  for (const socket of sockets) socket.destroy();
  await removerAt(other, selfOf(1, 22n));
  await eventually("the member has told", () => a.removals > 0);
});

test("who may be anybody has this server call no socket of its machine", async () => {
  const [own, other] = (await freePorts(2)) as [number, number];
  const a = new Server(0, [own, other], 11n);
  await a.open();
  const path = join(tmpdir(), `lh-guest-${process.pid}`);
  let calls = 0;
  const server = createServer((socket) => {
    calls += 1;
    socket.destroy();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const stranger = { ...selfOf(1, 99n), id: 5n, name: "c", peerUrls: [`unix://${path}`] };
  await once(await come(own, helloBytes(stranger, 1n, false)), "data");
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(calls).toBe(0);
});

test("files of certificates that cannot be read end nothing: it is tried again", async () => {
  const troubles: string[] = [];
  const link = new PeerLink({
    peer: foundingMember({ id: 2n, name: "b", peerUrls: ["https://127.0.0.1:1"] }),
    hello: () => new Uint8Array(),
    tls: { certFile: "/nowhere/cert.pem", keyFile: "/nowhere/key.pem", clientCertAuth: false } as TlsFiles,
    silenceMs: 1_000,
    unreachable: () => undefined,
    trouble: (text) => void troubles.push(text),
    connected: () => undefined,
    removed: () => undefined,
    judge: () => Promise.resolve(""),
  });
  await eventually("it was tried again", () => troubles.length > 2);
  link.close();
  expect(troubles[0]).toContain("/nowhere");
});

test("a snapshot goes where its receiver was reached, if one of its addresses is out of date", async () => {
  const [stale, ...ports] = (await freePorts(3)) as [number, number, number];
  const a = new Server(0, ports, 11n);
  const b = new Server(1, ports, 22n);
  await a.open();
  await b.open();
  const [first, second] = membersAt(ports) as [CoreMember, CoreMember];
  const moved = { ...second, peerUrls: [`http://127.0.0.1:${stale}`, ...second.peerUrls] };
  a.peers.update({ members: [first, moved], removed: new Set() });
  await a.reaches(b, 1n, 2n);
  a.peers.send({ kind: "snapshot", from: 1n, to: 2n, term: 1, meta });
  await eventually("the snapshot has come", () => b.snapshots > 0);
  expect(a.troubles.join()).not.toContain("a snapshot did not reach");
});

/** Where a looks for b, where b is now, and a place of somebody else. */
async function moved() {
  const [own, former, now, other] = await freePorts(4);
  const a = new Server(0, [own!, former!], 11n);
  const b = new Server(1, [own!, now!], 22n);
  return { a, b, ports: { own: own!, former: former!, now: now!, other: other! } };
}

/** What comes to a place, and nobody answers. */
async function visitorsOf(port: number): Promise<{ count: number }> {
  const visitors = { count: 0 };
  const server = createServer((socket) => {
    visitors.count += 1;
    socket.destroy();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return visitors;
}

const url = (port: number) => `http://127.0.0.1:${port}`;

/** The same, when they have met where the second one was: it has the token by which it is known again. */
async function movedAfterTheyMet() {
  const servers = await moved();
  const { a, b, ports } = servers;
  const before = new Server(1, [ports.own, ports.former], 22n);
  await before.open();
  await a.open();
  await a.reaches(before, 1n, 2n);
  await before.reaches(a, 2n, 1n);
  before.peers.close();
  for (const [member, token] of before.tokens) b.tokens.set(member, token);
  return servers;
}

test("a member that has moved is believed by the one that had called it where it was", async () => {
  const { a, b } = await movedAfterTheyMet();
  await b.open();
  await b.reaches(a, 2n, 1n);
  await a.reaches(b, 1n, 2n);
  expect(b.messages.length).toBeGreaterThan(0);
});

test("a member that hears only later where it is itself tells that those who know it, at once", async () => {
  const { a, b, ports } = await movedAfterTheyMet();
  const [first, second] = membersAt([ports.own, ports.now]) as [CoreMember, CoreMember];
  b.peers.update({ members: [first, { ...second, peerUrls: [url(ports.former)] }], removed: new Set() });
  await b.open();
  await b.reaches(a, 2n, 1n);
  b.peers.update({ members: [first, second], removed: new Set() });
  await a.reaches(b, 1n, 2n);
  expect(a.troubles.join()).not.toContain("does not show");
});

test("one that has moved, and cannot show that it is who was there, is not looked for elsewhere", async () => {
  const { a, b, ports } = await moved();
  a.disks.set(2n, 22n);
  const visitors = await visitorsOf(ports.former);
  await a.open();
  await b.open();
  await b.reaches(a, 2n, 1n);
  await eventually("it was said", () => a.troubles.join().includes("does not show that it is who was at"));
  const before = visitors.count;
  await eventually("a looks for it where it was", () => visitors.count > before + 3);
  expect(b.messages).toEqual([]);
});

test("who claims to be a member, with its disk, leads nobody to another place", async () => {
  const { a, ports } = await moved();
  a.disks.set(2n, 22n);
  const lured = await visitorsOf(ports.other);
  const visitors = await visitorsOf(ports.former);
  await a.open();
  const claims = [new Uint8Array(), Uint8Array.of(1, 1), Uint8Array.of(2, 1), new Uint8Array(10_000)];
  for (const token of claims) {
    const claimed = { ...selfOf(1, 22n), peerUrls: [url(ports.other)] };
    const thief = await come(ports.own, helloBytes(claimed, 1n, false, { token, given: new Uint8Array() }));
    await once(thief, "data");
  }
  const before = visitors.count;
  await eventually("a looks for it where it was", () => visitors.count > before + 5);
  expect(lured.count).toBe(0);
});

test("who claims to be a member takes from nobody what that member has given, and where it said it is", async () => {
  const { a, b, ports } = await moved();
  a.disks.set(2n, 22n);
  b.disks.set(1n, 11n);
  a.tokens.set(2n, Uint8Array.of(2, 1));
  b.tokens.set(1n, Uint8Array.of(1, 2));
  await a.open();
  await b.open();
  await a.reaches(b, 1n, 2n);
  const given = Uint8Array.of(9, 9);
  for (const token of [new Uint8Array(), Uint8Array.of(1, 1)]) {
    const claimed = { ...selfOf(1, 22n), peerUrls: [url(ports.former)] };
    await once(await come(ports.own, helloBytes(claimed, 1n, false, { token, given })), "data");
  }
  expect([...a.tokens.get(2n)!]).toEqual([2, 1]);
  b.peers.close();
  const again = new Server(1, [ports.former, ports.now], 22n);
  again.disks.set(1n, 11n);
  await again.open();
  // Only a calls: where the other one once said that it is.
  await a.reaches(again, 1n, 2n);
  const token = Uint8Array.of(1, 2);
  await once(await come(ports.own, helloBytes(selfOf(1, 22n), 1n, false, { token, given })), "data");
  expect([...a.tokens.get(2n)!]).toEqual([9, 9]);
});

test("at the place that a member has told another disk is not taken for it, and is not learnt", async () => {
  const { a, ports } = await moved();
  a.disks.set(2n, 22n);
  const other = new Server(1, [ports.own, ports.other], 99n);
  other.disks.set(1n, 11n);
  await other.open();
  await a.open();
  const told = { ...selfOf(1, 22n), peerUrls: [url(ports.other), "nonsense"] };
  const tokens = { token: Uint8Array.of(1, 2), given: new Uint8Array() };
  await once(await come(ports.own, helloBytes(told, 1n, false, tokens)), "data");
  await eventually("it was met", () => a.troubles.join().includes("somebody else is there"));
  a.peers.send({ kind: "leader-answer", from: 1n, to: 2n, number: 1, index: 1, revision: 1, ttlSeconds: 1 });
  expect(other.messages).toEqual([]);
  expect(a.disks.get(2n)).toBe(22n);
});
