import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect as connectPlainly, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { connect, createSecureContext } from "node:tls";
import type { ConnectionOptions } from "node:tls";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { Authority } from "../../../../../../test/support/pki.js";
import {
  acquire,
  clientIdentity,
  helloBytes,
  listening,
  memberIdentity,
  Participant,
  until,
  world,
} from "../../../../../../test/support/transport.js";
import { parseAddress } from "../../../runtime/address.js";
import { FrameKind } from "../wire/frame.js";
import type { Link } from "../transport/link.js";
import { silent } from "../../../runtime/logger.js";
import type { SecurityOptions } from "../../../runtime/security/options.js";
import { loadCredentials } from "../../../runtime/security/load.js";

/**
 * Many concurrent intrusion attempts of all kinds, while a good client works. `LEASEHOLD_TRIES` sets how
 * many.
 */
const tries = Number(process.env["LEASEHOLD_TRIES"] ?? 3_000);
const inParallel = 24;
const answersKept = 10_000;
/**
 * Allowed growth of memory in use from a quarter of the attempts to the end: for caches and the like, not for
 * each attempt.
 */
const growthBytesMax = 6 * 2 ** 20;
/**
 * The same for the whole process. OpenSSL's memory is visible only here, and so is what malloc retains for
 * later.
 */
const residentGrowthBytesMax = 96 * 2 ** 20;
/**
 * For 99 of 100 answers. The good client shares its event loop with the member and all intruders, and each
 * intruder's handshake takes milliseconds of it.
 */
const answerMsMax = 1_000;

const authority = new Authority();
const stranger = new Authority("/CN=a stranger");
afterAll(() => [authority, stranger].map((each) => each.remove()));
const cluster = "test";
const tls = authority.for("member/b", cluster);
const key = randomBytes(32).toString("hex");

async function credentialsOf(options: SecurityOptions) {
  const credentials = await loadCredentials(options, { role: undefined }, world, silent);
  onTestFinished(() => credentials?.close());
  return { credentials, heartbeatMs: 1_000 };
}

function certificate(of: Authority, who: string, validity = {}): ConnectionOptions {
  const files = of.for(who, cluster, validity);
  const [ca, cert, secret] = [files.ca, files.cert, files.key].map((path) => readFileSync(path));
  return { secureContext: createSecureContext({ ca: ca!, cert: cert!, key: secret! }) };
}

const insecurely = { rejectUnauthorized: false, checkServerIdentity: () => undefined };

/** Bytes that look like a frame, or nearly. */
function nearlyFrame(): Buffer {
  const body = randomBytes(Math.floor(Math.random() * 300));
  const kinds = Object.values(FrameKind);
  const kind = Math.random() < 0.9 ? kinds[Math.floor(Math.random() * kinds.length)]! : 99;
  const lengths = [body.length + 1, body.length + 1, 0, 2 ** 21, 2 ** 32 - 1];
  const head = Buffer.alloc(5);
  head.writeUInt32BE(lengths[Math.floor(Math.random() * lengths.length)]!);
  head[4] = kind;
  return Buffer.concat([head, body]);
}

/** One attempt: opens a connection, sends something, and resolves when the connection is closed. */
type Try = (address: string) => Socket;

const expired = certificate(authority, "client", { fromDays: -9, toDays: -1 });
const client = certificate(authority, "client");
const foreign = certificate(stranger, "client");
const hello = helloBytes(clientIdentity("x"));
const plainly = (bytes: () => Buffer): Try => {
  return (address) =>
    connectPlainly(parseAddress(address)).on("connect", function said(this: Socket) {
      // The sending side is closed, so that the member does not wait for the rest of an apparent beginning.
      this.end(bytes());
    });
};
const securely = (options: ConnectionOptions, bytes: () => Buffer): Try => {
  return (address) => {
    const socket = connect({ ...parseAddress(address), ...insecurely, ...options });
    return socket.once("secureConnect", () => socket.end(bytes()));
  };
};

/**
 * The frequency of each kind, per thousand attempts. TLS handshakes cost much more than the rest, for both
 * sides.
 */
const mix: readonly (readonly [weight: number, attempt: Try])[] = [
  [300, plainly(() => randomBytes(1 + Math.floor(Math.random() * 400)))],
  [250, plainly(() => Buffer.concat([hello, nearlyFrame()]))],
  [150, plainly(() => Buffer.concat([Buffer.from("16030100c8", "hex"), randomBytes(200)]))],
  [150, plainly(() => Buffer.from("160301", "hex"))],
  [30, securely({}, () => hello)],
  [30, securely(expired, () => hello)],
  [30, securely(foreign, () => hello)],
  [60, securely(client, () => Buffer.concat([hello, nearlyFrame(), randomBytes(20)]))],
];

function anyTry(): Try {
  let at = Math.random() * 1_000;
  return mix.find(([weight]) => (at -= weight) < 0)![1];
}

/** A member that answers, and keeps no log: memory is measured. */
class Terse extends Participant {
  override keep = false;
  override answering = true;
  repelledCount = 0;
  override connected(link: Link): void {
    this.links.push(link);
  }
  override disconnected(link: Link): void {
    this.links.splice(this.links.indexOf(link), 1);
  }
  override repelled(): void {
    this.repelledCount += 1;
  }
}

function inUse(): { js: number; all: number } {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { js: heapUsed + external, all: rss };
}

it(`${tries} tries of all kinds get nowhere, cost no memory and disturb nobody`, { timeout: 0 }, async () => {
  const member = new Terse(memberIdentity("b"), await credentialsOf({ tls }));
  const address = await member.transport.listen("127.0.0.1:0");
  const good = new Participant(
    clientIdentity("good"),
    await credentialsOf({ tls: authority.for("client", cluster) }),
  );
  good.keep = false;
  good.transport.dial(address, "b");
  await until(() => good.links.length === 1);

  const todo = { tries };
  let usedAtQuarter = inUse();
  const intruder = async (): Promise<void> => {
    while (todo.tries > 0) {
      todo.tries -= 1;
      if (todo.tries === Math.floor(0.75 * tries)) usedAtQuarter = inUse();
      const socket = anyTry()(address);
      socket.on("error", () => {});
      socket.resume();
      await new Promise((resolve) => {
        socket.on("close", resolve);
      });
    }
  };
  // The latest ones, in a ring buffer of constant size.
  const ring = new Float64Array(answersKept);
  let answers = 0;
  const worker = async (): Promise<void> => {
    for (let instance = 1; todo.tries > 0; instance += 1) {
      const fromMs = performance.now();
      good.links[0]!.send(acquire(instance));
      while (good.count < instance && performance.now() - fromMs < 10 * answerMsMax) {
        await new Promise((resolve) => {
          setTimeout(resolve, 1);
        });
      }
      ring[answers++ % answersKept] = performance.now() - fromMs;
    }
  };
  await Promise.all([worker(), ...Array.from({ length: inParallel }, intruder)]);
  await until(() => member.links.length === 1, "only the good client is left");

  expect(good.transport.counters["connections.opened"]).toBe(1);
  expect(good.links[0]!.open).toBe(true);
  expect(good.count).toBe(answers);
  const answersMs = ring.slice(0, Math.min(answers, answersKept)).sort();
  expect(answersMs[Math.floor(0.99 * answersMs.length)]).toBeLessThan(answerMsMax);
  const { counters } = member.transport;
  // Only the good client's messages were delivered, and those in frames that their sender was allowed to
  // send.
  expect(counters["calls.answered"] + counters["messages.received"] - good.count).toBeLessThan(tries / 50);
  for (const cause of ["plain", "tls", "noCertificate", "expired", "untrusted"] as const) {
    expect(counters[`auth.refused.${cause}`]).toBeGreaterThan(tries / 100);
  }
  expect(counters["rejects.sent.badFrame"]).toBeGreaterThan(tries / 100);
  expect(member.repelledCount).toBeGreaterThan(0.7 * tries);
  expect(counters["handshakes.givenUp"]).toBe(0);
  const used = inUse();
  const growth = { js: used.js - usedAtQuarter.js, all: used.all - usedAtQuarter.all };
  if (process.env["LEASEHOLD_TRIES"] !== undefined) {
    const figures = [0.5, 0.99, 1].map((part) =>
      answersMs[Math.ceil(part * answersMs.length) - 1]!.toFixed(1),
    );
    process.stdout.write(`${tries} tries; answers, median, 99 %, slowest: ${figures.join(", ")} ms; `);
    process.stdout.write(`growth ${growth.js} bytes, of the process ${growth.all}\n`);
  }
  expect(growth.js).toBeLessThan(growthBytesMax);
  expect(growth.all).toBeLessThan(residentGrowthBytesMax);
});

describe("a recording of a good connection is useless", () => {
  async function recorder(target: string): Promise<{ address: string; bytes: () => Buffer }> {
    const chunks: Buffer[] = [];
    const server = createServer((near) => {
      const far = connectPlainly(parseAddress(target));
      for (const socket of [near, far]) socket.on("error", () => {});
      near.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        far.write(chunk);
      });
      far.pipe(near);
      near.on("close", () => far.destroy());
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    onTestFinished(() => void server.close());
    return {
      address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      bytes: () => Buffer.concat(chunks),
    };
  }

  it.each<[string, SecurityOptions, SecurityOptions]>([
    ["certificates", { tls }, { tls: authority.for("client", cluster) }],
    ["a key", { key }, { key }],
  ])("with %s", async (_what, ours, theirs) => {
    const { member, address } = await listening(memberIdentity("b"), await credentialsOf(ours));
    const wire = await recorder(address);
    const good = new Participant(clientIdentity("good"), await credentialsOf(theirs));
    good.transport.dial(wire.address, "b");
    await until(() => good.links.length === 1);
    good.links[0]!.send(acquire(1));
    await until(() => member.received.length === 1);

    const bytes = wire.bytes();
    expect(bytes.includes("good")).toBe(false);
    for (const chunkBytes of [bytes.length, 100]) {
      const replaying = connectPlainly(parseAddress(address));
      let closed = false;
      replaying
        .on("error", () => {})
        .on("close", () => {
          closed = true;
        });
      replaying.resume();
      for (let at = 0; at < bytes.length; at += chunkBytes) {
        replaying.write(bytes.subarray(at, at + chunkBytes));
        await new Promise((resolve) => {
          setTimeout(resolve, 2);
        });
      }
      await until(() => closed);
    }
    const { counters } = member.transport;
    expect(counters["auth.refused.tls"] + counters["auth.refused.key"]).toBe(2);
    expect(counters["connections.opened"]).toBe(1);
    expect(member.received.length).toBe(1);
    expect(good.links[0]!.open).toBe(true);
  });
});
