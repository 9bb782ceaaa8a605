import * as fc from "fast-check";
import { expect, it } from "vitest";
import { Kind, LeaseState, Message } from "../../protocol/message.js";
import { anyMessage } from "../../../../../../test/support/messages.js";
import { ByteReader, ByteWriter } from "./bytes.js";
import {
  BATCH_HEADER_BYTES,
  decodeBatchHeader,
  decodeMessage,
  encodeMessage,
  messageBytesMax,
  openBatch,
  stampBatch,
} from "./codec.js";
import { FRAME_HEADER_BYTES } from "./frame.js";
import { FrameError } from "./frame-error.js";
import type { FrameErrorCause } from "./frame-error.js";

const owner = "n1.0123456789abcdef";

function encoded(...messages: Message[]): Buffer {
  const writer = new ByteWriter(8);
  for (const message of messages) encodeMessage(writer, message);
  return Buffer.from(writer.bytes.subarray(0, writer.length));
}

/** A message with another message's values in all fields: the record is reused. */
function used(): Message {
  return Object.assign(new Message(), {
    kind: Kind.state,
    view: 9,
    instance: 9,
    resource: "old",
    owner: "old",
    number: 9,
    sequence: 9,
    until: 9,
    duration: 9,
    token: 9,
    refusal: 6,
    fullBy: "old",
    promised: 9,
    leaseState: 1,
    leaseOwner: "old",
    leaseNumber: 9,
    leaseSequence: 9,
    leaseExpiresWallMs: 9,
    leaseToken: 9,
  });
}

function decoded(bytes: Buffer, into: Message = used()): Message {
  const reader = new ByteReader();
  reader.reset(bytes, 0, bytes.length);
  decodeMessage(reader, into, 1, owner);
  reader.finish();
  return into;
}

function causeOf(bytes: Buffer): FrameErrorCause | "none" {
  try {
    decoded(bytes);
    return "none";
  } catch (error) {
    if (error instanceof FrameError) return error.cause;
    throw error;
  }
}

it("reads back every message as it was, whatever the record held before", () => {
  fc.assert(
    fc.property(anyMessage, (message) => {
      expect({ ...decoded(encoded(message)) }).toEqual({ ...message });
    }),
    { numRuns: 2000 },
  );
});

it("reads back several consecutive messages", () => {
  fc.assert(
    fc.property(fc.array(anyMessage, { maxLength: 20 }), (messages) => {
      const bytes = encoded(...messages);
      const reader = new ByteReader();
      reader.reset(bytes, 0, bytes.length);
      for (const message of messages) {
        const into = used();
        decodeMessage(reader, into, 1, owner);
        expect({ ...into }).toEqual({ ...message });
      }
      reader.finish();
    }),
    { numRuns: 200 },
  );
});

it("never writes a message larger than announced", () => {
  fc.assert(
    fc.property(anyMessage, (message) => {
      expect(encoded(message).length).toBeLessThanOrEqual(messageBytesMax(message));
    }),
  );
});

it("refuses a message cut anywhere", () => {
  fc.assert(
    fc.property(anyMessage, (message) => {
      const bytes = encoded(message);
      for (let end = 0; end < bytes.length; end += 1) {
        expect(causeOf(bytes.subarray(0, end))).not.toBe("none");
      }
    }),
    { numRuns: 100 },
  );
});

it("refuses numbers outside their ranges", () => {
  const acquire = Object.assign(new Message(), {
    kind: Kind.acquire,
    resource: "ab",
    number: 1,
    until: 1,
    duration: 1,
  });
  const numberAt = 1 + 4 + 2 + 2;
  const untilAt = numberAt + 8 + 4 + 1;
  const change = (at: number, value: number): Buffer => {
    const bytes = encoded(acquire);
    bytes.writeDoubleBE(value, at);
    return bytes;
  };
  for (const at of [numberAt, untilAt, untilAt + 8]) {
    for (const value of [NaN, Infinity, -Infinity, -1, -0.5, 2 ** 53, 2 ** 60, 1e300]) {
      expect(causeOf(change(at, value))).toBe("number");
    }
    expect(causeOf(change(at, 2 ** 53 - 1))).toBe("none");
  }
  expect(causeOf(change(numberAt, 1.5))).toBe("number");
  expect(causeOf(change(untilAt, 1.5))).toBe("none");
  expect(Object.is(decoded(change(untilAt, -0)).until, 0)).toBe(true);
});

it("refuses names with control characters: they are shown to others, and JSON escapes each with six bytes", () => {
  for (const bad of ["\0", "a\nb", "é\u001b", "\u007f", "ab\u0085"]) {
    expect(causeOf(encoded(Object.assign(new Message(), { resource: bad })))).toBe("text");
    const told = { kind: Kind.state, leaseState: LeaseState.live, leaseOwner: bad };
    expect(causeOf(encoded(Object.assign(new Message(), told)))).toBe("text");
  }
  expect(causeOf(encoded(Object.assign(new Message(), { resource: '\u00a0"~' })))).toBe("none");
});

it("refuses texts that are empty, too long or not UTF-8", () => {
  const read = (resource: string) => encoded(Object.assign(new Message(), { resource }));
  expect(causeOf(read(""))).toBe("text");
  expect(causeOf(read("x".repeat(512)))).toBe("none");
  expect(causeOf(read("é".repeat(256)))).toBe("none");
  expect(causeOf(read("x".repeat(513)))).toBe("text");
  for (const bad of [
    [0xff],
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82],
    [0x61, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
  ]) {
    const bytes = read("x".repeat(bad.length));
    Buffer.from(bad).copy(bytes, 7);
    expect(causeOf(bytes)).toBe("utf8");
  }
});

it("refuses an unknown kind, refusal, state or intent", () => {
  for (const kind of [0, 12, 255]) {
    const bytes = encoded(new Message());
    bytes[0] = kind;
    expect(causeOf(bytes)).toBe("code");
  }
  const nack = encoded(Object.assign(new Message(), { kind: Kind.nack }));
  const refusalAt = 1 + 4 + 8 + 4;
  for (const at of [refusalAt, refusalAt + 11]) {
    const bytes = Buffer.from(nack);
    bytes[at] = 200;
    expect(causeOf(bytes)).toBe("code");
  }
  expect(causeOf(nack)).toBe("none");
  const read = encoded(Object.assign(new Message(), { resource: "ab" }));
  read[1 + 4 + 2 + 2 + 8 + 4] = 3;
  expect(causeOf(read)).toBe("code");
});

it("a batch carries the clocks at the moment it leaves", () => {
  const writer = new ByteWriter(8);
  writer.reserve(3);
  writer.raw(Buffer.from("abc"));
  const start = openBatch(writer, 77);
  const stamp = { monoMs: 1.25, loMs: 2.5, hiMs: 3.75 };
  const echo = { monoMs: 4.5, loMs: 5.5, heldMs: 6.5, roundTripMs: 99 };
  stampBatch(writer, start, stamp, echo);
  const reader = new ByteReader();
  reader.reset(writer.bytes, start + FRAME_HEADER_BYTES, writer.length);
  const stampRead = { monoMs: 0, loMs: 0, hiMs: 0 };
  const echoRead = { monoMs: 0, loMs: 0, heldMs: 0, roundTripMs: -1 };
  expect(decodeBatchHeader(reader, stampRead, echoRead)).toBe(77);
  reader.finish();
  expect(writer.length - start).toBe(FRAME_HEADER_BYTES + BATCH_HEADER_BYTES);
  expect(stampRead).toEqual(stamp);
  expect(echoRead).toEqual({ ...echo, roundTripMs: -1 });
});
