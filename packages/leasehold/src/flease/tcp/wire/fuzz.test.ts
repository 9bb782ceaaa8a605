import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { copyMessage, Message } from "../../protocol/message.js";
import { effort } from "../../../../../../test/support/effort.js";
import { KeptInputs, shrunk } from "../../../../../../test/support/kept-inputs.js";
import { anyMessage } from "../../../../../../test/support/messages.js";
import { clientIdentity, introduction, memberIdentity } from "../../../../../../test/support/transport.js";
import { ByteReader, ByteWriter } from "./bytes.js";
import { newCounters } from "../transport/counters.js";
import { FrameDecoder, FrameKind } from "./frame.js";
import { FrameError, frameErrorCauses } from "./frame-error.js";
import type { FrameErrorCause } from "./frame-error.js";
import {
  SIGNATURE_BYTES,
  decodeHello,
  decodeProof,
  decodeReject,
  decodeWelcome,
  encodeHello,
  encodeProof,
  encodeReject,
  encodeWelcome,
} from "./hello.js";
import { Link, type MessageHandler } from "../transport/link.js";
import { Outbox } from "../transport/outbox.js";
import { encodeAnswer, encodeCall } from "./admin-frames.js";

/**
 * Everything a connection does with received bytes, without a socket: splitting into frames, the handshake's
 * decoders, and a link's decoders.
 */
class Receiver {
  readonly seen: unknown[] = [];
  readonly #decoder: FrameDecoder;

  constructor(keep: boolean) {
    const note = (value: unknown): void => {
      if (keep) this.seen.push(value);
    };
    const messages = {
      stamped: (_link: Link, stamp: object, echo: object) => note({ ...stamp, ...echo }),
      message: (_link: Link, message: Message) => {
        if (keep) note(copyMessage(message));
      },
    } as unknown as MessageHandler;
    const link = new Link(
      {
        role: "member",
        view: 1,
        messages,
        counters: newCounters(),
        linkBytesMax: 1,
        markDirty: () => {},
        calls: { called: (_link, call) => note(call), answered: (_link, answer) => note(answer) },
      },
      { ready: true, write: () => true, close: () => {} },
      {
        peer: memberIdentity("n1", { incarnation: "0123456789abcdef".repeat(2) }),
        address: "",
        clusterDocument: "",
        account: "",
        mayBeMember: false,
      },
    );
    this.#decoder = new FrameDecoder((kind, bytes, start, end) => {
      const reader = new ByteReader();
      reader.reset(bytes, start, end);
      if (kind === FrameKind.hello) note(decodeHello(reader));
      else if (kind === FrameKind.welcome) note(decodeWelcome(reader));
      else if (kind === FrameKind.reject) note(decodeReject(reader));
      else if (kind === FrameKind.proof) note(decodeProof(reader));
      else link.frame(kind, bytes, start, end);
    });
  }

  push(bytes: Buffer): void {
    this.#decoder.push(bytes);
  }
}

/**
 * The outcome of a stream: the cause of its refusal, or acceptance as far as it went. Other errors propagate.
 */
function outcome(bytes: Buffer): FrameErrorCause | "accepted" {
  try {
    new Receiver(false).push(bytes);
    return "accepted";
  } catch (error) {
    if (error instanceof FrameError) return error.cause;
    throw error;
  }
}

const kept = new KeptInputs(new URL("kept-inputs/", import.meta.url));

/** The decoder that refused, and the cause: the branch of the code that an input reaches. */
function branchOf(bytes: Buffer): string {
  try {
    new Receiver(false).push(bytes);
    return "accepted";
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    const decoder = /\b(?:decode|read)[A-Z]\w*|Link\.\w+/.exec(error.stack ?? "")?.[0] ?? "FrameDecoder";
    return `${error.message.replaceAll(/(?<!\w)-?(?:\d[\d.e+-]*|Infinity|NaN)/g, "N")} (${decoder})`;
  }
}

/** The shortest input found that reaches the same branch: a single frame, as short as possible. */
function shrunkFrame(bytes: Buffer): Buffer {
  const branch = branchOf(bytes);
  const isSame = (other: Buffer) => branchOf(other) === branch;
  for (let start = 0; start + 4 <= bytes.length; start += 4 + bytes.readUInt32BE(start)) {
    const content = bytes.subarray(start + 4, start + 4 + bytes.readUInt32BE(start));
    if (isSame(framed(content))) return framed(shrunk(content, (shorter) => isSame(framed(shorter))));
  }
  return shrunk(bytes, isSame);
}

function framed(content: Buffer): Buffer {
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(content.length);
  return Buffer.concat([prefix, content]);
}

/** xorshift: a hundred thousand cases are needed in seconds, and the same ones each time. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** A conversation with every kind of frame and, in its batches, messages of every kind. */
function conversation(seed: number): Buffer {
  const handshake = new ByteWriter(64);
  encodeHello(handshake, introduction(memberIdentity("n1")));
  encodeHello(handshake, introduction(clientIdentity("née")));
  const signature = Buffer.alloc(SIGNATURE_BYTES, 7);
  encodeWelcome(
    handshake,
    introduction(memberIdentity("n2")),
    '{"members":{"n1":"127.0.0.1:1"}}',
    () => signature,
  );
  encodeProof(handshake, signature);
  encodeReject(handshake, { reason: "config", text: "the configuration hash differs" });
  const outbox = new Outbox();
  for (const message of fc.sample(anyMessage, { numRuns: 6, seed })) outbox.add(message);
  encodeCall(outbox.frames, { id: 7, method: "status", params: { verbose: true } });
  outbox.openBatch(1);
  encodeAnswer(outbox.frames, { id: 7, value: ["a", 1, null] });
  for (const message of fc.sample(anyMessage, { numRuns: 3, seed: seed + 1 })) outbox.add(message);
  const { bytes, length } = outbox.take(
    { monoMs: 1, loMs: 2, hiMs: 3 },
    { monoMs: 4, loMs: 5, heldMs: 6, roundTripMs: -1 },
  );
  return Buffer.concat([handshake.bytes.subarray(0, handshake.length), bytes.subarray(0, length)]);
}

const CASES = 8_000 * effort;

describe("a stored input still has its recorded outcome", () => {
  test.each(kept.all)("$name", ({ bytes, outcome: wanted }) => expect(branchOf(bytes)).toBe(wanted));
});

describe("the decoder throws nothing but FrameError", () => {
  const causes = new Map<string, number>();
  const found = new Map<string, Buffer>();
  let cases = 0;
  const count = (bytes: Buffer) => {
    const cause = outcome(bytes);
    cases += 1;
    causes.set(cause, (causes.get(cause) ?? 0) + 1);
    if (kept.isLooking && !found.has(branchOf(bytes))) found.set(branchOf(bytes), Buffer.from(bytes));
  };
  let streams: Buffer[];
  let memoryBefore: number;

  const memory = (): number => {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };

  afterAll(() => {
    for (const [branch, bytes] of found) found.set(branch, shrunkFrame(bytes));
    kept.keep(found);
  });

  beforeAll(() => {
    streams = Array.from({ length: 20 }, (_, index) => conversation(100 * index + 1));
    memoryBefore = memory();
  });

  it("for random bytes", () => {
    const next = numbers(1);
    const bytes = Buffer.alloc(256);
    for (let run = 0; run < CASES; run += 1) {
      const length = next() % bytes.length;
      for (let at = 0; at < length; at += 1) bytes[at] = next();
      // Three of four runs have a valid prefix, so that errors further in are reached.
      if (run % 4 !== 0 && length > 5) {
        bytes.writeUInt32BE(1 + (next() % length), 0);
        bytes[4] = 1 + (next() % 6);
      }
      count(bytes.subarray(0, length));
    }
    expect(cases % CASES).toBe(0);
  });

  it("for streams with flipped bits", () => {
    const next = numbers(2);
    for (let run = 0; run < CASES; run += 1) {
      const bytes = Buffer.from(streams[run % streams.length]!);
      for (let flips = 1 + (next() % 4); flips > 0; flips -= 1) {
        bytes[next() % bytes.length]! ^= 1 << (next() % 8);
      }
      count(bytes);
    }
    expect(cases % CASES).toBe(0);
  });

  it("for streams with bytes removed, doubled or replaced, and lengths from zero to huge", () => {
    const next = numbers(3);
    for (let run = 0; run < CASES; run += 1) {
      const bytes = streams[run % streams.length]!;
      const at = next() % bytes.length;
      const to = Math.min(bytes.length, at + 1 + (next() % 8));
      if (run % 3 === 0) count(Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)]));
      else if (run % 3 === 1) count(Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)]));
      else {
        const changed = Buffer.from(bytes);
        const lengths = [0, 1, 2, 0xff, 0xffff, 0x10_0000, 0x10_0001, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
        changed.writeUInt32BE(lengths[next() % lengths.length]!, Math.min(at, bytes.length - 4));
        count(changed);
      }
    }
    expect(cases % CASES).toBe(0);
  });

  it("and the runs produced every cause of it, in constant memory", () => {
    // Roles are checked in the conversation, and unexpected TLS in the first bytes; both are tested over
    // sockets.
    const elsewhere: ReadonlySet<FrameErrorCause> = new Set(["direction", "role", "tls"]);
    const wanted = frameErrorCauses.filter((cause) => !elsewhere.has(cause));
    expect(wanted.filter((cause) => !causes.has(cause))).toEqual([]);
    expect(causes.get("accepted")).toBeGreaterThan(0);
    expect((memory() - memoryBefore) / 2 ** 20).toBeLessThan(96);
  });
});

it("a stream has the same meaning however it is split", () => {
  const stream = conversation(1);
  const whole = new Receiver(true);
  whole.push(stream);
  const digest = (seen: unknown[]) => createHash("sha1").update(JSON.stringify(seen)).digest("hex");
  const wanted = digest(whole.seen);
  expect(whole.seen.length).toBeGreaterThan(15);
  for (let cut = 0; cut <= stream.length; cut += 1) {
    const receiver = new Receiver(true);
    receiver.push(stream.subarray(0, cut));
    receiver.push(stream.subarray(cut));
    expect(digest(receiver.seen)).toBe(wanted);
  }
  const next = numbers(4);
  for (let run = 0; run < 300; run += 1) {
    const receiver = new Receiver(true);
    for (let at = 0; at < stream.length;) {
      const size = 1 + (next() % (run % 2 === 0 ? 7 : 400));
      receiver.push(stream.subarray(at, at + size));
      at += size;
    }
    expect(digest(receiver.seen)).toBe(wanted);
  }
});

it("a stream cut short is not refused, and its incomplete frame is not delivered", () => {
  const stream = conversation(2);
  for (let end = 0; end < stream.length; end += 1) expect(outcome(stream.subarray(0, end))).toBe("accepted");
});
