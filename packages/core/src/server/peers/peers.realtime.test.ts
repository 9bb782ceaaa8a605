import { once } from "node:events";
import { type Server as TcpServer, type Socket, connect, createServer } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { freePorts } from "../../../../../test/free-ports.js";
import type { Snapshots } from "../../journal/snapshots.js";
import { create, toBinary } from "@bufbuild/protobuf";
import { PeerWelcomeSchema } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import type { PeerMessage } from "../../replica/types.js";
import { decodeMessage } from "./codec.js";
import type { CoreMember } from "../../state/members.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { snapshotPieces } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { PeerHelloSchema, type PeerWelcome } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import { helloBytes, readHello, readWelcome, type Self, welcomeBytes } from "./hello.js";
import { Frames, frame } from "./frames.js";
import { foundingMember } from "../config/identity.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import { PeerLink } from "./link.js";
import { Peers } from "./peers.js";

/** Servers of one core that send each other messages, and strangers that connect to their ports. */
const names = ["a", "b", "c"];
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
  version: 7,
});

const meta = { index: 1, term: 1, membership: { voters: [1n, 2n], learners: [] } };

/** A snapshot of about 40,000 bytes. */
function snapshots() {
  const state = new CoreState();
  for (let number = 0; number < 40; number += 1) {
    const value = { key: Buffer.from(`k${number}`), value: new Uint8Array(1_000) };
    state.apply(create(CommandSchema, { body: { case: "put", value } }), 1);
  }
  const batches = [[...snapshotPieces(state)]];
  return { list: () => Promise.resolve([meta]), read: () => Promise.resolve({ meta, batches }) };
}

const url = (port: number) => `http://127.0.0.1:${port}`;

const membersAt = (ports: readonly number[]) =>
  ports.map((port, at) => foundingMember({ id: BigInt(at + 1), name: names[at]!, peerUrls: [url(port)] }));

class Server {
  readonly messages: PeerMessage[] = [];
  readonly troubles: string[] = [];
  readonly disks = new Map<bigint, bigint>();
  readonly spoken = new Map<bigint, number>();
  snapshots = 0;
  /** Number of times it was told that it is no longer a member. */
  removals = 0;
  /** Delays the writes to its own disk. */
  writing: Promise<unknown> = Promise.resolve();
  readonly peers: Peers;
  readonly #port: number;

  /** @param more the members known to its log, and its flags */
  constructor(
    index: number,
    ports: readonly number[],
    disk: bigint,
    {
      cluster,
      initialUrls = [],
      known = names,
      snapshotBytesMax = 1_000_000,
    }: { cluster?: bigint; initialUrls?: string[]; known?: string[]; snapshotBytesMax?: number } = {},
  ) {
    this.#port = ports[index]!;
    this.peers = new Peers({
      self: selfOf(index, disk, cluster),
      roll: {
        members: membersAt(ports).filter(({ name }) => known.includes(name)),
        removed: new Set(),
        version: 7,
      },
      initialUrls,
      tls: undefined,
      silenceMs: 1_000,
      snapshots: snapshots() as unknown as Snapshots,
      snapshotBytesMax,
      handler: {
        message: (message) => void this.messages.push(message),
        snapshot: () => (this.snapshots += 1),
        snapshotSent: () => undefined,
        arriving: () => undefined,
        unreachable: () => undefined,
        speaks: (member, version) => void this.spoken.set(member, version),
        connected: () => undefined,
        drained: () => undefined,
        removed: () => (this.removals += 1),
        isKnownDisk: (member, known) =>
          this.disks.has(member) ? this.disks.get(member) === known : undefined,
        learnDisk: async (member, learnt) => {
          await this.writing;
          if (!this.disks.has(member)) this.disks.set(member, learnt);
          return this.disks.get(member) === learnt;
        },
        trouble: (_cause, text) => void this.troubles.push(text),
        refused: (_address, text) => void this.troubles.push(text),
        unusable: (text) => void this.troubles.push(text),
      },
    });
    running.push(this.peers);
  }

  open(): Promise<void> {
    return this.peers.open([{ host: "127.0.0.1", port: this.#port, isTls: false }]);
  }

  /** Sends until a message arrives. */
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

test("a stranger that claims a member's name first does not become that member", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  await a.open();
  const forged = await come(ports[0]!, helloBytes(selfOf(1, 99n), 1n, "messages"));
  forged.resume();
  await once(forged, "close");
  expect(a.troubles.join()).toContain("has to be reached by us first");
  const b = new Server(1, ports, 22n);
  await b.open();
  await a.reaches(b, 1n, 2n);
  await b.reaches(a, 2n, 1n);
  expect([a.disks.get(2n), b.disks.get(1n)]).toEqual([22n, 11n]);
  const again = await come(ports[0]!, helloBytes(selfOf(1, 99n), 1n, "messages"));
  again.resume();
  await once(again, "close");
  expect(a.troubles.join()).toContain("has come back without its data directory");
});

test("a server of another core at a member's address is not taken for that member", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  const other = new Server(1, ports, 99n, { cluster: 8n });
  await other.open();
  await a.open();
  await eventually("it was met", () => a.troubles.join().includes("its cluster id is"));
  other.peers.close();
  const b = new Server(1, ports, 22n);
  await b.open();
  await a.reaches(b, 1n, 2n);
  expect(a.disks.get(2n)).toBe(22n);
});

test("a refused server gets the reason, however slow its own disk is", async () => {
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

test("a hundred silent connections keep no member out", async () => {
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
  "a host that reconnects again and again does not exclude a slower peer from another host",
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
    for (const part of frame([helloBytes(selfOf(1, 22n), 1n, "messages")])) member.write(part);
    await eventually("it is answered, or closed", () => isHeard || member.closed);
    expect(isHeard).toBe(true);
  },
);

test("a member's new connection replaces its older one", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  a.disks.set(2n, 22n);
  await a.open();
  const hello = helloBytes(selfOf(1, 22n), 1n, "messages");
  const first = await come(ports[0]!, hello);
  await once(first, "data");
  const second = await come(ports[0]!, hello);
  await once(first.resume(), "close");
  expect(second.closed).toBe(false);
});

/** The third server was added while the first was away: the first server's log does not know it. */
async function addedMeanwhile() {
  const ports = await freePorts(3);
  const a = new Server(0, ports, 11n, { known: ["a", "b"] });
  const b = new Server(1, ports, 22n);
  const c = new Server(2, ports, 33n);
  return { a, b, c, ports };
}

test("a member unknown to the log is accepted once a member lists it, unless it was removed", async () => {
  const { a, b, c, ports } = await addedMeanwhile();
  await a.open();
  await c.open();
  await eventually("it is refused", () => c.troubles.join().includes("the server 3 is no member"));
  await b.open();
  await c.reaches(a, 3n, 1n);
  await a.reaches(c, 1n, 3n);
  expect(a.disks.get(3n)).toBe(33n);
  a.peers.update({ members: membersAt(ports.slice(0, 2)), removed: new Set([3n]), version: 7 });
  const before = c.troubles.length;
  await eventually("it is refused", () =>
    c.troubles.slice(before).join().includes("the server 3 is no member of this cluster"),
  );
});

test("lists from a member of another core do not count", async () => {
  const { a, c, ports } = await addedMeanwhile();
  const other = new Server(1, ports, 22n, { cluster: 8n });
  await other.open();
  await c.open();
  await a.open();
  const told = () => c.troubles.filter((text) => text.includes("the server 3 is no member")).length;
  await eventually("it is refused again and again", () => told() > 8);
  expect(a.disks.size).toBe(0);
});

test("a server at an address in the flags may list itself", async () => {
  const ports = await freePorts(3);
  const initialUrls = [url(ports[2]!)];
  const a = new Server(0, ports, 11n, { known: ["a", "b"], initialUrls });
  const c = new Server(2, ports, 33n);
  await a.open();
  await c.open();
  await c.reaches(a, 3n, 1n);
  await a.reaches(c, 1n, 3n);
  expect(a.disks.get(3n)).toBe(33n);
});

/** A port that tells every server that it is no longer a member. */
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

test("only a member in this server's own log can remove it", async () => {
  const ports = (await freePorts(3)) as [number, number, number];
  const a = new Server(0, ports, 11n, { known: ["a", "b"], initialUrls: [url(ports[2])] });
  a.disks.set(2n, 22n);
  await a.open();
  const imposter = await removerAt(ports[1], selfOf(1, 99n));
  const c = new Server(2, ports, 33n);
  await c.open();
  await c.reaches(a, 3n, 1n);
  c.peers.close();
  const listed = await removerAt(ports[2], selfOf(2, 33n));
  await eventually("both have told", () => imposter.told > 2 && listed.told > 2);
  expect(a.removals).toBe(0);
  servers.shift()!.close();
  for (const socket of sockets) socket.destroy();
  await removerAt(ports[1], selfOf(1, 22n));
  await eventually("the member has told", () => a.removals > 0);
});

test("unreadable certificate files stop nothing: the dial is retried", async () => {
  const troubles: string[] = [];
  const link = new PeerLink({
    peer: foundingMember({ id: 2n, name: "b", peerUrls: ["https://127.0.0.1:1"] }),
    hello: () => new Uint8Array(),
    tls: { certFile: "/nowhere/cert.pem", keyFile: "/nowhere/key.pem", clientCertAuth: false } as TlsFiles,
    silenceMs: 1_000,
    unreachable: () => undefined,
    trouble: (text) => void troubles.push(text),
    connected: () => undefined,
    drained: () => undefined,
    removed: () => undefined,
    judge: () => Promise.resolve(""),
  });
  await eventually("it was tried again", () => troubles.length > 2);
  link.close();
  expect(troubles[0]).toContain("/nowhere");
});

test("a snapshot is sent to the address at which its receiver was reached, even if another is out of date", async () => {
  const [stale, ...ports] = (await freePorts(3)) as [number, number, number];
  const a = new Server(0, ports, 11n);
  const b = new Server(1, ports, 22n);
  await a.open();
  await b.open();
  const [first, second] = membersAt(ports) as [CoreMember, CoreMember];
  const moved = { ...second, peerUrls: [`http://127.0.0.1:${stale}`, ...second.peerUrls] };
  a.peers.update({ members: [first, moved], removed: new Set(), version: 7 });
  await a.reaches(b, 1n, 2n);
  a.peers.send({ kind: "snapshot", from: 1n, to: 2n, term: 1, meta });
  await eventually("the snapshot has come", () => b.snapshots > 0);
  expect(a.troubles.join()).not.toContain("a snapshot did not reach");
});

test("a snapshot beyond a server's bound is aborted", async () => {
  const ports = await freePorts(2);
  const a = new Server(0, ports, 11n);
  const b = new Server(1, ports, 22n, { snapshotBytesMax: 40_000 });
  await a.open();
  await b.open();
  await a.reaches(b, 1n, 2n);
  await b.reaches(a, 2n, 1n);
  a.peers.send({ kind: "snapshot", from: 1n, to: 2n, term: 1, meta });
  await eventually("it is refused", () => b.troubles.join().includes("a snapshot of more than 40000 bytes"));
  await eventually("its sender hears of it", () => a.troubles.join().includes("a snapshot did not reach b"));
  b.peers.send({ kind: "snapshot", from: 2n, to: 1n, term: 1, meta });
  await eventually("the other way it comes", () => a.snapshots > 0);
  expect(b.snapshots).toBe(0);
});

test("a member that only others list counts until they no longer list it", async () => {
  const { a, b, c, ports } = await addedMeanwhile();
  for (const server of [a, b, c]) await server.open();
  await c.reaches(a, 3n, 1n);
  expect(a.peers.known.map(({ id }) => id)).toEqual([1n, 2n, 3n]);
  // The entry that added the server was never committed.
  b.peers.update({ members: membersAt(ports.slice(0, 2)), removed: new Set(), version: 7 });
  const before = c.troubles.length;
  await eventually("it is refused", () =>
    c.troubles
      .slice(before)
      .join()
      .includes("a at http://127.0.0.1:" + ports[0]),
  );
});

test("a member that moved is found where another member lists it", async () => {
  const [former, ...ports] = (await freePorts(4)) as [number, number, number, number];
  const [own, , third] = ports;
  const a = new Server(0, [own, former, third], 11n);
  const b = new Server(1, ports, 22n);
  a.disks.set(2n, 22n);
  await a.open();
  await b.open();
  await b.reaches(a, 2n, 1n);
  expect(b.messages).toEqual([]);
  const c = new Server(2, ports, 33n);
  await c.open();
  await a.reaches(b, 1n, 2n);
});

test("a member that moved is found at its address in the flags", async () => {
  const [former, own, now] = (await freePorts(3)) as [number, number, number];
  const a = new Server(0, [own, former], 11n, { initialUrls: [url(now)] });
  const b = new Server(1, [own, now], 22n);
  a.disks.set(2n, 22n);
  await a.open();
  await b.open();
  await a.reaches(b, 1n, 2n);
  expect(a.messages).toEqual([]);
});

/** A hello as the previous version sends it: one version number, and no newest. */
function formerHello(version: number): Uint8Array {
  const { cluster, disk, id, name } = selfOf(1, 22n);
  return toBinary(
    PeerHelloSchema,
    create(PeerHelloSchema, { version, cluster, from: id, to: 1n, name, disk }),
  );
}

test.each([
  [7, 7, true],
  [7, 8, false],
  [6, 7, false],
  [8, 8, true],
  [9, 8, false],
])(
  "a server that speaks version %i only, in a cluster of version %i, is heard: %s",
  async (spoken, version, isHeard) => {
    const ports = await freePorts(2);
    const a = new Server(0, ports, 11n);
    a.disks.set(2n, 22n);
    a.peers.update({ members: membersAt(ports), removed: new Set(), version });
    await a.open();
    const socket = await come(ports[0]!, formerHello(spoken));
    const answers: PeerWelcome[] = [];
    const frames = new Frames((body) => void answers.push(readWelcome(body)));
    socket.on("data", (chunk) => frames.push(chunk));
    await eventually("it is answered", () => answers.length > 0);
    const [{ refusal, version: both }] = answers as [PeerWelcome];
    const own = version === 8 ? "8" : "7 to 8";
    const objection = `it speaks version ${spoken} of the protocol between servers, and this one ${own}`;
    expect(refusal).toBe(isHeard ? "" : objection);
    expect([both, a.spoken.get(2n)]).toEqual(isHeard ? [spoken, spoken] : [Math.min(spoken, 8), undefined]);
    socket.destroy();
    await eventually("it is forgotten with its connection", () => (a.spoken.get(2n) ?? 0) === 0);
  },
);
/** A server of this protocol version that records messages, and reads only the given connections. */
async function peerOf(
  version: number,
  reads: (isBulk: boolean) => boolean,
  pinged = (socket: Socket, _isBulk: boolean) => {
    for (const part of frame([])) socket.write(part);
  },
  welcomes = 1,
) {
  const got: { readonly message: PeerMessage; readonly isBulk: boolean }[] = [];
  const hellos: boolean[] = [];
  const bulk: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let isBulk: boolean | undefined;
    const frames = new Frames((body) => {
      if (isBulk === undefined) {
        const hello = readHello(body);
        isBulk = hello.bulk;
        hellos.push(isBulk);
        if (isBulk) bulk.push(socket);
        frames.bytesMax = 1 << 24;
        const welcome = create(PeerWelcomeSchema, { version, disk: 22n });
        for (let number = 0; number < welcomes; number += 1)
          for (const part of frame([toBinary(PeerWelcomeSchema, welcome)])) socket.write(part);
        if (!reads(isBulk)) setImmediate(() => socket.pause());
      } else if (body.length === 0) pinged(socket, isBulk);
      else got.push({ message: decodeMessage(Buffer.from(body), version), isBulk });
    });
    socket.on("data", (chunk) => frames.push(chunk)).on("error", () => undefined);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { bulk, got, hellos, port };
}

function linkTo(port: number, heard: string[], silenceMs = 60_000): PeerLink {
  return new PeerLink({
    peer: foundingMember({ id: 2n, name: "b", peerUrls: [`http://127.0.0.1:${port}`] }),
    hello: (isBulk) => helloBytes(selfOf(0, 11n), 2n, isBulk ? "bulk" : "messages"),
    tls: undefined,
    silenceMs,
    unreachable: () => void heard.push("unreachable"),
    trouble: () => undefined,
    connected: (takesRepeats) => void heard.push(`connected ${takesRepeats}`),
    drained: () => void heard.push("drained"),
    removed: () => undefined,
    judge: () => Promise.resolve(""),
  });
}

const heartbeat = {
  kind: "heartbeat",
  term: 1,
  commit: 0,
  round: 0,
  transfersOver: 0,
  from: 1n,
  to: 2n,
} as const;
const proposal = (bytes: number) =>
  ({
    kind: "propose",
    from: 1n,
    to: 2n,
    number: 1,
    term: 1,
    life: 3,
    settled: 1,
    again: false,
    command: new Uint8Array(bytes),
  }) as const;

test("heartbeats do not wait behind proposals; a full connection refuses proposals until it has room", async () => {
  const peer = await peerOf(8, (isBulk) => !isBulk);
  const heard: string[] = [];
  const link = linkTo(peer.port, heard);
  await eventually("both connections", () => heard.includes("connected true"));
  const sent = await fillWith(link, proposal(1 << 20));
  expect(sent).toBeGreaterThan(0);
  expect(sent).toBeLessThan(64);
  heard.splice(0);
  expect(link.send(proposal(1))).toBe(false);
  expect(link.send(heartbeat)).toBe(true);
  await eventually("a heartbeat", () => peer.got.some(({ message }) => message.kind === "heartbeat"));
  expect(peer.got.every(({ isBulk }) => !isBulk)).toBe(true);
  expect(heard).not.toContain("drained");
  peer.bulk[0]!.resume();
  await eventually("there is room", () => heard.includes("drained"));
  expect(link.send(proposal(1))).toBe(true);
  await eventually("all proposals", () => peer.got.filter(({ isBulk }) => isBulk).length === sent + 1);
  link.close();
});

/** Sends until no more is accepted; the kernel buffers some, too. */
async function fillWith(link: PeerLink, message: PeerMessage): Promise<number> {
  let sent = 0;
  for (let waited = 0; waited < 10; waited += 1) {
    for (; link.send(message); sent += 1) waited = 0;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return sent;
}

const append = (bytes: number): PeerMessage => ({
  kind: "append",
  from: 1n,
  to: 2n,
  term: 1,
  previousIndex: 1,
  previousTerm: 1,
  commit: 1,
  entries: [{ kind: "normal", index: 2, term: 1, data: new Uint8Array(bytes) }],
});

test("a deposed leader waits until its own messages are sent, and then forwards its clients' proposals", async () => {
  const peer = await peerOf(8, (isBulk) => !isBulk);
  const heard: string[] = [];
  const link = linkTo(peer.port, heard);
  await eventually("both connections", () => heard.includes("connected true"));
  expect(await fillWith(link, append(1 << 20))).toBeGreaterThan(31);
  expect(link.send(proposal(1))).toBe(false);
  peer.bulk[0]!.resume();
  await eventually("there is room", () => heard.includes("drained"));
  expect(link.send(proposal(1))).toBe(true);
  link.close();
});

test("a slow connection is kept while it makes progress", async () => {
  const silenceMs = 500;
  const peer = await peerOf(8, (isBulk) => !isBulk);
  const heard: string[] = [];
  const link = linkTo(peer.port, heard, silenceMs);
  await eventually("both connections", () => heard.includes("connected true"));
  await fillWith(link, append(1 << 20));
  const [bulk] = peer.bulk;
  bulk!.on("data", () => bulk!.pause());
  // For longer than the second connection may be silent (3 s), 64 KiB at a time.
  for (let step = 0; step < 100; step += 1) {
    bulk!.resume();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(heard).not.toContain("unreachable");
  link.close();
});

test("a second welcome causes no further connection", async () => {
  const peer = await peerOf(8, () => true, undefined, 2);
  const heard: string[] = [];
  const link = linkTo(peer.port, heard);
  await eventually("it is given up", () => heard.includes("unreachable"));
  expect(peer.bulk.length).toBeLessThan(2);
  link.close();
});

test("a server of the previous version gets everything on one connection, and no proposal twice", async () => {
  const peer = await peerOf(7, () => true);
  const heard: string[] = [];
  const link = linkTo(peer.port, heard);
  await eventually("a connection", () => heard.length > 0);
  expect(heard).toEqual(["connected false"]);
  for (const message of [proposal(9), heartbeat]) expect(link.send(message)).toBe(true);
  await eventually("both", () => peer.got.length === 2);
  const once = { ...proposal(9), life: 0, settled: 0 };
  expect(peer.got.map(({ message }) => message)).toEqual([once, heartbeat]);
  expect(peer.hellos).toEqual([false]);
  link.close();
});

test("a suspended process keeps its connections", async () => {
  const silenceMs = 500;
  const peer = await peerOf(8, () => true);
  const heard: string[] = [];
  const link = linkTo(peer.port, heard, silenceMs);
  await eventually("both connections", () => heard.length > 0);
  const cell = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(cell, 0, 0, 3 * silenceMs);
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(heard).toEqual(["connected true"]);
  link.close();
});

test("answers that arrived during a suspension are read before silence is judged", async () => {
  const silenceMs = 2_000;
  let pings = 0;
  const peer = await peerOf(
    8,
    () => true,
    (socket, isBulk) => {
      if (isBulk) return;
      pings += 1;
      // After one more silent heartbeat it would count as gone.
      if (pings < 5) return;
      for (const part of frame([])) socket.write(part);
      if (pings === 5) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, silenceMs / 4);
    },
  );
  const heard: string[] = [];
  const link = linkTo(peer.port, heard, silenceMs);
  await eventually("it is asked again afterwards", () => pings > 6 || heard.includes("unreachable"));
  expect(heard).toEqual(["connected true"]);
  link.close();
});

test("a server that answers nothing counts as gone", async () => {
  const peer = await peerOf(8, () => false);
  const heard: string[] = [];
  const link = linkTo(peer.port, heard, 500);
  await eventually("it is given up", () => heard.includes("unreachable"));
  expect(heard[0]).toBe("connected true");
  link.close();
});
