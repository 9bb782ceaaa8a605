import * as fc from "fast-check";
import { expect, it } from "vitest";
import { printable } from "../../../../../../test/support/messages.js";
import { clientIdentity, introduction, memberIdentity } from "../../../../../../test/support/transport.js";
import { ByteReader, ByteWriter } from "./bytes.js";
import { FRAME_HEADER_BYTES } from "./frame.js";
import { FrameError } from "./frame-error.js";
import {
  PROTOCOL_VERSION,
  PUBLIC_KEY_BYTES,
  RejectCode,
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
import type { RejectReason } from "./hello.js";
import { mismatch } from "../transport/judge.js";
import { incarnationOf } from "./identity.js";
import type { Claims, Identity } from "./identity.js";
import { newNonce } from "../security/incarnation-key.js";

const hex = (digits: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: digits, maxLength: digits });
const name = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
  .map(printable)
  .filter((text) => Buffer.byteLength(text) <= 128);

const anyKey = fc.uint8Array({ minLength: PUBLIC_KEY_BYTES, maxLength: PUBLIC_KEY_BYTES });

const anyIdentity: fc.Arbitrary<Claims> = fc.record({
  role: fc.constantFrom("member" as const, "client" as const),
  nodeId: name,
  cluster: name,
  configHash: hex(32).filter((hash) => /[^0]/.test(hash)),
  view: fc.nat({ max: 0xffff_ffff }),
  cellFunction: fc.nat({ max: 0xffff }),
});

function bodyOf(encode: (to: ByteWriter) => void): { reader: ByteReader; bytes: Buffer } {
  const writer = new ByteWriter(4);
  encode(writer);
  const bytes = Buffer.from(writer.bytes.subarray(0, writer.length));
  expect(bytes.readUInt32BE(0)).toBe(bytes.length - 4);
  const reader = new ByteReader();
  reader.reset(bytes, FRAME_HEADER_BYTES, bytes.length);
  return { reader, bytes };
}

it("reads back every HELLO, WELCOME and PROOF, and the incarnation follows from the key", () => {
  fc.assert(
    fc.property(anyIdentity, fc.string({ unit: "grapheme" }), anyKey, (claims, document, publicKey) => {
      const introduced = { claims, publicKey, nonce: newNonce() };
      const identity = { ...claims, incarnation: incarnationOf(publicKey) };
      const version = PROTOCOL_VERSION;
      expect(decodeHello(bodyOf((to) => encodeHello(to, introduced)).reader)).toEqual({
        version,
        identity,
        publicKey: Buffer.from(publicKey),
      });
      const signature = Buffer.alloc(SIGNATURE_BYTES, 5);
      let signed = Buffer.alloc(0);
      const welcome = bodyOf((to) =>
        encodeWelcome(to, introduced, document, (body) => {
          signed = Buffer.from(body);
          return signature;
        }),
      );
      expect(decodeWelcome(welcome.reader)).toEqual({
        version,
        identity,
        publicKey: Buffer.from(publicKey),
        clusterDocument: document,
        signature,
      });
      expect(welcome.bytes.subarray(FRAME_HEADER_BYTES).equals(Buffer.concat([signed, signature]))).toBe(
        true,
      );
      expect(decodeProof(bodyOf((to) => encodeProof(to, signature)).reader)).toEqual(signature);
    }),
  );
  const newcomer = introduction(clientIdentity("c"));
  expect(decodeHello(bodyOf((to) => encodeHello(to, newcomer)).reader).identity).toEqual({
    ...newcomer.claims,
    incarnation: incarnationOf(newcomer.publicKey),
  });
});

it("reads back every REJECT, and shortens what is too long", () => {
  for (const reason of Object.keys(RejectCode) as RejectReason[]) {
    const rejection = { reason, text: "because: é" };
    expect(decodeReject(bodyOf((to) => encodeReject(to, rejection)).reader)).toEqual(rejection);
  }
  const long = decodeReject(
    bodyOf((to) => encodeReject(to, { reason: "full", text: "€".repeat(5000) })).reader,
  );
  expect(long.text).toMatch(/^€{300,}$/);
});

it("learns of another version without reading on", () => {
  const { bytes } = bodyOf((to) => encodeHello(to, introduction(memberIdentity("a"))));
  bytes[FRAME_HEADER_BYTES + 4] = 9;
  const reader = new ByteReader();
  reader.reset(bytes, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + 5);
  const decoded = decodeHello(reader);
  expect(decoded).toEqual({ version: 9 });
  expect(mismatch(memberIdentity("a"), decoded)).toMatchObject({
    reason: "version",
    text: expect.stringContaining("9"),
  });
});

it("refuses input that lacks the magic bytes, is cut short, or continues past its end", () => {
  const { bytes } = bodyOf((to) => encodeHello(to, introduction(memberIdentity("a"))));
  const causeOf = (body: Buffer) => {
    const reader = new ByteReader();
    reader.reset(body, 0, body.length);
    try {
      return decodeHello(reader).version;
    } catch (error) {
      return (error as FrameError).cause;
    }
  };
  const body = bytes.subarray(FRAME_HEADER_BYTES);
  expect(causeOf(body)).toBe(PROTOCOL_VERSION);
  expect(causeOf(Buffer.concat([body, Buffer.of(0)]))).toBe("trailing");
  for (let end = 5; end < body.length; end += 1)
    expect(causeOf(body.subarray(0, end))).toBe(end < 5 ? PROTOCOL_VERSION : "truncated");
  expect(causeOf(Buffer.from("SSH-2.0-OpenSSH"))).toBe("magic");
});

it("compares the facts that both sides know, and names both values", () => {
  const ours = memberIdentity("a");
  const against = (theirs: Identity, self: Identity = ours) =>
    mismatch(self, { version: PROTOCOL_VERSION, identity: theirs });
  expect(against(memberIdentity("b"))).toBeUndefined();
  const other = { ...memberIdentity("b"), incarnation: "1".repeat(32) };
  expect(against({ ...other, cluster: "other" })).toEqual({
    reason: "cluster",
    text: 'the cluster differs: "test" at "a", "other" at "b"',
  });
  expect(against({ ...other, configHash: "f".repeat(32) })?.reason).toBe("config");
  expect(against({ ...other, cellFunction: 1 })?.reason).toBe("config");
  expect(against({ ...other, view: 2 })?.reason).toBe("view");

  // A client may not know its cluster yet. A member that claims not to know is refused.
  expect(against(clientIdentity("c"))).toBeUndefined();
  expect(against(memberIdentity("b"), clientIdentity("c"))).toBeUndefined();
  expect(against({ ...other, configHash: "" })?.reason).toBe("config");
  expect(against({ ...other, view: 0 })?.reason).toBe("view");
  for (const change of [{ cluster: "other" }, { configHash: "f".repeat(32) }, { view: 2 }]) {
    expect(against(clientIdentity("c", change))).toBeDefined();
    expect(against(memberIdentity("b"), clientIdentity("c", change))).toBeDefined();
  }
});
