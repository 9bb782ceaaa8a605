import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { freePorts } from "../../../../test/free-ports.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { PeerMessage } from "../../replica/types.js";
import type { CoreMember } from "../../state/members.js";
import { snapshotPieces } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { frame } from "./frames.js";
import { helloBytes, type Self } from "./hello.js";
import { foundingMember } from "../common/identity.js";
import { Peers } from "./peers.js";

/** Servers of one core that only talk to each other, and others who come to their ports. */
const names = ["a", "b"];
let running: Peers[] = [];
let sockets: Socket[] = [];
afterEach(() => {
  for (const peers of running) peers.close();
  for (const socket of sockets) socket.destroy();
  [running, sockets] = [[], []];
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
  /** Its own disk takes that long. */
  writing: Promise<unknown> = Promise.resolve();
  readonly peers: Peers;
  readonly #port: number;

  constructor(index: number, ports: readonly number[], disk: bigint, cluster?: bigint, known = names) {
    this.#port = ports[index]!;
    this.peers = new Peers({
      self: selfOf(index, disk, cluster),
      members: membersAt(ports).filter(({ name }) => known.includes(name)),
      tls: undefined,
      silenceMs: 1_000,
      snapshots: emptySnapshot as unknown as Snapshots,
      handler: {
        message: (message) => void this.messages.push(message),
        snapshot: () => (this.snapshots += 1),
        snapshotSent: () => undefined,
        unreachable: () => undefined,
        removed: () => undefined,
        isKnownDisk: (member, known) =>
          this.disks.has(member) ? this.disks.get(member) === known : undefined,
        learnDisk: async (member, learnt) => {
          await this.writing;
          if (!this.disks.has(member)) this.disks.set(member, learnt);
          return this.disks.get(member) === learnt;
        },
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

async function come(port: number, words?: Uint8Array): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port });
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
