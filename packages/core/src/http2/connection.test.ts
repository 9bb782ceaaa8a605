import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  begin,
  data,
  frame,
  headers,
  number,
  requestBlock,
  type Sent,
  settings,
  Talk,
} from "../../../../test/support/http2-bytes.js";
import { errorCode, flag, frameType, initialWindow } from "./frames.js";
import { headerBlock } from "./header-blocks.js";

const end = flag.endStream;
const ping = frame(frameType.ping, 0, 0, Buffer.from("12345678"));
const windowUpdate = (stream: number, by: number) => frame(frameType.windowUpdate, 0, stream, number(by));
const reset = (stream: number) => frame(frameType.resetStream, 0, stream, number(errorCode.cancel));
const continuation = (stream: number, flags: number, part: Uint8Array) =>
  frame(frameType.continuation, flags, stream, part);

function begun(streamsMax?: number): Talk {
  const talk = new Talk(streamsMax);
  talk.say(begin);
  return talk;
}

describe("RFC 9113", () => {
  test.each<[what: string, code: number, ...bytes: Buffer[]]>([
    ["a frame of data for no stream", errorCode.protocol, data(0, 1)],
    ["data of a request that has not begun", errorCode.protocol, data(1, 1)],
    ["a request with an even number", errorCode.protocol, headers(2)],
    ["a request without a number", errorCode.protocol, headers(0)],
    ["a frame that is too large", errorCode.frameSize, frame(frameType.data, 0, 1, Buffer.alloc(16_385))],
    ["padding longer than the frame", errorCode.protocol, headers(1), frame(0, 8, 1, Buffer.from([5, 1, 1]))],
    ["a padded frame without anything", errorCode.protocol, headers(1), frame(0, 8, 1)],
    ["a header block with padding only", errorCode.protocol, frame(1, 8 | 4, 1, Buffer.from([9, 1]))],
    ["a continuation of nothing", errorCode.protocol, continuation(1, 4, requestBlock)],
    ["a frame between the parts of a header block", errorCode.protocol, frame(1, 0, 1, requestBlock), ping],
    [
      "the continuation of another block",
      errorCode.protocol,
      frame(1, 0, 1, requestBlock),
      continuation(3, 4, requestBlock),
    ],
    ["the reset of a request that has not begun", errorCode.protocol, reset(1)],
    ["a reset of the wrong size", errorCode.frameSize, headers(1), frame(3, 0, 1, Buffer.alloc(5))],
    ["settings of a stream", errorCode.protocol, frame(4, 0, 1)],
    ["settings of the wrong size", errorCode.frameSize, frame(4, 0, 0, Buffer.alloc(5))],
    ["an acknowledgement with something in it", errorCode.frameSize, frame(4, 1, 0, Buffer.alloc(6))],
    ["a window that is too large", errorCode.flowControl, settings([4, 2 ** 31])],
    ["frames that are too small", errorCode.protocol, settings([5, 16_383])],
    ["a push that is neither on nor off", errorCode.protocol, settings([2, 2])],
    ["a ping of a stream", errorCode.protocol, frame(6, 0, 1, Buffer.alloc(8))],
    ["a ping of the wrong size", errorCode.frameSize, frame(6, 0, 0, Buffer.alloc(7))],
    ["a window that is widened by nothing", errorCode.protocol, windowUpdate(0, 0)],
    ["a window that is widened too far", errorCode.flowControl, windowUpdate(0, 2 ** 31 - 1)],
    ["the window of a request that has not begun", errorCode.protocol, windowUpdate(1, 1)],
    ["a widening of the wrong size", errorCode.frameSize, frame(8, 0, 0, Buffer.alloc(3))],
    ["a push by the client", errorCode.protocol, frame(5, 4, 1, Buffer.alloc(4))],
    ["a priority of no stream", errorCode.protocol, frame(2, 0, 0, Buffer.alloc(5))],
    ["a priority of the wrong size", errorCode.frameSize, frame(2, 0, 1, Buffer.alloc(4))],
    ["what is no header block", errorCode.compression, headers(1, 0, Buffer.from([0xbe]))],
    ["headers behind the end of a request", errorCode.streamClosed, headers(1, end), headers(1, end)],
    ["a farewell of a stream", errorCode.protocol, frame(7, 0, 1, Buffer.alloc(8))],
  ])("%s ends the connection with its code", (_, code, ...bytes) => {
    const talk = begun();
    talk.say(...bytes);
    expect(talk.wentAway).toBe(code);
    expect(talk.connection.streams).toBe(0);
    expect(talk.say(ping)).toEqual([]);
  });

  test("a connection without the HTTP/2 preface is closed", () => {
    for (const bytes of [Buffer.from("GET / HTTP/1.1\r\n"), Buffer.concat([begin.subarray(0, 24), ping])]) {
      const talk = new Talk();
      talk.say(bytes);
      expect(talk.wentAway).toBe(errorCode.protocol);
    }
  });

  const base = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/a"],
  ] as const;
  test.each<[what: string, code: number, ...bytes: Buffer[]]>([
    ["a name in capitals", errorCode.protocol, headers(1, 0, headerBlock([...base, ["A", "b"]]))],
    ["a pseudo-field behind others", errorCode.protocol, headers(1, 0, headerBlock([["a", "b"], ...base]))],
    ["a pseudo-field twice", errorCode.protocol, headers(1, 0, headerBlock([...base, [":path", "/b"]]))],
    ["one that there is not", errorCode.protocol, headers(1, 0, headerBlock([...base, [":status", "200"]]))],
    ["a request without a path", errorCode.protocol, headers(1, 0, headerBlock(base.slice(0, 2)))],
    ["a field of HTTP/1.1", errorCode.protocol, headers(1, 0, headerBlock([...base, ["connection", "x"]]))],
    ["a line end in a value", errorCode.protocol, headers(1, 0, headerBlock([...base, ["a", "b\r\nc"]]))],
    ["trailers that end nothing", errorCode.protocol, headers(1), headers(1, 0, headerBlock([["a", "b"]]))],
    ["trailers with a pseudo-field", errorCode.protocol, headers(1), headers(1, end)],
    ["data behind the end of a request", errorCode.streamClosed, headers(1, end), data(1, 1)],
    ["a window that is widened by nothing", errorCode.protocol, headers(1), windowUpdate(1, 0)],
    ["a window that is widened too far", errorCode.flowControl, headers(1), windowUpdate(1, 2 ** 31 - 1)],
  ])("%s resets the stream with its code, and the connection goes on", (_, code, ...bytes) => {
    const talk = begun();
    talk.say(...bytes);
    expect(talk.resets(1)).toEqual([code]);
    expect(talk.connection.streams).toBe(0);
    talk.say(headers(3), data(3, 10, end));
    expect([talk.contents.get(3), talk.wentAway]).toEqual([
      { bytes: 10, isEnded: true, over: undefined },
      undefined,
    ]);
  });

  test("settings and pings are answered, and unknown frames are skipped", () => {
    const talk = begun();
    const unknown = frame(77, 255, 9, Buffer.from("anything"));
    const answers = talk.say(ping, unknown, settings([99, 1]), frame(2, 0, 5, Buffer.alloc(5)));
    expect(answers.map(({ flags, type }) => [type, flags])).toEqual([
      [frameType.ping, 1],
      [frameType.settings, 1],
    ]);
    expect(answers[0]!.payload.toString()).toBe("12345678");
  });

  test("a request may have an address as its authority, padding, a priority, and a header block in many frames", () => {
    const talk = begun();
    const padded = Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 9]), requestBlock, Buffer.alloc(3)]);
    const parts = [...requestBlock].map((byte, at) =>
      continuation(5, at === requestBlock.length - 1 ? 4 : 0, Uint8Array.of(byte)),
    );
    talk.say(headers(1), frame(1, 4 | 8 | 0x20, 3, padded), frame(1, end, 5), ...parts);
    expect(talk.requests.map(({ path }) => path)).toEqual(Array.from({ length: 3 }, () => "/service/Method"));
    expect(talk.requests[2]!.fields.get("content-type")).toEqual(["application/grpc"]);
    expect(talk.contents.get(5)).toMatchObject({ isEnded: true });
    talk.say(frame(0, 8 | end, 3, Buffer.from([2, 65, 66, 0, 0])));
    expect(talk.contents.get(3)).toMatchObject({ bytes: 2, isEnded: true });
  });

  test("a client with a smaller table is told once that none is used", () => {
    const talk = begun();
    talk.say(settings([1, 4_096]), headers(1, end), settings([1, 0]), headers(3, end), headers(5, end));
    const block = headerBlock([[":status", "200"]]);
    for (const stream of talk.streams.slice(0, 2)) {
      talk.connection.send.answer(stream, block, new Uint8Array(1), block);
      talk.drain();
    }
    talk.connection.send.end(talk.streams[2]!, block);
    talk.drain();
    const blocks = talk.sent.filter(({ type }) => type === frameType.headers);
    expect(blocks.map(({ payload }) => payload.toString("hex"))).toEqual(["2088", "88", "88", "88", "88"]);
  });

  test("a client that shrinks its table twice before an answer is told, too", () => {
    const talk = begun();
    talk.say(settings([1, 64]), settings([1, 4_096]), settings([1, 0]), headers(1, end), headers(3, end));
    const block = headerBlock([[":status", "200"]]);
    for (const stream of talk.streams) talk.connection.send.end(stream, block);
    talk.drain();
    const blocks = talk.sent.filter(({ type }) => type === frameType.headers);
    expect(blocks.map(({ payload }) => payload.toString("hex"))).toEqual(["2088", "88"]);
  });

  test("equal header blocks are decoded anew after the table has changed", () => {
    const talk = begun();
    const pseudo = Buffer.from("838604022f61", "hex");
    // Indexes 62 and 63 are the newest entries.
    const keeping = (value: string) => Buffer.concat([pseudo, Buffer.from(`400166${value}`, "hex")]);
    const again = Buffer.concat([pseudo, Buffer.from([0xbe])]);
    talk.say(headers(1, 0, keeping("0131")), headers(3, 0, again), headers(5, 0, again));
    talk.say(headers(7, 0, keeping("0132")), headers(9, 0, again), headers(11, 0, again));
    expect(talk.requests.map(({ fields }) => fields.get("f")?.[0])).toEqual(["1", "1", "1", "2", "2", "2"]);
    expect(talk.requests[1]).toBe(talk.requests[2]);
    // Also when trailers changed the table.
    talk.say(headers(13), headers(13, end, Buffer.from("4001660133", "hex")), headers(15, 0, again));
    expect(talk.requests.at(-1)!.fields.get("f")).toEqual(["3"]);
  });
});

describe("flow control", () => {
  const head = headerBlock([[":status", "200"]]);
  const tail = headerBlock([["grpc-status", "0"]]);
  const dataOf = (sent: readonly Sent[], stream: number) =>
    sent
      .filter(({ stream: of, type }) => type === frameType.data && of === stream)
      .reduce((sum, { payload }) => sum + payload.length, 0);

  test("the window is replenished: a client may send forever while its data is consumed", () => {
    const talk = begun();
    talk.say(headers(1));
    for (let round = 0; round < 400; round += 1) {
      const given = talk.sent.filter(({ type }) => type === frameType.windowUpdate);
      const taken = talk.contents.get(1)!.bytes;
      const room = [0, 1].map((stream) => initialWindow + sumOf(given, stream) - taken);
      const bytes = Math.min(16_384, ...room);
      expect(bytes).toBeGreaterThan(0);
      talk.say(data(1, bytes));
      talk.connection.consumed(talk.streams[0]!, bytes);
      talk.drain();
    }
    expect(talk.contents.get(1)!.bytes).toBeGreaterThan(4_000_000);
    expect(talk.wentAway).toBeUndefined();
  });

  const sumOf = (updates: readonly Sent[], stream: number) =>
    updates
      .filter(({ stream: of }) => of === stream)
      .reduce((sum, { payload }) => sum + payload.readUInt32BE(), 0);

  test("exceeding a stream's window resets the stream, and exceeding the connection's closes the connection", () => {
    const talk = begun();
    talk.say(headers(1), ...Array.from({ length: 5 }, () => data(1, 16_384)));
    expect(talk.resets(1)).toEqual([errorCode.flowControl]);
    expect(talk.wentAway).toBeUndefined();
    const all = begun();
    // In one piece, before any window is replenished.
    const flood = Buffer.concat([headers(1), ...Array.from({ length: 80 }, () => data(1, 16_384))]);
    all.say(flood);
    expect(all.wentAway).toBe(errorCode.flowControl);
  });

  test("answers stay within both windows, and arrive completely and in order", () => {
    const answers = fc.array(fc.integer({ min: 0, max: 200_000 }), { minLength: 1, maxLength: 6 });
    const steps = fc.array(
      fc.record({ stream: fc.integer({ min: 0, max: 6 }), by: fc.integer({ min: 1, max: 100_000 }) }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(answers, steps, fc.integer({ min: 0, max: 100_000 }), (lengths, updates, window) => {
        const talk = begun();
        talk.say(settings([4, window]));
        const windows = new Map<number, number>([[0, initialWindow]]);
        for (const [place, length] of lengths.entries()) {
          const id = place * 2 + 1;
          windows.set(id, window);
          talk.say(headers(id, end));
          const message = new Uint8Array(length).fill(id);
          talk.connection.send.answer(talk.streams[place]!, head, message, tail);
          talk.drain();
        }
        const keepsWithin = () => {
          const all = lengths.reduce((sum, _, place) => sum + dataOf(talk.sent, place * 2 + 1), 0);
          expect(all).toBeLessThanOrEqual(windows.get(0)!);
          for (const place of lengths.keys())
            expect(dataOf(talk.sent, place * 2 + 1)).toBeLessThanOrEqual(
              Math.max(0, windows.get(place * 2 + 1)!),
            );
        };
        keepsWithin();
        for (const { by, stream } of updates) {
          const id = stream === 0 ? 0 : stream * 2 - 1;
          if (!windows.has(id)) continue;
          windows.set(id, windows.get(id)! + by);
          talk.say(windowUpdate(id, by));
          keepsWithin();
        }
        talk.say(windowUpdate(0, 2_000_000));
        for (const place of lengths.keys()) talk.say(windowUpdate(place * 2 + 1, 300_000));
        for (const [place, length] of lengths.entries()) {
          const id = place * 2 + 1;
          const sent = talk.sent.filter(
            ({ stream, type }) => stream === id && type !== frameType.resetStream,
          );
          expect([sent[0]!.type, sent.at(-1)!.type]).toEqual([frameType.headers, frameType.headers]);
          expect(sent.at(-1)!.flags & end).toBe(end);
          expect(sent.slice(1, -1).every(({ payload, type }) => type === 0 && payload.length <= 16_384)).toBe(
            true,
          );
          const bytes = Buffer.concat(sent.slice(1, -1).map(({ payload }) => payload));
          expect(bytes.readUInt32BE(1)).toBe(length);
          expect(bytes.subarray(5).every((byte) => byte === id)).toBe(true);
          expect(bytes.length).toBe(length + 5);
          expect(talk.contents.get(id)!.over).toBe(true);
        }
        expect(talk.connection.streams).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  /** A message of `count` pieces of this size; `made` records those that were made. */
  function pieces(count: number, bytes: number, length = count * bytes) {
    const made: number[] = [];
    const each = function* () {
      for (let piece = 0; piece < count; piece += 1) {
        made.push(piece);
        yield new Uint8Array(bytes).fill(piece);
        yield new Uint8Array();
      }
    };
    return { made, message: { length, pieces: each } };
  }

  test("a long message is made a piece at a time, as its client's windows open, concurrently with others", () => {
    const talk = begun();
    talk.say(settings([4, 10_000]), windowUpdate(0, 1_000_000), headers(1, end), headers(3, end));
    const [slow, fast] = [pieces(100, 1_000), pieces(100, 1_000)];
    for (const [index, { message }] of [slow, fast].entries())
      talk.connection.send.answer(talk.streams[index]!, head, message, tail);
    talk.drain();
    expect([slow.made.length, fast.made.length]).toEqual([10, 10]);
    talk.say(windowUpdate(3, 200_000));
    talk.drain();
    expect([slow.made.length, fast.made.length]).toEqual([10, 100]);
    expect(talk.contents.get(3)!.over).toBe(true);
    const bytes = Buffer.concat(
      talk.sent.filter(({ stream, type }) => stream === 3 && type === 0).map(({ payload }) => payload),
    );
    expect(bytes.readUInt32BE(1)).toBe(100_000);
    expect(bytes.subarray(5).every((byte, at) => byte === Math.floor(at / 1_000))).toBe(true);
    // The other message is reset midway: no more of it is made.
    talk.say(reset(1), windowUpdate(1, 200_000));
    talk.drain();
    expect([slow.made.length, talk.connection.streams]).toEqual([10, 0]);
  });

  test.each([
    ["ends before its length", pieces(3, 1_000, 3_001).message],
    ["goes on after its length", pieces(3, 1_000, 2_999).message],
    [
      "cannot be made to its end",
      {
        length: 10,
        *pieces() {
          yield new Uint8Array(5);
          throw new Error("no more");
        },
      },
    ],
  ])("a long message that %s resets its stream, and others go on", (_, message) => {
    const talk = begun();
    talk.say(headers(1, end), headers(3, end));
    talk.connection.send.answer(talk.streams[0]!, head, message, tail);
    talk.connection.send.answer(talk.streams[1]!, head, new Uint8Array(3), tail);
    talk.drain();
    expect(talk.resets(1)).toEqual([errorCode.internal]);
    expect([talk.contents.get(1)!.over, talk.contents.get(3)!.over]).toEqual([false, true]);
  });

  test("under back-pressure, output waits in its streams and later resumes where it was", () => {
    const talk = begun();
    talk.say(settings([4, 2 ** 31 - 1]), windowUpdate(0, 2 ** 30), headers(1, end));
    talk.connection.send.hold();
    talk.connection.send.answer(talk.streams[0]!, head, new Uint8Array(10_000_000), tail);
    talk.drain();
    expect(dataOf(talk.sent, 1)).toBe(0);
    expect(talk.say(ping)).toHaveLength(1);
    talk.connection.send.release();
    expect(talk.connection.send.madeBytes).toBeLessThan(100_000);
    talk.drain();
    expect(dataOf(talk.sent, 1)).toBe(10_000_005);
    expect(talk.madeBytesMost).toBeLessThan(100_000);
  });

  test("a stream that is reset sends nothing more, and others go on", () => {
    const talk = begun();
    talk.say(settings([4, 10]), headers(1, end), headers(3, end));
    for (const stream of talk.streams) talk.connection.send.answer(stream, head, new Uint8Array(100), tail);
    talk.drain();
    talk.say(reset(1), windowUpdate(1, 1_000), windowUpdate(3, 1_000));
    expect([1, 3].map((id) => dataOf(talk.sent, id))).toEqual([10, 105]);
    expect([1, 3].map((id) => talk.contents.get(id)!.over)).toEqual([false, true]);
  });
});

describe("bounds on a client's cost", () => {
  test("concurrent requests are bounded, further ones are refused, and each end makes room", () => {
    const talk = begun(10);
    for (let id = 1; id < 31; id += 2) talk.say(headers(id));
    expect(talk.connection.streams).toBe(10);
    expect(talk.resets(21)).toEqual([errorCode.refusedStream]);
    talk.say(reset(1), headers(31));
    talk.connection.send.end(talk.streams[1]!, headerBlock([[":status", "200"]]));
    talk.drain();
    talk.say(headers(33));
    expect([talk.connection.streams, talk.resets(31), talk.resets(33)]).toEqual([10, [], []]);
  });

  const floods: Record<string, (round: number) => Buffer> = {
    "requests that are taken back at once": (round) =>
      Buffer.concat([headers(round * 2 + 1), reset(round * 2 + 1)]),
    "requests that are malformed": (round) => headers(round * 2 + 1, 0, Buffer.from([0x83])),
    pings: () => ping,
    settings: () => settings([4, 65_535]),
    "acknowledgements of nothing": () => frame(4, 1, 0),
    "data without any": () => data(1, 0),
    priorities: () => frame(2, 0, 1, Buffer.alloc(5)),
    "what nobody knows": () => frame(99, 0, 0),
    "parts of a header block without anything": () => continuation(3, 0, new Uint8Array()),
    "parts of a header block without end": () => continuation(3, 0, new Uint8Array(1_000)),
    "headers of what is over": () => headers(1, end),
    "requests that widen their windows by nothing": (round) =>
      Buffer.concat([headers(round * 2 + 1), windowUpdate(round * 2 + 1, 0)]),
    "requests that go on behind their ends": (round) =>
      Buffer.concat([headers(round * 2 + 1, end), data(round * 2 + 1, 1)]),
    "requests with trailers that end nothing": (round) =>
      Buffer.concat([headers(round * 2 + 1), headers(round * 2 + 1)]),
  };
  test.each(Object.entries(floods))("a flood of %s ends the connection, and takes little", (what, flood) => {
    const talk = begun();
    talk.say(headers(1));
    if (what.startsWith("headers")) talk.say(reset(1));
    if (what.startsWith("parts")) talk.say(frame(1, 0, 3, requestBlock));
    let round = 1;
    for (; !talk.connection.isOver && round < 100_000; round += 1) talk.say(flood(round));
    expect(talk.wentAway).toBe(errorCode.enhanceYourCalm);
    expect(round).toBeGreaterThan(what.endsWith("without end") ? 50 : 1_000);
    expect(round).toBeLessThan(20_000);
    expect(talk.connection.streams).toBe(0);
  });

  test("the same frames spread over a day are not a flood", () => {
    const talk = begun();
    talk.say(headers(1));
    for (let second = 0; second < 50; second += 1) {
      for (let count = 0; count < 500; count += 1) {
        const id = (second * 500 + count) * 2 + 3;
        talk.say(ping, headers(id), reset(id));
      }
      talk.connection.tick();
    }
    expect(talk.wentAway).toBeUndefined();
  });

  test("resets of answered streams are not a flood", () => {
    const talk = begun();
    for (let round = 0; round < 10_000; round += 1) {
      const id = round * 2 + 1;
      talk.say(headers(id));
      talk.connection.send.head(talk.streams.at(-1)!, headerBlock([[":status", "200"]]));
      talk.drain();
      talk.say(reset(id));
    }
    expect([talk.wentAway, talk.connection.streams]).toEqual([undefined, 0]);
  });

  test("as many pings as messages are not a flood: gRPC clients send one for each", () => {
    const talk = begun();
    talk.say(headers(1));
    for (let round = 0; round < 50_000; round += 1) {
      talk.connection.send.message(
        talk.streams[0]!,
        headerBlock([[":status", "200"]]),
        data(1, 20),
        undefined,
      );
      talk.drain();
      talk.say(ping);
      if (round % 1_000 === 0) talk.say(windowUpdate(0, 60_000), windowUpdate(1, 60_000));
    }
    expect([talk.wentAway, talk.connection.isOver]).toEqual([undefined, false]);
  });

  test("a client that reads no answers is disconnected before many accumulate", () => {
    const talk = begun();
    for (let round = 0; round < 100_000 && !talk.connection.isOver; round += 1) {
      talk.connection.take(ping);
      if (round % 4_000 === 0) talk.connection.tick();
    }
    expect(talk.connection.isOver).toBe(true);
    expect(talk.connection.send.madeBytes).toBeLessThan(300_000);
  });

  test("too many headers are refused, and the connection continues", () => {
    const talk = begun();
    const long = Buffer.concat([
      Buffer.from("8386 0402 2f61 400166 7fa107".replaceAll(" ", ""), "hex"),
      Buffer.alloc(1_056, 97),
    ]);
    talk.say(headers(1, 0, long), headers(3, 0, Buffer.alloc(16_000, 0xbe)));
    expect(talk.resets(3)).toEqual([errorCode.enhanceYourCalm]);
    talk.say(headers(5));
    expect(talk.contents.has(5)).toBe(true);
  });

  test("a continuous upload may be in the middle of a frame at every tick", () => {
    const talk = begun();
    talk.say(headers(1));
    const upload = Buffer.concat(Array.from({ length: 40 }, () => data(1, 1_000)));
    for (let at = 0; at < 20_000; at += 700) {
      talk.say(upload.subarray(at, at + 700));
      talk.connection.consumed(talk.streams[0]!, 700);
      talk.connection.tick();
    }
    expect([talk.wentAway, talk.contents.get(1)!.bytes]).toEqual([undefined, 20_000]);
  });

  test("many window sizes in one settings frame cost no more than the last of them", () => {
    const talk = begun(1_000);
    for (let id = 1; id < 2_000; id += 2) talk.say(headers(id));
    const change = settings(...Array.from({ length: 2_700 }, (_, at): [number, number] => [4, 1_000 + at]));
    // CPU time, so that other work on the machine does not count.
    const start = process.cpuUsage();
    for (let count = 0; count < 200; count += 1) talk.say(change);
    // Applied one by one, they would change half a billion windows.
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(3_000);
    talk.connection.send.answer(talk.streams[0]!, requestBlock, new Uint8Array(5_000), requestBlock);
    talk.drain();
    const content = talk.sent.filter(({ type }) => type === frameType.data);
    expect(content.reduce((sum, { payload }) => sum + payload.length, 0)).toBe(1_000 + 2_699);
    expect(talk.say(settings([4, 2 ** 31], [4, 1])).map(({ type }) => type)).toContain(frameType.goAway);
  });

  test("an incomplete preface, frame or header block times out after ten seconds", () => {
    for (const words of [
      begin.subarray(0, 10),
      begin.subarray(0, 24),
      Buffer.concat([begin, ping.subarray(0, 12)]),
      Buffer.concat([begin, frame(1, 0, 1, requestBlock)]),
    ]) {
      const talk = new Talk();
      talk.say(words);
      for (let second = 0; second < 10; second += 1) talk.connection.tick();
      expect(talk.connection.isOver).toBe(false);
      talk.connection.tick();
      expect(talk.connection.isOver).toBe(true);
    }
    const idle = begun();
    for (let second = 0; second < 100; second += 1) idle.connection.tick();
    expect(idle.connection.isOver).toBe(false);
  });
});

test("a request answered before its end is reset a little later, unless its end arrives first", () => {
  const talk = begun();
  talk.say(headers(1), headers(3), headers(5), headers(7, end));
  for (const stream of talk.streams) talk.connection.send.end(stream, headerBlock([[":status", "200"]]));
  talk.drain();
  talk.say(data(1, 10), data(3, 0, end), reset(5));
  expect([1, 3, 5, 7].flatMap((id) => talk.resets(id))).toEqual([]);
  talk.connection.tick();
  talk.drain();
  expect([1, 3, 5, 7].map((id) => talk.resets(id))).toEqual([[errorCode.none], [], [], []]);
  expect(talk.wentAway).toBeUndefined();
});

test("a disconnect is reported once on each stream; a draining server finishes requests in progress", () => {
  const talk = begun();
  talk.say(headers(1), headers(3));
  talk.connection.leave();
  talk.say(headers(5), data(5, 10, end));
  expect([talk.requests.length, talk.connection.isOver]).toEqual([2, false]);
  talk.connection.send.end(talk.streams[0]!, headerBlock([[":status", "200"]]));
  talk.drain();
  expect(talk.connection.isOver).toBe(false);
  talk.say(reset(3));
  expect(talk.wentAway).toBe(errorCode.none);
  const failing = begun();
  failing.say(headers(1));
  failing.connection.leave();
  failing.say(headers(3), frame(6, 0, 0, Buffer.alloc(7)));
  const farewells = failing.sent.filter(({ type }) => type === frameType.goAway);
  expect(farewells.map(({ payload }) => payload.readUInt32BE(0))).toEqual([1, 1]);
  const gone = begun();
  gone.say(headers(1));
  gone.connection.close();
  gone.connection.close();
  expect([gone.contents.get(1)!.over, gone.connection.streams]).toEqual([false, 0]);
});

const id = fc.integer({ min: 0, max: 9 });
/** Frames that are mostly valid. */
const frames = fc.oneof(
  fc.tuple(id, fc.constantFrom(0, end)).map(([stream, flags]) => headers(stream, flags)),
  fc.tuple(id, fc.uint8Array({ maxLength: 40 })).map(([stream, block]) => headers(stream, 0, block)),
  fc
    .tuple(id, fc.integer({ min: 0, max: 16_384 }), fc.constantFrom(0, end, 8))
    .map(([stream, bytes, flags]) => data(stream, bytes, flags)),
  fc.tuple(id, fc.integer({ min: 0, max: 2 ** 31 })).map(([stream, by]) => windowUpdate(stream, by)),
  fc.tuple(fc.integer({ min: 0, max: 7 }), fc.nat(2 ** 31)).map(([name, value]) => settings([name, value])),
  id.map((stream) => reset(stream)),
  fc.constant(ping),
  fc
    .tuple(fc.integer({ min: 0, max: 12 }), fc.nat(255), id, fc.uint8Array({ maxLength: 50 }))
    .map(([type, flags, stream, payload]) => frame(type, flags, stream, payload)),
);
const cuts = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 30 });

function pieces(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length]!;
    found.push(Buffer.from(bytes.subarray(at, at + size)));
    at += size;
  }
  return found;
}

test("input is handled and answered the same, however it is split", () => {
  fc.assert(
    fc.property(fc.array(frames, { maxLength: 12 }), cuts, (all, sizes) => {
      // At most 100,000 bytes: a larger message than a window is credited as it arrives, so pieces would
      // matter.
      const bytes = Buffer.concat([begin, ...all]).subarray(0, 100_000);
      const [whole, cut] = [new Talk(), new Talk()];
      whole.say(bytes);
      cut.say(...pieces(bytes, sizes));
      expect(cut.sent).toEqual(whole.sent);
      expect([...cut.contents]).toEqual([...whole.contents]);
      expect(cut.connection.isOver).toBe(whole.connection.isOver);
    }),
    { numRuns: 200 },
  );
});

test("no input makes it throw, or exceed a bound", () => {
  const noise = fc.oneof(
    { weight: 5, arbitrary: frames },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
  );
  fc.assert(
    fc.property(fc.array(noise, { maxLength: 60 }), (all) => {
      const talk = new Talk(3);
      talk.say(begin);
      for (const bytes of all) {
        talk.connection.take(Uint8Array.from(bytes));
        for (const stream of talk.streams)
          if (!stream.isOver && stream.isRemoteEnded)
            talk.connection.send.answer(
              stream,
              headerBlock([[":status", "200"]]),
              new Uint8Array(10),
              requestBlock,
            );
        expect(talk.connection.streams).toBeLessThanOrEqual(3);
        expect(talk.connection.send.madeBytes).toBeLessThan(400_000);
      }
      talk.drain();
      for (const stream of talk.streams)
        expect(stream.isOver).toBe(talk.contents.get(stream.id)!.over !== undefined);
      talk.connection.close();
      expect(talk.streams.every(({ isOver }) => isOver)).toBe(true);
    }),
    { numRuns: 300 },
  );
});
