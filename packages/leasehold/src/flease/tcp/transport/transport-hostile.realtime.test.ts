import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Kind, Message } from "../../protocol/message.js";
import {
  acquire,
  batchOf,
  clientIdentity,
  helloBytes,
  listening,
  memberIdentity,
  Participant,
  quick,
  sleep,
  Stranger,
  until,
} from "../../../../../../test/support/transport.js";
import { parseAddress } from "../../../runtime/address.js";
import type { CounterName } from "./counters.js";
import { FrameKind } from "../wire/frame.js";
import { IncarnationKey } from "../security/incarnation-key.js";
import { SIGNATURE_BYTES } from "../wire/hello.js";
import type { Claims } from "../wire/identity.js";
import type { TransportOptions } from "./transport-options.js";
import { transportDefaults } from "./transport-options.js";

/** A member with a connected, well-behaved peer. */
async function memberWithPeer(options: Partial<TransportOptions> = {}) {
  const { member, address } = await listening(memberIdentity("b"), options);
  const { heartbeatMs = quick.heartbeatMs! } = options;
  const peer = new Participant(memberIdentity("a"), { heartbeatMs });
  peer.transport.dial(address, "b");
  await until(() => peer.links.length === 1 && member.links.length === 1);
  const link = peer.links[0]!;
  const unharmed = async (): Promise<void> => {
    expect(link.open).toBe(true);
    const before = member.count;
    link.send(acquire(1));
    await until(() => member.count === before + 1, "the other link goes on");
  };
  return { member, address, peer, unharmed };
}

function frame(kind: number, body: Buffer = Buffer.alloc(0), length = body.length + 1): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length);
  head[4] = kind;
  return Buffer.concat([head, body]);
}

const fellow = memberIdentity("c");
const customer = clientIdentity("c");
const hello = helloBytes(fellow);
const otherVersion = Buffer.from(hello);
otherVersion[9] = 200;
const ack = Object.assign(new Message(), { kind: Kind.ack, view: 1 });
const noSignature = Buffer.alloc(SIGNATURE_BYTES, 1);
const cutMessage = batchOf(acquire(1));
const truncated = frame(FrameKind.batch, cutMessage.subarray(5, cutMessage.length - 3));

describe("a connection is refused and nothing else is harmed", () => {
  it.each<[string, (Buffer | Claims)[], CounterName, string]>([
    ["garbage", [Buffer.from("\u0000\u0000\u0001\u0001\u0063garbage")], "frames.refused.kind", "badFrame"],
    ["a browser", [Buffer.from("GET / HTTP/1.1\r\nHost: b\r\n\r\n")], "frames.refused.length", "badFrame"],
    [
      "another protocol in our framing",
      [frame(1, Buffer.from("MQTT and more"))],
      "frames.refused.magic",
      "badFrame",
    ],
    [
      "an oversized hello",
      [frame(FrameKind.hello, Buffer.alloc(9), 70_000)],
      "frames.refused.length",
      "badFrame",
    ],
    [
      "an oversized batch",
      [fellow, frame(FrameKind.batch, Buffer.alloc(9), 2 ** 21)],
      "frames.refused.length",
      "badFrame",
    ],
    ["an empty frame", [fellow, Buffer.alloc(4)], "frames.refused.length", "badFrame"],
    ["a truncated message", [fellow, truncated], "frames.refused.truncated", "badFrame"],
    ["a batch before the hello", [batchOf(acquire(1))], "frames.refused.kind", "badFrame"],
    ["a second hello", [fellow, hello], "frames.refused.kind", "badFrame"],
    ["a second hello in place of the proof", [hello, hello], "frames.refused.kind", "badFrame"],
    ["a batch in place of the proof", [hello, batchOf(acquire(1))], "frames.refused.kind", "badFrame"],
    ["a proof before the hello", [frame(FrameKind.proof, noSignature)], "frames.refused.kind", "badFrame"],
    [
      "half a proof",
      [hello, frame(FrameKind.proof, Buffer.alloc(32))],
      "frames.refused.truncated",
      "badFrame",
    ],
    [
      "a proof that proves nothing",
      [hello, frame(FrameKind.proof, noSignature)],
      "auth.refused.incarnation",
      "unauthenticated",
    ],
    [
      "an uninvited welcome",
      [frame(FrameKind.welcome, hello.subarray(5))],
      "frames.refused.kind",
      "badFrame",
    ],
    ["a reply of a client", [customer, batchOf(ack)], "frames.refused.direction", "badFrame"],
    [
      "a call that is not JSON",
      [fellow, frame(5, Buffer.from("000000010161000000017b", "hex"))],
      "frames.refused.json",
      "badFrame",
    ],
    ["another version", [otherVersion], "rejects.sent.version", "version"],
    [
      "another cluster",
      [helloBytes(memberIdentity("c", { cluster: "other" }))],
      "rejects.sent.cluster",
      "cluster",
    ],
    [
      "a client of another cluster",
      [helloBytes(clientIdentity("c", { cluster: "other" }))],
      "rejects.sent.cluster",
      "cluster",
    ],
    [
      "other settings",
      [helloBytes(memberIdentity("c", { configHash: "a".repeat(32) }))],
      "rejects.sent.config",
      "config",
    ],
    [
      "a member without settings",
      [helloBytes(memberIdentity("c", { configHash: "0".repeat(32) }))],
      "rejects.sent.config",
      "config",
    ],
    [
      "another cell function",
      [helloBytes(memberIdentity("c", { cellFunction: 3 }))],
      "rejects.sent.config",
      "config",
    ],
    ["another view", [helloBytes(memberIdentity("c", { view: 2 }))], "rejects.sent.view", "view"],
    ["its own name", [helloBytes(memberIdentity("b"))], "rejects.sent.duplicate", "duplicate"],
  ])("%s", async (_what, bytes, counter, reason) => {
    const { member, address, unharmed } = await memberWithPeer();
    const stranger = new Stranger(address);
    for (const piece of bytes) {
      if (Buffer.isBuffer(piece)) stranger.say(piece);
      else await stranger.introduce(piece);
    }
    await until(() => stranger.closed, "the connection is closed");
    expect(stranger.rejections.map((rejection) => rejection.reason)).toEqual([reason]);
    expect(member.transport.counters[counter]).toBe(1);
    expect(member.transport.counters[`rejects.sent.${reason}` as CounterName]).toBe(1);
    await unharmed();
  });

  it("delivers messages before the fault in the same chunk, and ends the chunk", async () => {
    const { member, address } = await memberWithPeer();
    member.trace = [];
    const stranger = await new Stranger(address).introduce(fellow);
    stranger.say(Buffer.concat([batchOf(acquire(5)), frame(99)]));
    await until(() => stranger.closed);
    expect(member.received.at(-1)!.instance).toBe(5);
    expect(member.trace.join(" ")).toContain("chunk stamped message chunkEnd");
    expect(member.trace.filter((call) => call === "chunk").length).toBe(
      member.trace.filter((call) => call === "chunkEnd").length,
    );
    expect(member.events.slice(1)).toEqual([
      "connected c",
      expect.stringMatching(/^disconnected c: not a frame/),
    ]);
  });

  it("if the handler does not admit the peer", async () => {
    const { member, address, unharmed } = await memberWithPeer();
    member.admission = "not today";
    const stranger = new Stranger(address).say(hello);
    await until(() => stranger.closed);
    expect(stranger.rejections).toEqual([{ reason: "notAdmitted", text: "not today" }]);
    await unharmed();
  });

  it("clients above the bound, but not one that reconnects", async () => {
    const { member, address, unharmed } = await memberWithPeer({ clientsMax: 1 });
    const key = new IncarnationKey();
    const first = await new Stranger(address).introduce(customer, key);
    await until(() => member.links.length === 2);
    const second = await new Stranger(address).introduce(clientIdentity("d"));
    await until(() => second.closed);
    expect(second.rejections[0]!.reason).toBe("full");
    const again = await new Stranger(address).introduce(customer, key);
    await until(() => first.closed);
    again.socket.destroy();
    await until(() => member.transport.counters["connections.closed"] === 2);
    await new Stranger(address).introduce(clientIdentity("e"));
    await until(() => member.links.length === 2, "room for another client");
    await unharmed();
  });

  it("an account beyond its share: the last places are for others", async () => {
    const { member, address } = await memberWithPeer({ clientsMax: 20 });
    const greedy = Array.from({ length: 25 }, (_, each) =>
      new Stranger(address).introduce(clientIdentity(`g${each}`)),
    );
    const refused = (await Promise.all(greedy)).filter((stranger) => stranger.closed);
    await until(() => member.links.length === 1 + 25 - refused.length);
    expect(refused.length).toBeGreaterThanOrEqual(7);
    expect(refused[0]!.rejections[0]!.reason).toBe("full");
    const elsewhere = connect({ ...parseAddress(address), localAddress: "127.0.0.2" });
    await new Stranger(elsewhere).introduce(clientIdentity("modest"));
    await until(() => member.links.some((link) => link.peerId === "modest"), "another is let in");
  });

  it("a client that keeps sending during its refusal still gets the reason", async () => {
    const { address, unharmed } = await memberWithPeer();
    const stranger = new Stranger(address).say(otherVersion);
    for (let piece = 0; piece < 50; piece += 1) stranger.say(Buffer.alloc(100_000));
    await until(() => stranger.closed);
    expect(stranger.rejections.map((rejection) => rejection.reason)).toEqual(["version"]);
    await unharmed();
  });

  it("silent connections beyond their bound", async () => {
    const { member, address, unharmed } = await memberWithPeer({
      handshakesMax: 3,
      handshakeTimeoutMs: 60_000,
    });
    const silent = Array.from({ length: 5 }, () => new Stranger(address));
    await until(() => member.transport.counters["handshakes.givenUp"] === 2);
    await until(() => silent.filter((stranger) => stranger.closed).length === 2, "the oldest are given up");
    // Silent connections occupy all places, and still keep nobody out.
    await new Stranger(address).introduce(clientIdentity("late"));
    await until(() => member.links.length === 2, "somebody who comes late is let in");
    expect(member.transport.counters["handshakes.givenUp"]).toBe(3);
    await unharmed();
  });

  it("each silent connection after its timeout", async () => {
    const { member, address, unharmed } = await memberWithPeer({ handshakeTimeoutMs: 150 });
    const silent = Array.from({ length: 3 }, () => new Stranger(address));
    silent[0]!.say(Buffer.from("\u0000"));
    await until(() => silent.every((stranger) => stranger.closed));
    expect(member.transport.counters["handshakes.timedOut"]).toBe(3);
    await unharmed();
  });
});

describe("the side that dials", () => {
  it.each([
    ["another cluster", { cluster: "other" }, "CLUSTER_MISMATCH"],
    ["other settings", { configHash: "a".repeat(32) }, "CONFIG_MISMATCH"],
    ["another view", { view: 9 }, "CONFIG_MISMATCH"],
  ])("learns of %s, and goes on trying, slowly", async (_what, change, code) => {
    const { member, address } = await listening(memberIdentity("b"));
    const a = new Participant(memberIdentity("a", change));
    a.transport.dial(address, "b");
    await until(() => a.errors.length >= 2);
    expect(a.errors[0]).toMatchObject({ code, message: expect.stringContaining(address) });
    expect(a.errors[0]!.message).toContain(String(Object.values(change)[0]));
    expect(a.events).not.toContain("unreachable");
    const seen =
      member.transport.counters[code === "CLUSTER_MISMATCH" ? "rejects.sent.cluster" : "rejects.sent.config"];
    expect(seen).toBeLessThanOrEqual(a.errors.length);
    expect(a.transport.counters["rejects.received"]).toBe(a.errors.length);
  });

  it("refuses a peer that answers under another name", async () => {
    const { address } = await listening(memberIdentity("b"));
    const a = new Participant(memberIdentity("a"));
    a.transport.dial(address, "c");
    await until(() => a.errors.length > 0);
    expect(a.errors[0]).toMatchObject({
      code: "CONFIG_MISMATCH",
      message: expect.stringMatching(/"c".*"b"/),
    });
    expect(a.links).toEqual([]);
  });

  async function impostor(answer: (socket: Socket) => void): Promise<string> {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      answer(socket);
    });
    onTestFinished(() => {
      server.close();
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("reports another protocol at the address", async () => {
    const address = await impostor((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const a = new Participant(clientIdentity("a"));
    a.transport.dial(address);
    await until(() => a.errors.length > 0);
    expect(a.errors[0]).toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringContaining("not a frame"),
    });
    expect(a.transport.counters["frames.refused.length"]).toBeGreaterThan(0);
  });

  it("learns of another version", async () => {
    const address = await impostor((socket) => {
      const welcome = Buffer.from(hello);
      welcome[4] = FrameKind.welcome;
      welcome[9] = 200;
      socket.write(welcome);
    });
    const a = new Participant(memberIdentity("a"));
    a.transport.dial(address, "b");
    await until(() => a.errors.length > 0);
    expect(a.errors[0]!.code).toBe("VERSION_MISMATCH");
  });

  it("times out without an answer, and retries", async () => {
    const address = await impostor(() => {});
    const a = new Participant(memberIdentity("a"), { handshakeTimeoutMs: 50 });
    a.transport.dial(address, "b");
    await until(() => a.transport.counters["handshakes.timedOut"] >= 2);
    expect(a.events).toContain("unreachable");
  });
});

describe("a peer that", () => {
  it("never reads costs messages to it, and bounded memory", async () => {
    const { member, address, unharmed } = await memberWithPeer({ heartbeatMs: 60_000 });
    const lazy = await new Stranger(address).introduce(fellow);
    await until(() => member.links.length === 2);
    lazy.socket.pause();
    const link = member.links.find((candidate) => candidate.peerId === "c")!;
    const resource = "x".repeat(500);
    const rounds = 60;
    const perRound = 1000;
    let waitingMax = 0;
    for (let round = 0; round < rounds; round += 1) {
      for (let instance = 0; instance < perRound; instance += 1) link.send(acquire(instance, resource));
      waitingMax = Math.max(waitingMax, link.waitingBytes);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    const { counters } = member.transport;
    const dropped = counters["messages.dropped.congested"];
    expect(dropped).toBeGreaterThan(10_000);
    expect(counters["messages.sent"] + dropped).toBe(rounds * perRound);
    expect(waitingMax).toBeLessThan(transportDefaults.linkBytesMax + 1024);
    await unharmed();

    // When it reads again it gets the queued frames whole, and then fresh messages.
    lazy.socket.resume();
    await until(() => link.waitingBytes === 0);
    link.send(acquire(1));
    await until(() => link.waitingBytes === 0);
    expect(link.open).toBe(true);
    expect(lazy.rejections).toEqual([]);
  });

  it("falls silent is noticed and dropped", async () => {
    const { member, address, unharmed } = await memberWithPeer();
    const silent = await new Stranger(address).introduce(fellow);
    await until(() => member.links.length === 2);
    const startMs = performance.now();
    await until(() => member.links.length === 1);
    const tookMs = performance.now() - startMs;
    expect(tookMs).toBeGreaterThan(quick.heartbeatMs! * (transportDefaults.silentHeartbeatsMax - 2));
    expect(silent.kinds.filter((kind) => kind === FrameKind.batch).length).toBeGreaterThanOrEqual(3);
    expect(member.transport.counters["connections.silent"]).toBe(1);
    expect(member.events.at(-1)).toBe("disconnected c: nothing was heard for 5 heartbeats");
    await unharmed();
  });

  it("only sends heartbeats stays", async () => {
    const { member, peer } = await memberWithPeer();
    await sleep(quick.heartbeatMs! * 12);
    expect(member.links.concat(peer.links).map((link) => link.open)).toEqual([true, true]);
    expect(member.transport.counters["connections.silent"]).toBe(0);
    expect(peer.transport.counters["connections.opened"]).toBe(1);
  });
});
