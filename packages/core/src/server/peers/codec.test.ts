import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Entry } from "../../raft/types.js";
import { refusalFailures } from "../../replica/proposals/leader-messages.js";
import type { PeerMessage } from "../../replica/types.js";
import { decodeMessage, encodeMessage } from "./codec.js";
import { bulkSince } from "./hello.js";
import { Frames, frame, helloBytesMax } from "./frames.js";

/** The newest protocol version. */
const newest = bulkSince;

const count = fc.maxSafeNat();
const id = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });
const lease = fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n });
const flag = fc.boolean();
const data = fc.uint8Array({ maxLength: 40 });
const position = { index: count, term: count };

const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({ kind: fc.constant("normal" as const), ...position, data }),
  fc.record({
    kind: fc.constant("config" as const),
    ...position,
    data,
    change: fc.record({
      kind: fc.constantFrom(
        "add-voter" as const,
        "add-learner" as const,
        "promote" as const,
        "remove" as const,
      ),
      member: id,
    }),
  }),
);
const members = fc.array(id, { maxLength: 9 });
const meta = fc.record({ ...position, membership: fc.record({ voters: members, learners: members }) });

function message<const Kind extends PeerMessage["kind"]>(
  kind: Kind,
  fields: object,
): fc.Arbitrary<PeerMessage> {
  return fc.record({
    kind: fc.constant(kind),
    from: id,
    to: id,
    ...fields,
  }) as unknown as fc.Arbitrary<PeerMessage>;
}

const proposal = { number: count, term: count, life: count, settled: count, again: flag, command: data };
const candidate = { term: count, lastIndex: count, lastTerm: count };
const messages = fc.oneof(
  message("pre-vote", candidate),
  message("pre-vote-answer", { term: count, granted: flag }),
  message("vote", { ...candidate, transfer: count }),
  message("vote-answer", { term: count, granted: flag }),
  message("append", {
    term: count,
    previousIndex: count,
    previousTerm: count,
    commit: count,
    entries: fc.array(entry, { maxLength: 5 }),
  }),
  message("append-answer", { term: count, rejected: flag, index: count, hintIndex: count, hintTerm: count }),
  message("commit", { term: count, index: count, indexTerm: count }),
  message("heartbeat", { term: count, commit: count, round: count, transfersOver: count }),
  message("heartbeat-answer", { term: count, round: count, holdMs: fc.double({ noNaN: true }) }),
  message("snapshot", { term: count, meta }),
  message("snapshot-answer", { term: count, rejected: flag, index: count }),
  message("timeout-now", { term: count, transfer: count }),
  message("propose", proposal),
  message("propose-change", proposal),
  message("ask", {
    number: count,
    about: fc.constantFrom("read", "refresh", "remaining"),
    lease,
    leftMs: fc.double({ noNaN: true }),
  }),
  message("leader-answer", { number: count, index: count, revision: count, ttlSeconds: fc.integer() }),
  message("leader-refusal", {
    number: count,
    term: count,
    failure: fc.constantFrom(...refusalFailures),
  }),
);

describe("messages between servers", () => {
  test("survive a round trip in pieces of any size", () => {
    fc.assert(
      fc.property(
        fc.array(messages, { maxLength: 8 }),
        fc.integer({ min: 1, max: 50 }),
        (sent, chunkBytes) => {
          const stream = Buffer.concat(sent.flatMap((each) => frame(encodeMessage(each, newest))));
          const received: PeerMessage[] = [];
          const frames = new Frames((body) => received.push(decodeMessage(body, newest)));
          for (let start = 0; start < stream.length; start += chunkBytes)
            frames.push(stream.subarray(start, start + chunkBytes));
          expect(received).toEqual(sent);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("cut off or damaged, they are refused with a RangeError, or decoded as another message", () => {
    fc.assert(
      fc.property(messages, fc.nat(), fc.nat({ max: 255 }), (sent, where, byte) => {
        const bytes = Buffer.concat(encodeMessage(sent, newest));
        const damaged = Buffer.from(bytes);
        damaged[where % bytes.length] = byte;
        const tried = [damaged, bytes.subarray(0, where % bytes.length), Buffer.concat([bytes, bytes])];
        expect(tried.map(outcome).filter((found) => found !== "a message" && found !== "RangeError")).toEqual(
          [],
        );
      }),
      { numRuns: 500 },
    );
  });

  test("a server of the previous version sends each proposal once, and receives proposals in its format", () => {
    const once = {
      kind: "propose",
      from: 1n,
      to: 2n,
      number: 3,
      term: 4,
      command: Buffer.from("c"),
    } as const;
    const bytes = Buffer.concat(encodeMessage({ ...once, life: 5, settled: 2, again: false }, bulkSince - 1));
    expect(bytes.toString("hex")).toBe(
      "0b010000000000000002000000000000000000000000000840000000000000104063",
    );
    const taken = { ...once, life: 0, settled: 0, again: false, command: Uint8Array.from(once.command) };
    expect(decodeMessage(bytes, bulkSince - 1)).toEqual(taken);
  });

  test("strangers get no memory: a long message is refused by its length", () => {
    const frames = new Frames(() => undefined);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(helloBytesMax + 1, 0);
    expect(() => frames.push(length)).toThrow("a frame of 16385 bytes");
  });
});

function outcome(bytes: Buffer): string {
  try {
    decodeMessage(bytes, newest);
    return "a message";
  } catch (error) {
    return error instanceof RangeError ? "RangeError" : String(error);
  }
}
