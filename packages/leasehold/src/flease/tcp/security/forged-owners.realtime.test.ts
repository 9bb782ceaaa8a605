import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { connect as connectSecurely, createServer as createSecureServer } from "node:tls";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { freePorts } from "../../../../../../test/free-ports.js";
import {
  batchOf,
  clientIdentity,
  listening,
  memberIdentity,
  Participant,
  Stranger,
  until,
} from "../../../../../../test/support/transport.js";
import { Kind, Message } from "../../protocol/message.js";
import { fleaseSettings } from "../../protocol/settings.js";
import { LeaseManager } from "../../../lease/manager/lease-manager.js";
import type { Lease } from "../../../lease/types.js";
import type { World } from "../../../common/ports.js";
import { parseAddress } from "../../../runtime/address.js";
import { openFleaseClient } from "../client.js";
import { defineCluster } from "../cluster.js";
import { FleaseNode } from "../flease-node.js";
import { FrameDecoder, FrameKind } from "../wire/frame.js";
import { Handshake } from "./handshake.js";
import type { Introduced } from "./handshake.js";
import { incarnationOf } from "../wire/identity.js";
import type { Claims } from "../wire/identity.js";
import { decodeHello, PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from "../wire/hello.js";
import { ByteReader } from "../wire/bytes.js";
import { silent } from "../../../runtime/logger.js";
import { realWorld } from "../../../runtime/world.js";
import * as keys from "./incarnation-key.js";
import { loadCredentials } from "../../../runtime/security/load.js";

/**
 * A client that impersonates the holder of leases, in all possible ways, in order to release them.
 * LEASEHOLD_TRIES is the number of tries. It is small, because this runs on every change; a million tries
 * take half an hour.
 */
const tries = Math.min(Number(process.env["LEASEHOLD_TRIES"] ?? 200), 1_000_000);
const inParallel = 8;
/** Number of tries between two lines of progress. */
const triesPerLine = 50_000;

const planted = vi.hoisted(() => ({ everybodyIsBelieved: false }));
vi.mock("./incarnation-key.js", async (original) => {
  const real = await original<typeof keys>();
  return {
    ...real,
    isSignedBy: (...given: Parameters<typeof real.isSignedBy>) =>
      planted.everybodyIsBelieved || real.isSignedBy(...given),
  };
});

/** Real sockets and timers, and clocks that a test can advance, so that nobody waits for a recovery. */
class ForwardedWorld implements World {
  readonly #real = realWorld();
  readonly #forward = { ms: 0 };
  readonly random = this.#real.random;
  readonly clock = {
    monotonicMs: () => this.#real.clock.monotonicMs() + this.#forward.ms,
    wallMs: () => this.#real.clock.wallMs() + this.#forward.ms,
  };
  readonly timers = this.#real.timers;

  forward(ms: number): void {
    this.#forward.ms += ms;
  }
}

interface Stage {
  readonly world: ForwardedWorld;
  readonly members: readonly FleaseNode[];
  readonly addresses: readonly string[];
  readonly cluster: string;
}

async function threeMembers(): Promise<Stage> {
  const world = new ForwardedWorld();
  const ids = ["a", "b", "c"];
  const addresses = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
  const settings = fleaseSettings({
    members: ids,
    ttlMaxMs: 15_000,
    maxClockSkewMs: 500,
    rpcTimeoutMs: 1_000,
  });
  const byId = Object.fromEntries(ids.map((id, index) => [id, addresses[index]!]));
  const cluster = defineCluster("test", settings, byId);
  const members = ids.map(
    (nodeId) =>
      new FleaseNode({
        world,
        cluster,
        role: "member",
        nodeId,
        logger: silent,
        transport: { heartbeatMs: 250 },
      }),
  );
  for (const [index, member] of members.entries()) {
    onTestFinished(() => member.close());
    await member.listen(addresses[index]!);
    member.dialMembers();
  }
  await until(() => members.every((member) => member.reachable() === 3));
  const vote = () => members.every((member) => member.membership.duplicates.votes(member.now().mono));
  await until(vote);
  world.forward(20_000);
  await until(() => vote() && members.every((member) => member.peer.acceptor!.ready));
  return { world, members, addresses, cluster: cluster.name };
}

async function clientOf(
  { world, addresses }: Stage,
  name: string,
): Promise<{ node: FleaseNode; leases: LeaseManager }> {
  const node = await openFleaseClient(addresses, { name }, world);
  const leases = new LeaseManager(node.provider, world);
  onTestFinished(() => leases.close());
  return { node, leases };
}

/** A release of the lease exactly as an acceptor records it, which anyone can read. */
function releaseOf(stage: Stage, lease: Lease): Message {
  const { resource } = lease;
  const entry = stage.members.map((member) => member.peer.acceptor!.entry(resource)).find((found) => found)!;
  const change = { kind: Kind.release, view: 1, resource, number: entry.leaseNumber };
  return Object.assign(new Message(), change, { sequence: entry.leaseSequence + 1_000 });
}

/** A key of which only the public half is known. */
function stolen(publicKey: Buffer, signature: () => Buffer): keys.IncarnationKey {
  return {
    publicKey,
    incarnation: incarnationOf(publicKey),
    sign: signature,
  } as unknown as keys.IncarnationKey;
}

/** A relay that records what the participant sends to the member. */
async function wiretap(target: string): Promise<{ address: string; said: () => Buffer }> {
  const said: Buffer[] = [];
  const server = createServer((near) => {
    const far = connect(parseAddress(target));
    near.on("data", (chunk: Buffer) => said.push(chunk));
    near.pipe(far).pipe(near);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => {}).on("close", () => other.destroy());
    }
  });
  return { address: await addressOf(server), said: () => Buffer.concat(said) };
}

async function addressOf(server: Server): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The public key of this HELLO's sender. */
function keyIn(hello: Buffer): Buffer {
  return hello.subarray(17, 17 + PUBLIC_KEY_BYTES);
}

/** One way to impersonate another participant. Resolves when everything has been sent. */
type Forgery = (stranger: Stranger, rel: Buffer) => Promise<void>;

function forgeries(victim: FleaseNode, recorded: Buffer): Forgery[] {
  const publicKey = keyIn(recorded);
  const claims: Claims = clientIdentity(victim.nodeId);
  const own = new keys.IncarnationKey();
  const introduced = async (stranger: Stranger, key: keys.IncarnationKey, as: Claims, rel: Buffer) => {
    await stranger.introduce(as, key);
    if (!stranger.closed) stranger.say(rel);
  };
  return [
    // Only the name, with a different key: another owner.
    (stranger, rel) => introduced(stranger, new keys.IncarnationKey(), claims, rel),
    // The exact owner, which anyone can read, with a random signature, one by another key, and one over other
    // data.
    (stranger, rel) =>
      introduced(
        stranger,
        stolen(publicKey, () => Buffer.alloc(64, 3)),
        claims,
        rel,
      ),
    (stranger, rel) =>
      introduced(
        stranger,
        stolen(publicKey, () => own.sign(Buffer.from("x"))),
        claims,
        rel,
      ),
    // As the member with that name.
    (stranger, rel) =>
      introduced(
        stranger,
        stolen(publicKey, () => Buffer.alloc(64)),
        { ...memberIdentity("a"), nodeId: victim.nodeId },
        rel,
      ),
    // A replay of everything that the victim has sent to a member.
    async (stranger, rel) => void stranger.say(recorded, rel),
    // Its HELLO, followed at once by the messages that should follow the proof.
    async (stranger, rel) => void stranger.say(recorded.subarray(0, 4 + recorded.readUInt32BE(0)), rel),
  ];
}

async function forge(stage: Stage, forgery: Forgery, rel: Buffer): Promise<void> {
  const address = stage.addresses[Math.floor(Math.random() * stage.addresses.length)]!;
  const socket = connect(parseAddress(address));
  const stranger = new Stranger(socket);
  await forgery(stranger, rel);
  // Everything he sent is read before his connection ends.
  socket.end();
  await until(() => stranger.closed);
}

/** Holds a lease, and is recorded when it introduces itself. */
async function stageWithVictim() {
  const stage = await threeMembers();
  const tap = await wiretap(stage.addresses[1]!);
  const { node, leases } = await clientOf(stage, "victim");
  const lease = await leases.acquire("jobs/a", { wait: "10s" });
  // A second connection of the same process, through any listening member.
  const before = node.link(1)!;
  node.transport.undial(before.address);
  node.transport.dial(tap.address, "b");
  await until(() => node.link(1) !== undefined && node.link(1) !== before);
  const proofBytes = 5 + SIGNATURE_BYTES;
  const helloBytes = () => 4 + tap.said().readUInt32BE(0);
  await until(() => tap.said().length >= helloBytes() + proofBytes);
  const recorded = tap.said().subarray(0, helloBytes() + proofBytes);
  expect(incarnationOf(keyIn(recorded))).toBe(node.transport.identity.incarnation);
  const { leases: third } = await clientOf(stage, "third");
  return { stage, node, lease, recorded, third };
}

describe("a client's lease", () => {
  it(`survives ${tries} attempts to impersonate its owner`, { timeout: 60_000 + 20 * tries }, async () => {
    const { stage, node, lease, recorded, third } = await stageWithVictim();
    const ways = forgeries(node, recorded);
    const links = [0, 1, 2].map((index) => node.link(index));
    let left = tries;
    const forger = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        if (left > 0 && left % triesPerLine === 0) {
          const megabytes = Math.round(process.memoryUsage().rss / 1e6);
          process.stdout.write(`${tries - left} of ${tries} forgeries refused; ${megabytes} MB in memory\n`);
        }
        await forge(stage, ways[left % ways.length]!, batchOf(releaseOf(stage, lease)));
        // Refused because the members are overloaded: it does not have the lease either.
        const busy = (error: { code?: string }) => {
          if (error.code !== "OVERLOADED") throw error;
          return undefined;
        };
        expect(await third.tryAcquire("jobs/a").catch(busy)).toBeUndefined();
      }
    };
    await Promise.all(Array.from({ length: inParallel }, forger));
    expect(lease.remaining()).toBeGreaterThan(0);
    expect([0, 1, 2].map((index) => node.link(index))).toEqual(links);
    const refused = stage.members.map(({ transport }) => transport.counters["auth.refused.incarnation"]);
    expect(refused.reduce((sum, count) => sum + count)).toBeGreaterThan(tries / 4);
  });

  it(
    "with the proof planted out is freed, and another has it too, within some tries",
    { timeout: 60_000 },
    async () => {
      const { stage, node, lease, recorded, third } = await stageWithVictim();
      const ways = forgeries(node, recorded);
      planted.everybodyIsBelieved = true;
      onTestFinished(() => {
        planted.everybodyIsBelieved = false;
      });
      const heldTwice = async (): Promise<boolean> => {
        const other = await third.tryAcquire("jobs/a").catch(() => undefined);
        return other !== undefined && lease.remaining() > 0;
      };
      let made = 0;
      let broken = false;
      while (!broken && made < 200) {
        await forge(stage, ways[made % ways.length]!, batchOf(releaseOf(stage, lease)));
        made += 1;
        broken = await heldTwice();
      }
      expect(broken).toBe(true);
    },
  );
});

describe("a proof for one member is useless at another", () => {
  /** Relays the client's HELLO to b, answers as member m, and relays the client's PROOF to b. */
  async function faithlessMember(toB: Stranger): Promise<string> {
    const key = new keys.IncarnationKey();
    return addressOf(
      createServer((socket) => {
        const handshake = new Handshake({ identity: memberIdentity("m"), key }, socket);
        const decoder = new FrameDecoder((kind, bytes, start, end) => {
          toB.say(Buffer.from(bytes.subarray(start - 5, end)));
          if (kind !== FrameKind.hello) return;
          const reader = new ByteReader();
          reader.reset(bytes, start, end);
          const welcome = handshake.welcome(
            bytes.subarray(start, end),
            decodeHello(reader) as Introduced,
            "{}",
          );
          socket.write(welcome.bytes.subarray(0, welcome.length));
        });
        socket.on("data", (chunk) => decoder.push(chunk)).on("error", () => {});
      }),
    );
  }

  it("a proof for one member is refused by another", async () => {
    const { member: b, address } = await listening(memberIdentity("b"));
    const toB = new Stranger(address);
    const client = new Participant(clientIdentity("victim"));
    client.transport.dial(await faithlessMember(toB), "m");
    await until(() => client.links.length === 1 && toB.closed);
    expect(toB.rejections).toMatchObject([{ reason: "unauthenticated", text: /does not prove/ }]);
    expect(b.events).toEqual([]);
  });

  it("a client stops when a member other than the one it dialed answers", async () => {
    const { member: b, address } = await listening(memberIdentity("b"));
    const client = new Participant(clientIdentity("victim"));
    client.transport.dial((await wiretap(address)).address, "m");
    await until(() => client.errors.length > 0);
    expect(client.errors[0]).toMatchObject({ code: "CONFIG_MISMATCH", message: /should be "m" and is "b"/ });
    expect(b.events).toEqual([]);
  });

  it("a relay between two TLS connections is refused although it has the clients' key: it has two channels", async () => {
    const credentials = (await loadCredentials(
      { key: randomBytes(32).toString("hex") },
      { role: undefined },
      realWorld(),
      silent,
    ))!;
    onTestFinished(() => credentials.close());
    const { member: b, address } = await listening(memberIdentity("b"), { credentials });
    const between = createSecureServer(credentials.serverOptions(), (near) => {
      const far = connectSecurely({
        ...parseAddress(address),
        ...credentials.dialOptions(clientIdentity("x") as never),
      });
      near.pipe(far).pipe(near);
      for (const socket of [near, far]) socket.on("error", () => {});
    });
    const client = new Participant(clientIdentity("victim"), { credentials });
    client.transport.dial(await addressOf(between), "b");
    await until(() => client.errors.length > 0);
    expect(client.errors[0]).toMatchObject({
      code: "UNAUTHENTICATED",
      message: /accepting side does not prove/,
    });
    expect(b.events).toEqual([]);
  });
});
