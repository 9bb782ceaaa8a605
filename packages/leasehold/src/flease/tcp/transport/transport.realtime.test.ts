import { networkInterfaces } from "node:os";
import { Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { Kind } from "../../protocol/message.js";
import { IncarnationKey } from "../security/incarnation-key.js";
import { Transport } from "./transport.js";
import {
  acquire,
  clientIdentity,
  listening,
  memberIdentity,
  Participant,
  sleep,
  until,
  world,
} from "../../../../../../test/support/transport.js";

async function pair(): Promise<{ a: Participant; b: Participant; address: string }> {
  const { member: b, address } = await listening(memberIdentity("b"));
  const a = new Participant(memberIdentity("a"));
  a.transport.dial(address, "b");
  await until(() => a.links.length === 1 && b.links.length === 1);
  return { a, b, address };
}

describe("links", () => {
  it("carry messages both ways, with the sender's owner and view", async () => {
    const { a, b } = await pair();
    b.answering = true;
    a.links[0]!.send(acquire(7, "réports/nightly"));
    await until(() => a.received.length === 1);
    const request = b.received[0]!;
    expect(request).toEqual({
      ...acquire(7, "réports/nightly"),
      owner: `a.${a.transport.identity.incarnation}`,
    });
    expect(a.received[0]).toMatchObject({
      kind: Kind.ack,
      instance: 7,
      number: request.number,
      resource: "",
      owner: "",
    });
    expect(a.links[0]).toMatchObject({ peerId: "b", role: "member", open: true });
    expect(b.links[0]).toMatchObject({ peerId: "a", role: "member" });
  });

  it("report a chunk first, then the clocks, then the messages, then the end", async () => {
    const { a, b } = await pair();
    b.trace = [];
    a.links[0]!.send(acquire(1));
    a.links[0]!.send(acquire(2));
    await until(() => b.count === 2);
    const trace = b.trace.join(" ");
    expect(trace).toContain("chunk stamped message message chunkEnd");
    expect(trace.replaceAll(/chunk (stamped (message )*)*chunkEnd ?/g, "")).toBe("");
  });

  it("send what one turn produced as one write", async () => {
    const { a, b } = await pair();
    const write = vi.spyOn(Socket.prototype, "write");
    const sentBefore = a.transport.counters.writes;
    for (let instance = 0; instance < 1000; instance += 1) a.links[0]!.send(acquire(instance));
    await Promise.resolve();
    a.links[0]!.send(acquire(1000));
    expect(write.mock.calls.length).toBe(0);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    const large = write.mock.calls.filter(([bytes]) => (bytes as Buffer).length > 10_000);
    write.mockRestore();
    expect(large).toHaveLength(1);
    await until(() => b.count === 1001);
    expect(b.received.map((message) => message.instance)).toEqual(
      Array.from({ length: 1001 }, (_, instance) => instance),
    );
    expect(a.transport.counters.writes - sentBefore).toBeLessThanOrEqual(2);
  });

  it("split what exceeds a batch, and lose nothing", async () => {
    const { a, b } = await pair();
    for (let instance = 0; instance < 6000; instance += 1)
      a.links[0]!.send(acquire(instance, "x".repeat(500)));
    await until(() => b.count === 6000);
    expect(b.received.every((message, instance) => message.instance === instance)).toBe(true);
    expect(a.transport.counters["messages.dropped.congested"]).toBe(0);
    expect(b.transport.counters["batches.received"]).toBeGreaterThan(20);
  });

  it("begin another batch when the view changes, and each message arrives with its own", async () => {
    const { a, b } = await pair();
    for (const view of [1, 1, 2, 1]) a.links[0]!.send(Object.assign(acquire(view), { view }));
    await until(() => b.count === 4);
    expect(b.received.map((message) => message.view)).toEqual([1, 1, 2, 1]);
  });

  it("measure the round trip without the time at the peer", async () => {
    const { a } = await pair();
    await until(() => a.roundTripsMs.length >= 3);
    // The echo is held for up to a heartbeat of 40 ms; loopback takes far less.
    expect(a.links[0]!.roundTripMs).toBeLessThan(20);
    expect(a.links[0]!.roundTripMs).toBe(Math.min(...a.roundTripsMs));
  });

  it("to oneself carry messages, without a socket and within one turn, and none after the close", async () => {
    const self = new Participant(memberIdentity("a"));
    self.answering = true;
    self.trace = [];
    const { loopback } = self.transport;
    loopback!.send(acquire(3));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(self.received.map((message) => message.kind)).toEqual([Kind.acquire, Kind.ack]);
    expect(self.received[0]!.owner).toBe(`a.${self.transport.identity.incarnation}`);
    expect(self.trace.join(" ")).toBe(Array(2).fill("chunk stamped message chunkEnd").join(" "));
    await self.transport.close();
    loopback!.send(acquire(4));
    expect(self.transport.counters["messages.dropped.closed"]).toBe(1);
    expect(new Participant(clientIdentity("c")).transport.loopback).toBeUndefined();
  });
});

describe("a transport", () => {
  it("admits a client that knows nothing yet, and describes the cluster to it", async () => {
    const { member, address } = await listening(memberIdentity("b"));
    const client = new Participant(clientIdentity("c"));
    client.transport.dial(address);
    await until(() => client.links.length === 1 && member.links.length === 1);
    expect(client.links[0]!.clusterDocument).toBe('{"members":{}}');
    expect(client.links[0]!.peer).toMatchObject({ cluster: "test", view: 1, role: "member" });
    expect(member.links[0]!.role).toBe("client");
  });

  it("lets only the smaller of two members dial at once", async () => {
    const { address } = await listening(memberIdentity("a"));
    const b = new Participant(memberIdentity("b"));
    b.transport.dial(address, "a");
    b.transport.dial(address, "b");
    await sleep(50);
    expect(b.events).toEqual([]);
  });

  it("keeps one connection to a member that has two addresses", async () => {
    const { member, address } = await listening(memberIdentity("b"));
    const client = new Participant(clientIdentity("c"));
    client.transport.dial(address);
    client.transport.dial(address.replace("127.0.0.1", "localhost"));
    await until(() => client.transport.counters["connections.opened"] >= 1);
    await sleep(300);
    expect(client.links).toHaveLength(1);
    expect(client.links[0]!.open).toBe(true);
    expect(member.links).toHaveLength(1);
    expect(client.transport.counters["connections.opened"]).toBeLessThanOrEqual(2);
  });
});

describe("participants that speak several versions", () => {
  type Span = readonly [oldest: number, newest: number];
  const speaking = ([oldest, newest]: Span) => ({ versions: { oldest, newest } });
  const joined = async (dialing: Span, accepting: Span) => {
    const { member: b, address } = await listening(memberIdentity("b"), speaking(accepting));
    const a = new Participant(memberIdentity("a"), speaking(dialing));
    a.transport.dial(address, "b");
    await until(() => a.links.length === 1 || a.errors.length > 0);
    return { a, b, rejects: a.transport.counters["rejects.received"] };
  };

  it.each([
    [[4, 5], [4, 5], 0],
    [[4, 5], [4, 4], 1],
    [[4, 4], [4, 5], 0],
    [[4, 6], [3, 4], 2],
  ] as const)("%j dials %j: they talk, after %i offers too many", async (dialing, accepting, offers) => {
    const { a, b, rejects } = await joined(dialing, accepting);
    b.answering = true;
    expect(a.errors).toEqual([]);
    expect(rejects).toBe(offers);
    a.links[0]!.send(acquire(7, "reports"));
    await until(() => a.received.length === 1);
  });

  it.each([
    [
      [5, 6],
      [3, 4],
    ],
    [
      [4, 4],
      [5, 6],
    ],
  ] as const)("%j dials %j: they have none in common, and both say so", async (dialing, accepting) => {
    const { a, b } = await joined(dialing, accepting);
    expect(a.errors[0]).toMatchObject({ code: "VERSION_MISMATCH" });
    expect(b.repelledBy[0]).toContain("the protocol version differs");
    await until(() => a.errors.length > 1);
    expect(a.events).not.toContain("unreachable");
  });

  it("offers the newest again to a member that has been upgraded", async () => {
    const { member: before, address } = await listening(memberIdentity("b"), speaking([4, 4]));
    const a = new Participant(memberIdentity("a"), speaking([4, 5]));
    a.transport.dial(address, "b");
    await until(() => a.links.length === 1);
    await before.transport.close();
    const after = new Participant(memberIdentity("b"), speaking([5, 5]));
    await after.transport.listen(address);
    await until(() => after.links.length === 1);
    expect(a.errors).toEqual([]);
  });
});

describe("reconnection", () => {
  it("finds a peer that has restarted, under its new incarnation", async () => {
    const { a, b, address } = await pair();
    const before = a.links[0]!.incarnation;
    await b.transport.close();
    await until(() => a.links.length === 0);
    const again = new Participant(memberIdentity("b"));
    await again.transport.listen(address);
    await until(() => a.links.length === 1);
    expect(a.links[0]!.incarnation).toBe(again.transport.identity.incarnation);
    expect(a.links[0]!.incarnation).not.toBe(before);
    expect(a.events.filter((event) => event !== "unreachable")).toEqual([
      "connected b",
      expect.stringMatching(/^disconnected b/),
      "connected b",
    ]);
  });

  it("replaces an older connection of the same process, which was closed first", async () => {
    const key = new IncarnationKey();
    const { member: b, address } = await listening(memberIdentity("b"));
    new Participant(memberIdentity("a"), {}, key).transport.dial(address, "b");
    await until(() => b.links.length === 1);
    const again = new Participant(memberIdentity("a"), {}, key);
    again.transport.dial(address, "b");
    await until(() => b.events.length >= 3);
    expect(b.events.slice(0, 3)).toEqual([
      "connected a",
      "disconnected a: replaced by a newer connection of the same peer",
      "connected a",
    ]);
    expect(b.transport.counters["connections.replaced"]).toBeGreaterThanOrEqual(1);
    expect(b.links).toHaveLength(1);
  });

  it("refuses another process under a connected member's id, and accepts it when that one has gone", async () => {
    const { a, b, address } = await pair();
    const duplicate = new Participant(memberIdentity("a"));
    duplicate.transport.dial(address, "b");
    await until(() => duplicate.events.length >= 2);
    expect(b.events.slice(0, 2)).toEqual(["connected a", "refused a duplicate of a"]);
    expect(duplicate.events[0]).toMatch(/^duplicate: another process is the member "a" already, from 127/);
    expect(duplicate.errors[0]).toMatchObject({ code: "CONFIG_MISMATCH" });
    expect(b.links[0]!.incarnation).toBe(a.transport.identity.incarnation);
    expect(b.transport.counters["rejects.sent.twin"]).toBeGreaterThanOrEqual(1);
    await a.transport.close();
    await until(() => b.links[0]?.incarnation === duplicate.transport.identity.incarnation);
  });

  it("reports each failed attempt, and continues", async () => {
    const { member, address } = await listening(memberIdentity("b"));
    await member.transport.close();
    const a = new Participant(memberIdentity("a"));
    a.transport.dial(address, "b");
    await until(() => a.events.length >= 3);
    expect(new Set(a.events)).toEqual(new Set(["unreachable"]));
    a.transport.undial(address);
    await sleep(50);
    const attempts = a.events.length;
    await sleep(80);
    expect(a.events.length).toBe(attempts);
  });

  it("ends with undial, on both sides", async () => {
    const { a, b, address } = await pair();
    a.transport.undial(address);
    await until(() => a.links.length === 0 && b.links.length === 0);
    await sleep(60);
    expect(a.transport.counters["connections.opened"]).toBe(1);
  });
});

describe("calls", () => {
  it("are answered, fail, or end in time", async () => {
    const { a, b } = await pair();
    const link = a.links[0]!;
    const params = { text: "é", list: [1, null] };
    await expect(a.transport.call(link, "echo", params, 1000)).resolves.toEqual(params);
    await expect(a.transport.call(link, "echo", undefined, 1000)).resolves.toBeNull();
    await expect(b.transport.call(b.links[0]!, "echo", 5, 1000)).resolves.toBe(5);
    await expect(a.transport.call(link, "nonsense", 0, 1000)).rejects.toThrow("no method nonsense");
    await expect(a.transport.call(link, "cyclic", 0, 1000)).rejects.toThrow(/circular/i);
    await expect(a.transport.call(link, "large", 0, 1000)).rejects.toThrow(/larger than/);
    await expect(a.transport.call(link, "echo", "x".repeat(300_000), 1000)).rejects.toMatchObject({
      code: "UNREACHABLE",
    });
    await expect(a.transport.call(link, "never", 0, 20)).rejects.toMatchObject({ code: "UNREACHABLE" });
    expect(link.open).toBe(true);
  });

  it("are bounded on both sides, and end with the link", async () => {
    const { a, b } = await pair();
    const link = a.links[0]!;
    let settled = 0;
    const calls = Array.from({ length: 300 }, async () => {
      const outcome = await a.transport.call(link, "never", 0, 60_000).catch(String);
      settled += 1;
      return outcome;
    });
    await until(() => settled === 300 - 64);
    expect(a.transport.counters["calls.sent"]).toBe(256);
    expect(b.transport.counters["calls.refused"]).toBe(256 - 64);
    link.close("enough");
    const results = await Promise.all(calls);
    expect(results.filter((text) => String(text).includes("enough"))).toHaveLength(64);
    await expect(a.transport.call(link, "echo", 0, 100)).rejects.toMatchObject({ code: "UNREACHABLE" });
  });

  it("that are refused at once count, too: of those in one read at most 64 are handled", async () => {
    const { a, b } = await pair();
    const link = a.links[0]!;
    for (let id = 1_000; id < 1_100; id += 1) link.sendCall({ id, method: "nothing of the kind", params: 0 });
    await until(() => b.transport.counters["calls.answered"] === 100);
    expect(b.transport.counters["calls.refused"]).toBe(100 - 64);
  });

  it("to oneself are answered like those to others", async () => {
    const self = new Participant(memberIdentity("a"));
    await expect(self.transport.call(self.transport.loopback!, "echo", [1], 1000)).resolves.toEqual([1]);
  });
});

describe("listening", () => {
  it("works with IPv6", async (context) => {
    const addresses = Object.values(networkInterfaces()).flat();
    context.skip(!addresses.some((entry) => entry?.address === "::1"), "no IPv6 on this machine");
    const { address } = await listening(memberIdentity("b"), {}, "[::1]");
    expect(address).toMatch(/^\[::1\]:\d+$/);
    const a = new Participant(memberIdentity("a"));
    a.transport.dial(address, "b");
    await until(() => a.links.length === 1);
  });

  it("refuses plain TCP beyond loopback unless `insecure` is set", async () => {
    const member = new Participant(memberIdentity("a"));
    for (const host of ["0.0.0.0", "[::]", "192.0.2.1", "example.org"]) {
      await expect(member.transport.listen(`${host}:0`)).rejects.toMatchObject({
        code: "INVALID_CONFIG",
        message: expect.stringContaining("insecure"),
      });
    }
    const open = new Participant(memberIdentity("b"), { insecure: true });
    await expect(open.transport.listen("0.0.0.0:0")).resolves.toMatch(/^0\.0\.0\.0:[1-9]/);
  });

  it("reports that an address is in use", async () => {
    const { address } = await listening(memberIdentity("a"));
    const second = new Participant(memberIdentity("b"));
    await expect(second.transport.listen(address)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  });
});

describe("close", () => {
  it("sends what is queued, is idempotent, and makes later calls fail", async () => {
    const { a, b } = await pair();
    a.links[0]!.send(acquire(1));
    await Promise.all([a.transport.close(), a.transport.close()]);
    await until(() => b.count === 1 && b.links.length === 0);
    expect(a.events).toEqual(["connected b"]);
    await expect(a.transport.listen("127.0.0.1:0")).rejects.toMatchObject({ code: "CLOSED" });
    await expect(a.transport.call(a.links[0]!, "echo", 0, 100)).rejects.toMatchObject({ code: "CLOSED" });
    a.transport.dial("127.0.0.1:1");
  });

  it("leaves no handle open", async () => {
    const own = () =>
      process.getActiveResourcesInfo().filter((name) => /TCP|Timeout|Immediate/.test(name)).length;
    const before = own();
    const { a, b, address } = await pair();
    const client = new Participant(clientIdentity("c"));
    client.transport.dial(address);
    client.transport.dial("127.0.0.1:1");
    await until(() => client.links.length === 1);
    expect(own()).toBeGreaterThan(before);
    await Promise.all([a, b, client].map((participant) => participant.transport.close()));
    await sleep(20);
    expect(own()).toBeLessThanOrEqual(before);
  });

  it("is immediate while a dialed address has not answered the handshake", async () => {
    const a = new Participant(memberIdentity("a"), { handshakeTimeoutMs: 60_000 });
    // Nothing answers at this address, which is reserved for documentation.
    a.transport.dial("192.0.2.1:7400", "b");
    const startMs = performance.now();
    await a.transport.close();
    expect(performance.now() - startMs).toBeLessThan(300);
  });

  it("refuses an identity that HELLO cannot carry", () => {
    const { handler } = new Participant(memberIdentity("z")).transport;
    for (const change of [{ nodeId: "" }, { cluster: "" }, { configHash: "" }, { view: 0 }]) {
      expect(() => new Transport(memberIdentity("a", change), world, handler)).toThrow(
        expect.objectContaining({ code: "INVALID_CONFIG" }),
      );
    }
  });
});
