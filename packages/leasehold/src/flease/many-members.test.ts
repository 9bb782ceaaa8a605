import { expect, test } from "vitest";
import { at, benchSettings } from "../../../../test/support/flease-bench.js";
import { FleasePeer } from "./peer.js";
import type { PeerOutcomes } from "./peer.js";
import { copyMessage, Message } from "./protocol/message.js";
import { firstView, votersOf } from "./views/view.js";
import type { View } from "./views/view.js";
import { isAddress } from "../runtime/address.js";
import { ByteReader, ByteWriter } from "./tcp/wire/bytes.js";
import { decodeBatchHeader, decodeMessage, encodeMessage, openBatch, stampBatch } from "./tcp/wire/codec.js";
import { FRAME_HEADER_BYTES } from "./tcp/wire/frame.js";
import { readPublishedView, writePublishedView } from "./views/document.js";

/** Clusters of up to the maximum size, whose messages and views are encoded for the wire and decoded. */

/** Sizes around the limits of former encodings: 32-bit sets of members, 32-bit stamps, and 53-bit numbers. */
const sizes = [31, 32, 33, 34, 53, 54, 299, 300];

const resource = "orders/1";
const client = 1_000;

/** A message after encoding and decoding. */
function overTheWire(message: Message, owner: string): Message {
  const to = new ByteWriter(4_096);
  const clocks = { monoMs: 0, loMs: 0, hiMs: 0 };
  const echo = { monoMs: 0, loMs: 0, heldMs: 0, roundTripMs: -1 };
  stampBatch(to, openBatch(to, message.view), clocks, echo);
  encodeMessage(to, message);
  const from = new ByteReader();
  from.reset(Buffer.from(to.bytes.subarray(0, to.length)), FRAME_HEADER_BYTES, to.length);
  const view = decodeBatchHeader(from, clocks, echo);
  const arrived = new Message();
  decodeMessage(from, arrived, view, owner);
  return copyMessage(arrived);
}

/** Members, and a participant that acquires leases. Messages are delivered at once to those that are up. */
function aCluster(count: number, cellSize: number) {
  const members = Array.from({ length: count }, (_, index) => `m${String(index).padStart(3, "0")}`);
  const settings = benchSettings({ members, cellSize });
  const first = { ...firstView(settings), members: members.slice(0, -1) };
  const files = new Map<string, string>();
  const down = new Set<number>();
  const outcomes: string[] = [];
  let ms = 0;
  const now = (peer: FleasePeer) => peer.read(at(ms).mono, at(ms).wall);
  const underWay: { from: number; to: number; message: Message }[] = [];
  const send = (from: number, to: number, message: Message) => {
    if (!down.has(to))
      underWay.push({ from, to, message: overTheWire(message, peers.get(from)!.proposer.owner) });
  };
  const deliver = () => {
    for (let next = underWay.shift(); next !== undefined; next = underWay.shift()) {
      const { from, to, message } = next;
      const reply = new Message();
      const receiver = peers.get(to)!;
      if (receiver.receive(from, message, now(receiver), reply)) send(to, from, reply);
    }
  };
  const start = (index: number, acceptor: boolean) => {
    const id = members[index] ?? "";
    const medium = {
      send: (to: number, message: Message) => send(index, to, message),
      reaches: (to: number) => !down.has(to),
      notify: () => false,
    };
    const keep = (kept: object) => {
      files.set(id, JSON.stringify(writePublishedView({ ...told(kept), settled: new Map() })));
      return true;
    };
    const views = { id, kept: { view: first, barrier: 0 }, keep };
    const options = { owner: `${id}.1`, seed: index + 1, acceptor, views };
    const told = (note: object) => ({ ...(note as { view: View; barrier: number }), addresses });
    return new FleasePeer(settings, options, at(ms).mono, at(ms).wall, medium, () => undefined);
  };
  const addresses = Object.fromEntries(members.map((id) => [id, "h:1"]));
  const peers = new Map(members.map((_, index) => [index, start(index, true)]));
  const asking = start(client, false);
  peers.set(client, asking);
  const ignore = () => undefined;
  asking.attach({
    acquired: () => void outcomes.push("acquired"),
    refused: () => void outcomes.push("refused"),
    failed: () => void outcomes.push("failed"),
    renewed: ignore,
    lapsed: ignore,
    hinted: () => false,
  } satisfies PeerOutcomes);
  const pass = (passMs: number) => {
    ms += passMs;
    for (const peer of peers.values()) peer.maintain(now(peer));
  };
  /** Some members are sent one member's view, encoded for the wire and for a file. */
  const hear = (from: number, hearing: Iterable<FleasePeer> = peers.values()) => {
    const text = JSON.stringify(writePublishedView({ ...peers.get(from)!.views.note(), addresses }));
    const note = readPublishedView(JSON.parse(text), isAddress);
    for (const peer of hearing) peer.hearView(note, now(peer));
  };
  const acquire = () => {
    outcomes.length = 0;
    asking.proposer.acquire(resource, 500, 800, true, now(asking));
    deliver();
    for (let waitedMs = 0; outcomes.length === 0 && waitedMs < 1_000; waitedMs += 50) {
      ms += 50;
      asking.tick(now(asking));
      deliver();
    }
    const instance = asking.proposer.instanceOf(resource);
    if (instance?.holding === true) asking.proposer.release(instance, now(asking));
    deliver();
    return outcomes[0];
  };
  pass(settings.waitWallMs + 1);
  return { members, settings, peers, asking, files, down, pass, hear, acquire, now };
}

type Cluster = ReturnType<typeof aCluster>;

/**
 * The lease is acquired if exactly a majority of each cell is up, and not with one member fewer in either
 * cell.
 */
function countsVotes({ asking, down, acquire, pass }: Cluster): void {
  const { members, halves } = asking.cells.of(resource);
  const positions = members.map((_, position) => position);
  const cells =
    halves === undefined ? [positions] : halves.map(({ set }) => positions.filter((at) => (set >>> at) & 1));
  for (const [which, cell] of cells.entries()) {
    const majority = Math.floor(cell.length / 2) + 1;
    // Members that are only in the other cell stay up, and the last members of this cell go down first.
    for (const [up, outcome] of [
      [majority, "acquired"],
      [majority - 1, "failed"],
    ] as const) {
      down.clear();
      for (const position of cell.toReversed().slice(0, cell.length - up)) down.add(members[position]!);
      const enough = cells.every(
        (each) => 2 * each.filter((position) => !down.has(members[position]!)).length > each.length,
      );
      expect([which, up, enough]).toEqual([which, up, outcome === "acquired"]);
      expect([which, up, acquire()]).toEqual([which, up, outcome]);
      pass(1_100);
    }
  }
  down.clear();
}

const cases = sizes.flatMap((count) => [5, 31].map((cellSize) => [count, cellSize] as const));

test.each(cases.filter(([count, cellSize]) => count !== 299 || cellSize === 5))(
  "of %i members with cells of %i votes count, before, during and after a change that the last of them begins",
  (count, cellSize) => {
    const cluster = aCluster(count, Math.min(cellSize, count - 1));
    const { members, settings, peers, asking, files, hear, pass, now } = cluster;
    countsVotes(cluster);
    const beginner = peers.get(count - 2)!;
    const { cellSize: size } = beginner.views.view;
    expect(beginner.changeMembers({ members, cellSize: size }, now(beginner))).toBe(true);
    const { stamp } = beginner.views.view;
    hear(count - 2);
    for (const peer of peers.values()) expect(peer.views.view.stamp).toBe(stamp);
    countsVotes(cluster);
    // A member begins with its stored view.
    for (const text of files.values())
      expect(readPublishedView(JSON.parse(text), isAddress).view.stamp).toBe(stamp);
    pass(settings.waitWallMs + 1);
    for (let index = 0; index < count; index += 1) hear(index, [beginner]);
    beginner.maintain(now(beginner));
    hear(count - 2);
    expect([asking.views.view.before, votersOf(asking.views.view)]).toEqual([undefined, members]);
    countsVotes(cluster);
  },
  120_000,
);
