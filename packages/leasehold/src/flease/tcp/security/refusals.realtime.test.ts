import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, createServer } from "node:tls";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { Authority, selfSigned } from "../../../../../../test/support/pki.js";
import {
  acquire,
  batchOf,
  clientIdentity,
  helloBytes,
  listening,
  memberIdentity,
  Participant,
  sleep,
  Stranger,
  until,
  world,
} from "../../../../../../test/support/transport.js";
import { Kind } from "../../protocol/message.js";
import { parseAddress } from "../../../runtime/address.js";
import { FrameKind } from "../wire/frame.js";
import { silent } from "../../../runtime/logger.js";
import type { SecurityOptions } from "../../../runtime/security/options.js";
import type { TlsFiles } from "../../../runtime/options.js";
import type { Identity } from "../wire/identity.js";
import type { TransportOptions } from "../transport/transport-options.js";
import type { AuthCause } from "../../../runtime/security/auth-fault.js";
import { loadCredentials } from "../../../runtime/security/load.js";

/** Peers that are refused before their messages are read: the error on each side, and how it is counted. */

const ours = new Authority();
const theirs = new Authority("/CN=another authority");
const sameName = new Authority();
afterAll(() => [ours, theirs, sameName].map((authority) => authority.remove()));

const cluster = "test";
const key = randomBytes(32).toString("hex");

async function secured(options: SecurityOptions): Promise<Partial<TransportOptions>> {
  const credentials = await loadCredentials(options, { role: undefined }, world, silent);
  onTestFinished(() => credentials?.close());
  return { credentials };
}

const server = { tls: ours.for("member/b", cluster) };

/** A member with a well-behaved peer. */
async function memberWithPeer(options: SecurityOptions = server, peerOptions: SecurityOptions = options) {
  const { member, address } = await listening(memberIdentity("b"), await secured(options));
  const peer = new Participant(clientIdentity("good"), await secured(peerOptions));
  peer.transport.dial(address, "b");
  await until(() => peer.links.length === 1 && member.links.length === 1);
  return { member, address, peer };
}

function dialed(address: string, options: ConnectionOptions): TLSSocket {
  return connect({
    ...parseAddress(address),
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
    ...options,
  });
}

function filesOf({ ca, cert, key: secret }: TlsFiles): ConnectionOptions {
  return { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(secret) };
}

const days = (fromDays: number, toDays: number) => ({ fromDays, toDays });
const good = ours.for("client", cluster);

describe("a member refuses a certificate", () => {
  const client = helloBytes(clientIdentity("x", { cluster }));
  const memberC = helloBytes(memberIdentity("c"));
  it.each<[string, ConnectionOptions, Buffer, AuthCause, string, RegExp]>([
    ["none at all", {}, client, "noCertificate", "unauthenticated", /no certificate/],
    [
      "self-signed",
      filesOf(selfSigned(ours, "client")),
      client,
      "untrusted",
      "unauthenticated",
      /self-signed/,
    ],
    [
      "of another authority",
      filesOf(theirs.for("client", cluster)),
      client,
      "untrusted",
      "unauthenticated",
      /authority/,
    ],
    [
      "of another authority of the same name",
      filesOf(sameName.for("client", cluster)),
      client,
      "untrusted",
      "unauthenticated",
      /authority/,
    ],
    [
      "expired",
      filesOf(ours.for("client", cluster, days(-9, -1))),
      client,
      "expired",
      "unauthenticated",
      /expired/,
    ],
    [
      "not yet valid",
      filesOf(ours.for("client", cluster, days(1, 9))),
      client,
      "notYetValid",
      "unauthenticated",
      /not valid yet/,
    ],
    [
      "without our name",
      filesOf(ours.issue(["subjectAltName = DNS:b"])),
      client,
      "certificate",
      "unauthenticated",
      /no name of Leasehold/,
    ],
    [
      "of an authority",
      filesOf({ ca: ours.caFile, cert: ours.caFile, key: `${ours.folder}/ca.key` }),
      client,
      "certificate",
      "unauthenticated",
      /authority's/,
    ],
    [
      "for servers only",
      filesOf(
        ours.issue([`subjectAltName = URI:leasehold://${cluster}/client`, "extendedKeyUsage = serverAuth"]),
      ),
      client,
      "certificate",
      "unauthenticated",
      /extendedKeyUsage/,
    ],
    [
      "of another cluster",
      filesOf(ours.for("client", "other")),
      client,
      "cluster",
      "cluster",
      /"other".*"test"/,
    ],
    [
      "of a client who claims to be a member",
      filesOf(good),
      memberC,
      "role",
      "forbidden",
      /member, only client or observer/,
    ],
    [
      "of an observer who claims to be a client",
      filesOf(ours.for("observer", cluster)),
      client,
      "role",
      "forbidden",
      /only observer/,
    ],
    [
      "of another member",
      filesOf(ours.for("member/a", cluster)),
      memberC,
      "memberId",
      "unauthenticated",
      /"a" and not for "c"/,
    ],
  ])("%s", async (_what, options, hello, cause, reason, text) => {
    const { member, address, peer } = await memberWithPeer(server, { tls: good });
    const stranger = new Stranger(dialed(address, options));
    stranger.say(hello, batchOf(acquire(9)));
    await until(() => stranger.closed);
    expect(stranger.rejections).toMatchObject([{ reason, text: expect.stringMatching(text) }]);
    const { counters } = member.transport;
    expect(counters[`auth.refused.${cause}`]).toBe(1);
    expect(member.repelledBy).toMatchObject([expect.stringMatching(new RegExp(`^${cause}: `))]);
    expect(stranger.kinds).toEqual([FrameKind.reject]);
    expect(member.received).toEqual([]);
    peer.links[0]!.send(acquire(1));
    await until(() => member.received.length === 1, "the good client goes on");
  });

  it("of an observer when it requests a lease, and not when it only queries", async () => {
    const { member, address } = await memberWithPeer(server, { tls: good });
    const stranger = new Stranger(dialed(address, filesOf(ours.for("observer", cluster))));
    const query = Object.assign(acquire(1), { kind: Kind.query });
    (await stranger.introduce(clientIdentity("x", { role: "observer" }))).say(batchOf(query));
    await until(() => member.received.length === 1);
    stranger.say(batchOf(acquire(2)));
    await until(() => stranger.closed);
    expect(stranger.rejections).toMatchObject([
      { reason: "badFrame", text: expect.stringMatching(/observer/) },
    ]);
    expect(member.transport.counters["frames.refused.role"]).toBe(1);
    expect(member.received.map((message) => message.kind)).toEqual([Kind.query]);
  });

  it("of a client that resumes a session begun with a good one", async () => {
    const { member, address } = await memberWithPeer(server, { tls: good });
    const first = dialed(address, filesOf(good));
    const sessions: Buffer[] = [];
    first.on("session", (session) => sessions.push(session));
    await new Stranger(first).introduce(clientIdentity("x", { cluster }));
    await until(() => member.links.length === 2);
    // A session ticket, if there is one, follows the handshake.
    await sleep(50);
    const session = sessions.at(-1) ?? first.getSession();
    const second = new Stranger(dialed(address, session === undefined ? {} : { session })).say(client);
    await until(() => second.closed);
    expect(second.rejections.map((rejection) => rejection.reason)).toEqual(["unauthenticated"]);
    expect(member.transport.counters["auth.refused.noCertificate"]).toBe(1);
  });
});

describe("a dialer refuses a member", () => {
  async function impostor(files: TlsFiles): Promise<{ address: string; said: () => Buffer }> {
    const heard: Buffer[] = [];
    const tlsServer = createServer(filesOf(files) as object, (socket) => {
      socket.on("error", () => {});
      socket.on("data", (chunk: Buffer) => heard.push(chunk));
    });
    onTestFinished(() => void tlsServer.close());
    await new Promise<void>((resolve) => {
      tlsServer.listen(0, "127.0.0.1", resolve);
    });
    return {
      address: `127.0.0.1:${(tlsServer.address() as AddressInfo).port}`,
      said: () => Buffer.concat(heard),
    };
  }

  it.each<[string, TlsFiles, RegExp]>([
    ["self-signed", selfSigned(ours, "member/b"), /self-signed/],
    ["of another authority", theirs.for("member/b", cluster), /authority/],
    ["expired", ours.for("member/b", cluster, days(-9, -1)), /expired/],
    ["not yet valid", ours.for("member/b", cluster, days(1, 9)), /not valid yet/],
    ["a client's", good, /extendedKeyUsage/],
  ])("whose certificate is %s, without telling it who we are", async (_what, files, text) => {
    const { address, said } = await impostor(files);
    const client = new Participant(clientIdentity("secret name"), await secured({ tls: good }));
    client.transport.dial(address);
    await until(() => client.errors.length > 0);
    expect(client.errors[0]).toMatchObject({ code: "UNAUTHENTICATED", message: expect.stringMatching(text) });
    expect(client.errors[0]!.message).toContain(address);
    expect(said().includes("secret name")).toBe(false);
    expect(client.links).toEqual([]);
  });

  it.each<[string, string, Partial<Identity>, string]>([
    ["another member's", "member/a", {}, "UNAUTHENTICATED"],
    ["another cluster's", "member/b", { cluster: "other" }, "CLUSTER_MISMATCH"],
    ["no member's", "client", {}, "PERMISSION_DENIED"],
  ])("whose certificate is %s", async (_what, who, change, code) => {
    const files = ours.issue([`subjectAltName = URI:leasehold://${cluster}/${who}`]);
    const { address } = await listening(memberIdentity("b", change), await secured({ tls: files }));
    const client = new Participant(
      clientIdentity("c"),
      await secured({
        tls: ours.issue([`subjectAltName = URI:leasehold://${change.cluster ?? cluster}/client`]),
      }),
    );
    client.transport.dial(address);
    await until(() => client.errors.length > 0);
    expect(client.errors[0]!.code).toBe(code);
    expect(client.links).toEqual([]);
  });
});

describe("a member with a key refuses", () => {
  const other = randomBytes(32);
  const psk = (identity: string, psk = other): ConnectionOptions => ({
    ciphers: "PSK",
    maxVersion: "TLSv1.2",
    pskCallback: () => ({ psk, identity }),
  });
  it.each<[string, ConnectionOptions, AuthCause]>([
    ["another key", psk("client@test"), "key"],
    ["a key by no name that it has", psk("nobody@test"), "key"],
    ["a certificate", filesOf(good), "method"],
    [
      "a suite without forward secrecy",
      { ...psk("member@test", Buffer.from(key, "hex")), ciphers: "PSK-AES128-GCM-SHA256" },
      "method",
    ],
  ])("%s", async (_what, options, cause) => {
    const { member, address, peer } = await memberWithPeer(
      { key: `member: ${key}\nclient: ${randomBytes(32).toString("hex")}` },
      { key },
    );
    const stranger = new Stranger(dialed(address, options)).say(helloBytes(clientIdentity("x")));
    await until(() => stranger.closed && member.repelledBy.length > 0);
    expect(member.repelledBy).toMatchObject([expect.stringMatching(new RegExp(`^${cause}: `))]);
    expect(member.transport.counters[`auth.refused.${cause}`]).toBe(1);
    expect(stranger.kinds).toEqual([]);
    expect(peer.links.length).toBe(1);
  });

  it.each([
    ["a client's key for a member", "client", memberIdentity("c")],
    ["an observer's key for a client", "observer", clientIdentity("c")],
  ])("%s", async (_what, name, identity) => {
    const roleKey = randomBytes(32);
    const text = `member: ${key}\n${name}: ${roleKey.toString("hex")}`;
    const { member, address } = await memberWithPeer({ key: text }, { key });
    const suite = { ...psk(`${name}@test`, roleKey), ciphers: "ECDHE-PSK-CHACHA20-POLY1305" };
    const stranger = new Stranger(dialed(address, suite)).say(helloBytes(identity), batchOf(acquire(1)));
    await until(() => stranger.closed);
    expect(stranger.rejections).toMatchObject([{ reason: "forbidden" }]);
    expect(member.transport.counters["auth.refused.role"]).toBe(1);
    expect(member.received).toEqual([]);
  });

  it("a client that dials learns that its key differs, and the key is in no message", async () => {
    const { member, address } = await memberWithPeer({ key });
    const wrong = other.toString("hex");
    const client = new Participant(clientIdentity("c"), await secured({ key: wrong }));
    client.transport.dial(address);
    await until(() => client.errors.length > 0 && member.repelledBy.length > 0);
    expect(client.errors[0]).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringMatching(/key there is not ours/),
    });
    expect(member.repelledBy[0]).toMatch(/its key is not ours \(it calls itself "member@"\)/);
    for (const text of [client.errors[0]!.message, ...member.repelledBy]) {
      expect(text).not.toContain(wrong);
      expect(text).not.toContain(key);
    }
  });
});

describe("plain and secure connections", () => {
  it("a plain client learns that a member takes only TLS", async () => {
    const { member, address } = await memberWithPeer({ key });
    const client = new Participant(clientIdentity("c"));
    client.transport.dial(address);
    await until(() => client.errors.length > 0);
    expect(client.errors[0]).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringMatching(/only TLS/),
    });
    expect(member.transport.counters["auth.refused.plain"]).toBeGreaterThan(0);
  });

  it.each<[string, SecurityOptions]>([
    ["a key", { key }],
    ["a certificate", { tls: good }],
  ])("a client with %s learns that a member does not speak TLS", async (_what, options) => {
    const { member, address } = await listening(memberIdentity("b"));
    const client = new Participant(clientIdentity("c"), await secured(options));
    client.transport.dial(address);
    await until(() => client.errors.length > 0);
    expect(client.errors[0]).toMatchObject({
      code: "UNAUTHENTICATED",
      message: expect.stringMatching(/does not speak TLS/),
    });
    expect(member.transport.counters["frames.refused.tls"]).toBeGreaterThan(0);
    expect(member.repelledBy[0]).toMatch(/^badFrame: .*the peer speaks TLS, and this side does not/);
  });

  it("a peer that never finishes the handshake is dropped after its timeout, and leaves room for others", async () => {
    const options = { ...(await secured({ key })), handshakesMax: 2, handshakeTimeoutMs: 100 };
    const { member, address } = await listening(memberIdentity("b"), options);
    const silent = [
      new Stranger(address),
      new Stranger(address).say(Buffer.from("160301", "hex")),
      new Stranger(address),
    ];
    await until(() => member.transport.counters["handshakes.givenUp"] === 1);
    await until(() => silent.every((stranger) => stranger.closed));
    expect(member.transport.counters["handshakes.timedOut"]).toBe(2);
    // While they wait, too, the oldest of them makes room.
    for (let each = 0; each < 2; each += 1) void new Stranger(address);
    const client = new Participant(clientIdentity("c"), await secured({ key }));
    client.transport.dial(address);
    await until(() => client.links.length === 1);
  });

  it("close ends handshakes in progress and leaves nothing behind", async () => {
    const { member, address } = await memberWithPeer({ key });
    const strangers = [new Stranger(address), new Stranger(address).say(Buffer.from("160301", "hex"))];
    await until(() => strangers.every((stranger) => !stranger.socket.connecting));
    await member.transport.close();
    await until(() => strangers.every((stranger) => stranger.closed));
    expect(member.events).toEqual(["connected good"]);
  });
});
