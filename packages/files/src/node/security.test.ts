import { randomBytes } from "node:crypto";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../../../../test/free-ports.js";
import { Authority, selfSigned } from "../../../../test/support/pki.js";
import {
  type Logger,
  type TlsFiles,
  textOf,
  type SecurityOptions,
  certificateTls,
  pskTls,
  realWorld,
} from "leasehold/runtime";
import { MemoryCluster } from "leasehold/inner/testing/index.js";
import { MemoryBlockStore } from "../memory-store.js";
import { noBytes } from "../protocol/messages.js";
import type { Files } from "../types.js";
import { dial } from "./dial.js";
import { FrameReader, writeFrame } from "./frames.js";
import type { Self } from "./introduction.js";
import { Listener } from "./listener.js";
import { nodeCredentials } from "./security.js";
import { startFiles } from "./start.js";

/** File nodes on real sockets, and impostors. */

const authority = new Authority("/CN=ours");
const others = new Authority("/CN=others");
afterAll(() => {
  authority.remove();
  others.remove();
});

const names = ["a", "b", "c"] as const;
type Name = (typeof names)[number];
const node = (name: string, from = authority, cluster = "leasehold") => from.for(`member/${name}`, cluster);
const certificates: Record<Name, TlsFiles> = { a: node("a"), b: node("b"), c: node("c") };
const key = randomBytes(32).toString("hex");
const clientKey = randomBytes(32).toString("hex");

class Notes implements Logger {
  readonly lines: string[] = [];
  info(): void {}
  warn(text: string): void {
    this.lines.push(text);
  }
  error(text: string): void {
    this.lines.push(text);
  }
}

const running: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of running.splice(0)) await each.close();
});

const leases = new MemoryCluster();

interface Started {
  readonly cluster?: string;
  readonly nodes: Readonly<Record<string, string>>;
  readonly joins?: boolean;
  readonly logger?: Logger;
}

async function start(name: string, security: SecurityOptions, started: Started): Promise<Files> {
  const store = new MemoryBlockStore();
  const files = await startFiles({ node: name, leases: leases.open(name), store, ...security, ...started });
  running.push(files);
  return files;
}

async function addresses(): Promise<Record<Name, string>> {
  const [a, b, c] = await freePorts(3);
  return { a: `127.0.0.1:${a}`, b: `127.0.0.1:${b}`, c: `127.0.0.1:${c}` };
}

const portOf = (address: string): number => Number(address.split(":")[1]);

/** How a test connects: with a certificate, with the key of a role, or without TLS. */
type Way = TlsFiles | { readonly role: string; readonly key: string } | "plain" | "nothing to show";

async function open(address: string, way: Way): Promise<Socket> {
  const target = { host: "127.0.0.1", port: portOf(address) };
  if (way === "plain") return connect(target);
  const anybody = { checkServerIdentity: () => undefined, rejectUnauthorized: false };
  if (way === "nothing to show") return connectTls({ ...target, ...certificateTls, ...anybody });
  if ("role" in way) {
    const psk = { psk: Buffer.from(way.key, "hex"), identity: `${way.role}@leasehold` };
    return connectTls({ ...target, ...pskTls, ...anybody, pskCallback: () => psk });
  }
  return connectTls({ ...target, ...certificateTls, ...anybody, ...(await pemsOf(way)) });
}

async function pemsOf({ ca, cert, key: secret }: TlsFiles) {
  return { ca: await textOf(ca), cert: await textOf(cert), key: await textOf(secret) };
}

const hello = (from: string, to = "a", cluster = "leasehold") => ({
  hello: { version: 2, cluster, node: from, to },
});
const question = (id: number, kind: string, ask: object = {}) => ({ id, kind, ask });

/** All answers of a node to these frames, up to the last one or the end of the connection. */
async function said(address: string, way: Way, ...heads: readonly object[]): Promise<unknown[]> {
  const socket = await open(address, way);
  const reader = new FrameReader();
  const heard: unknown[] = [];
  return new Promise((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      for (const { head } of reader.read(chunk)) heard.push(head);
      if (heard.length === heads.length) socket.destroy();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(heard));
    for (const head of heads) writeFrame(socket, head, noBytes);
  });
}

const refused = (code: string, message: RegExp) => [
  { refused: { code, message: expect.stringMatching(message) as unknown } },
];

describe("a node with certificates", () => {
  let nodes: Record<Name, string>;
  let a: Files;
  beforeAll(async () => {
    nodes = await addresses();
    const store = new MemoryBlockStore();
    const given = { leases: leases.open("alone"), store, tls: certificates.a };
    a = await startFiles({ node: "a", nodes, ...given });
  });
  afterAll(() => a.close());

  test("answers another node", async () => {
    expect(await said(nodes.a, certificates.b, hello("b"), question(7, "standing"))).toEqual([
      { welcome: { version: 2, cluster: "leasehold", node: "a" } },
      { id: 7, answer: expect.objectContaining({ node: "a", joined: false }) as unknown },
    ]);
  });

  const named = (name: string) =>
    authority.issue([`subjectAltName = ${name}`, "extendedKeyUsage = clientAuth"]);
  test.each<[string, () => Way, object, string, RegExp]>([
    ["a stranger of its authority", () => named("DNS:b"), hello("b"), "UNAUTHENTICATED", /no name of Leas/],
    ["a client", () => authority.for("client"), hello("b"), "PERMISSION_DENIED", /not allow to be a member/],
    ["an observer", () => authority.for("observer"), hello("b"), "PERMISSION_DENIED", /only observer/],
    ["b who says that it is c", () => certificates.b, hello("c"), "PERMISSION_DENIED", /"b" and not for "c"/],
    ["c who says that it is b", () => certificates.c, hello("b"), "PERMISSION_DENIED", /"c" and not for "b"/],
    [
      "one that is in no list",
      () => node("d"),
      hello("d"),
      "PERMISSION_DENIED",
      /"d" is not one of the other/,
    ],
    ["its own name", () => certificates.a, hello("a"), "PERMISSION_DENIED", /"a" is not one of the other/],
    [
      "b of another cluster",
      () => node("b", authority, "prod"),
      hello("b"),
      "CLUSTER_MISMATCH",
      /cluster "prod" and not for "leasehold"/,
    ],
    [
      "b which looks for another cluster",
      () => certificates.b,
      hello("b", "a", "prod"),
      "CLUSTER_MISMATCH",
      /of the cluster "prod"/,
    ],
    ["b which looks for c", () => certificates.b, hello("b", "c"), "CONFIG_MISMATCH", /this is a/],
    [
      "b whose certificate has expired",
      () => authority.for("member/b", "leasehold", { fromDays: -2, toDays: -1 }),
      hello("b"),
      "UNAUTHENTICATED",
      /has expired/,
    ],
    [
      "b whose certificate is for accepting only",
      () =>
        authority.issue([
          "subjectAltName = URI:leasehold://leasehold/member/b",
          "extendedKeyUsage = serverAuth",
        ]),
      hello("b"),
      "UNAUTHENTICATED",
      /not issued for this side/,
    ],
    ["b of another authority", () => node("b", others), hello("b"), "UNAUTHENTICATED", /not this cluster's/],
    ["b of nobody", () => selfSigned(authority, "member/b"), hello("b"), "UNAUTHENTICATED", /self-signed/],
    ["somebody without a certificate", () => "nothing to show", hello("b"), "UNAUTHENTICATED", /no certif/],
    ["somebody without TLS", () => "plain", hello("b"), "UNAUTHENTICATED", /only TLS/],
    [
      "b of another version",
      () => certificates.b,
      { hello: { version: 9 } },
      "VERSION_MISMATCH",
      /this node 2/,
    ],
    [
      "b which asks at once",
      () => certificates.b,
      question(1, "standing"),
      "VERSION_MISMATCH",
      /this node 2/,
    ],
  ])("refuses %s with the reason, and answers nothing", async (_who, way, first, code, why) => {
    expect(await said(nodes.a, way(), first, question(1, "standing"))).toEqual(refused(code, why));
  });

  test("refuses a key, and logs it once", async () => {
    const own = await addresses();
    const notes = new Notes();
    await start("a", { tls: certificates.a }, { nodes: own, logger: notes });
    const way = { role: "member", key };
    for (let tries = 0; tries < 3; tries += 1)
      expect(await said(own.a, way, hello("b"), question(1, "standing"))).toEqual([]);
    const refusals = notes.lines.filter((line) => line.startsWith("a connection from"));
    expect(refusals).toEqual([expect.stringMatching(/uses a key where we use certificates/)]);
  });

  test("accepts the registration of a new disk from the node itself only", async () => {
    const disk = { node: "c", generation: 9, store: "forged" };
    const [, answer] = await said(nodes.a, certificates.b, hello("b"), question(1, "register", disk));
    expect(answer).toMatchObject({ id: 1, error: { code: "PERMISSION_DENIED" } });
  });

  test("continues after an invalid request", async () => {
    const heads = [[], question(1, "constructor"), { id: 2 }, question(3, "standing")];
    const heard = await said(nodes.a, certificates.b, hello("b"), ...heads);
    expect(heard.slice(1)).toEqual(refused("VERSION_MISMATCH", /not an object/));
    expect(await said(nodes.a, certificates.b, hello("b"), ...heads.slice(1))).toMatchObject([
      { welcome: {} },
      ...[1, 2].map((id) => ({ id, error: { code: "VERSION_MISMATCH" } })),
      { id: 3, answer: { node: "a" } },
    ]);
  });

  test("keeps at most 64 unauthenticated connections, and closes the oldest", async () => {
    const silent = await Promise.all(Array.from({ length: 80 }, () => open(nodes.a, "plain")));
    running.push(...silent.map((socket) => ({ close: () => socket.destroy() })));
    let gone = 0;
    for (const socket of silent) socket.on("error", () => undefined).on("close", () => (gone += 1));
    expect((await said(nodes.a, certificates.b, hello("b"), question(1, "standing"))).length).toBe(2);
    await expect.poll(() => gone).toBeGreaterThanOrEqual(16);
    expect(gone).toBeLessThan(20);
  });
});

const knows = (node: string): boolean => (names as readonly string[]).includes(node);

describe("who dials", () => {
  const self: Self = { cluster: "leasehold", node: "a", knows };
  let heard: number;

  /** A server at b's address that accepts every node and counts the bytes it receives. */
  async function answering(way: Way, as = "b", cluster = "leasehold"): Promise<number> {
    const welcomes = (socket: Socket): void => {
      socket.on("error", () => undefined);
      socket.once("data", (chunk: Buffer) => {
        // Without TLS it receives the start of a handshake.
        if (chunk.includes("hello")) heard += 1;
        writeFrame(socket, { welcome: { version: 2, cluster, node: as } }, noBytes);
      });
    };
    const server = await serverFor(way, welcomes);
    running.push({ close: () => server.close() });
    const [port] = (await freePorts(1)) as [number];
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    return port;
  }

  async function serverFor(way: Way, welcomes: (socket: Socket) => void): Promise<Server> {
    if (typeof way === "string") return createServer(welcomes);
    if ("role" in way)
      return createTlsServer({ ...pskTls, pskCallback: () => Buffer.from(way.key, "hex") }, welcomes);
    const asks = { requestCert: true, rejectUnauthorized: false };
    return createTlsServer({ ...certificateTls, ...asks, ...(await pemsOf(way)) }, welcomes);
  }

  async function dialed(port: number, security: SecurityOptions): Promise<string> {
    const credentials = await nodeCredentials(security, self, [], realWorld(), new Notes());
    try {
      const signal = AbortSignal.timeout(5_000);
      (await dial(self, credentials, "b", { host: "127.0.0.1", port }, signal)).destroy();
      return "welcome";
    } catch (error) {
      const { code, message } = error as Error & { code: string };
      return `${code} ${message}`;
    } finally {
      credentials?.close();
    }
  }

  test.each<[string, () => Way, RegExp]>([
    ["b", () => certificates.b, /^welcome$/],
    ["c", () => certificates.c, /^PERMISSION_DENIED .*"c" and not for "b"/],
    ["itself", () => certificates.a, /^PERMISSION_DENIED .*"a" and not for "b"/],
    ["a client", () => bothUsages("client"), /^PERMISSION_DENIED .*not allow to be a member/],
    ["b of another cluster", () => node("b", authority, "prod"), /^CLUSTER_MISMATCH /],
    ["b of another authority", () => node("b", others), /^UNAUTHENTICATED .*not this cluster's/],
    [
      "b whose certificate has expired",
      () => authority.for("member/b", "leasehold", { fromDays: -2, toDays: -1 }),
      /^UNAUTHENTICATED .*has expired/,
    ],
    ["somebody with a key", () => ({ role: "member", key }), /^UNAUTHENTICATED one side uses a key/],
    ["somebody without TLS", () => "plain", /^UNAUTHENTICATED .*does not speak TLS/],
  ])("with a certificate sends nothing to anybody but the intended node: %s", async (_who, way, result) => {
    heard = 0;
    expect(await dialed(await answering(way()), { tls: certificates.a })).toMatch(result);
    expect(heard > 0).toBe(result.source === "^welcome$");
  });

  const bothUsages = (who: string): TlsFiles =>
    authority.issue([
      `subjectAltName = URI:leasehold://leasehold/${who}`,
      "extendedKeyUsage = serverAuth, clientAuth",
    ]);

  test("with a key or nothing checks which node answers", async () => {
    const way = { role: "member", key };
    expect(await dialed(await answering(way), { key })).toBe("welcome");
    expect(await dialed(await answering(way, "c"), { key })).toMatch(/^CONFIG_MISMATCH node "c" answers/);
    expect(await dialed(await answering(way, "b", "prod"), { key })).toMatch(/^CLUSTER_MISMATCH /);
    expect(await dialed(await answering({ ...way, key: clientKey }), { key })).toMatch(/^UNAUTHENTICATED /);
    expect(await dialed(await answering("plain", "c"), {})).toMatch(/^CONFIG_MISMATCH node "c" answers/);
    expect(await dialed(await answering("plain"), {})).toBe("welcome");
  });

  test("without TLS is refused by a node that requires it, and the other way round", async () => {
    const nodes = await addresses();
    await start("b", { tls: certificates.b }, { nodes });
    expect(await dialed(portOf(nodes.b), {})).toMatch(/^UNAUTHENTICATED .*it refuses us: only TLS/);
    const plain = await addresses();
    const notes = new Notes();
    await start("b", {}, { nodes: plain, logger: notes });
    expect(await dialed(portOf(plain.b), { tls: certificates.a })).toMatch(
      /^UNAUTHENTICATED .*does not speak TLS/,
    );
    expect(notes.lines).toContainEqual(expect.stringMatching(/not come from a node of files/));
  });
});

describe("a key", () => {
  const withRoles = `member: ${key}\nclient: ${clientKey}`;

  test.each<[string, Way, object, object]>([
    ["of members is good for nodes", { role: "member", key }, hello("b"), { welcome: { node: "a" } }],
    [
      "of clients is not",
      { role: "client", key: clientKey },
      hello("b"),
      {
        refused: {
          code: "PERMISSION_DENIED",
          message: "the client key does not allow to be a member, only client or observer",
        },
      },
    ],
    [
      "proves no name, but mistakes are detected",
      { role: "member", key },
      hello("d"),
      { refused: { code: "PERMISSION_DENIED" } },
    ],
    [
      "proves no cluster either",
      { role: "member", key },
      hello("b", "a", "x"),
      { refused: { code: "CLUSTER_MISMATCH" } },
    ],
  ])("%s", async (_what, way, first, answer) => {
    const nodes = await addresses();
    await start("a", { key: withRoles }, { nodes });
    expect((await said(nodes.a, way, first, question(1, "standing")))[0]).toMatchObject(answer);
  });
});

describe("three nodes write and read", () => {
  const cases: [string, (name: Name) => SecurityOptions, string | undefined][] = [
    ["with certificates", (name) => ({ tls: certificates[name] }), undefined],
    ["of another cluster", (name) => ({ tls: node(name, authority, "prod") }), "prod"],
    ["with one key", () => ({ key }), undefined],
    ["with keys for each role", () => ({ key: `client: ${clientKey}\nmember: ${key}` }), undefined],
    ["with nothing, on loopback", () => ({}), undefined],
  ];
  test.each(cases)("%s", async (_what, security, cluster) => {
    const nodes = await addresses();
    const given = { nodes, ...(cluster !== undefined && { cluster }) };
    const [a, b] = await Promise.all(names.map((name) => start(name, security(name), given)));
    const file = await a!.open("x", { create: "missing" });
    await file.write(0, Buffer.from("content"));
    const back = await (await b!.open("x")).read(0, 100);
    expect(Buffer.from(back).toString()).toBe("content");
  });
});

test("an added node joins with its own certificate, and one that was not added stays outside", async () => {
  const nodes = await addresses();
  const [a] = await Promise.all(names.map((name) => start(name, { tls: certificates[name] }, { nodes })));
  const file = await a!.open("x", { create: "missing" });
  await file.write(0, Buffer.from("content"));
  const [d, e] = (await freePorts(2)).map((port) => `127.0.0.1:${port}`);
  await a!.changeNodes({ what: "add", node: { id: "d", address: d!, zone: "" } });
  const joins = (name: string, address: string) => ({ nodes: { ...nodes, [name]: address }, joins: true });
  await expect(start("d", { tls: certificates.c }, joins("d", d!))).rejects.toMatchObject({
    code: "INVALID_CONFIG",
  });
  const added = await start("d", { tls: node("d") }, joins("d", d!));
  const stranger = await start("e", { tls: node("e") }, joins("e", e!));
  await expect.poll(() => added.status().state, { timeout: 20_000 }).toBe("serving");
  expect(Buffer.from(await (await added.open("x")).read(0, 100)).toString()).toBe("content");
  expect(stranger.status().state).toBe("waiting");
}, 30_000);

test("a changed certificate counts for connections made after that", async () => {
  const world = realWorld();
  const copyOf = (from: TlsFiles, name: string): TlsFiles => {
    const copy = { ca: `${name}.ca`, cert: `${name}.cert`, key: `${name}.key` };
    for (const part of ["ca", "cert", "key"] as const) {
      copy[part] = join(authority.folder, copy[part]);
      copyFileSync(from[part], copy[part]);
    }
    return copy;
  };
  const files = { a: copyOf(certificates.a, "rotated-a"), b: copyOf(certificates.b, "rotated-b") };
  const selves = {
    a: { cluster: "leasehold", node: "a", knows },
    b: { cluster: "leasehold", node: "b", knows },
  };
  const notes = new Notes();
  const read = (name: "a" | "b") => nodeCredentials({ tls: files[name] }, selves[name], [], world, notes, 5);
  const [a, b] = [(await read("a"))!, (await read("b"))!];
  running.push(a, b);
  const answerer = { answer: () => Promise.reject(new Error("nothing is asked")) };
  const shared = { credentials: b, timers: world.timers, answerer };
  const listener = new Listener({ self: selves.b, ...shared, refused: () => undefined });
  running.push(listener);
  const [port] = (await freePorts(1)) as [number];
  const address = { host: "127.0.0.1", port };
  await listener.listen(address);
  const tries = async (): Promise<string> => {
    try {
      const socket = await dial(selves.a, a, "b", address, AbortSignal.timeout(5_000));
      socket.on("error", () => undefined);
      running.push({ close: () => socket.destroy() });
      return socket.destroyed ? "closed" : "welcome";
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  const replace = async (name: "a" | "b", next: TlsFiles) => {
    const credentials = { a, b }[name];
    const { version } = credentials;
    copyOf(next, `rotated-${name}`);
    await expect.poll(() => credentials.version, { interval: 5 }).toBeGreaterThan(version);
  };
  expect(await tries()).toBe("welcome");
  await replace("b", node("b", others));
  expect(await tries()).toBe("UNAUTHENTICATED");
  await replace("a", node("a", others));
  expect(await tries()).toBe("welcome");
  // An untrusted certificate is not loaded: the previous one stays in use.
  copyFileSync(others.for("client").cert, files.b.cert);
  await expect.poll(() => notes.lines.length, { interval: 5 }).toBeGreaterThan(0);
  expect(notes.lines[0]).toMatch(/what was read before stays in use/);
  expect(await tries()).toBe("welcome");
});

describe("a node does not start with", () => {
  const tlsOf = (tls: TlsFiles): SecurityOptions => ({ tls });
  test.each<[string, () => SecurityOptions, RegExp]>([
    ["a client's certificate", () => tlsOf(authority.for("client")), /does not allow to be a member/],
    ["another node's", () => tlsOf(certificates.b), /member "b" and not for "a"/],
    ["another cluster's", () => tlsOf(node("a", authority, "prod")), /cluster "prod" and not for "lease/],
    [
      "one that names nobody",
      () => tlsOf(authority.issue(["subjectAltName = DNS:a"])),
      /no name of Leasehold/,
    ],
    [
      "one that has expired",
      () => tlsOf(authority.for("member/a", "leasehold", { fromDays: -2, toDays: -1 })),
      /expired on/,
    ],
    ["the clients' key", () => ({ key: `client: ${clientKey}` }), /no key that allows to be a member/],
    ["a key that is too short", () => ({ key: "00112233" }), /64 to 128 hexadecimal digits/],
    ["a key that is a pattern", () => ({ key: "ab".repeat(32) }), /not random/],
    ["two ways at once", () => ({ key, keyFile: "k" }), /only one/],
  ])("%s", async (_what, security, why) => {
    const starting = start("a", security(), { nodes: await addresses() });
    await expect(starting).rejects.toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringMatching(why) as unknown,
    });
  });

  test("nothing where others can reach it", async () => {
    const nodes = { a: "10.0.0.1:7485", b: "10.0.0.2:7485", c: "10.0.0.3:7485" };
    await expect(start("a", {}, { nodes })).rejects.toThrow(/can be reached from other machines/);
    const near = { ...(await addresses()), b: "10.0.0.2:7485" };
    await expect(start("a", {}, { nodes: near })).rejects.toMatchObject({ code: "INVALID_CONFIG" });
    await expect(start("a", { key }, { nodes: near })).resolves.toBeDefined();
  });
});
