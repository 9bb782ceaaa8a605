import { EventEmitter } from "node:events";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { type LeaseKeepAliveRequest, LeaseKeepAliveResponseSchema } from "./gen/etcd/rpc_pb.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { type RefreshStream, Refreshes } from "./refreshes.js";

class FakeStream extends EventEmitter {
  readonly asked: bigint[] = [];
  isCancelled = false;
  write({ ID }: LeaseKeepAliveRequest): boolean {
    this.asked.push(ID);
    return true;
  }
  cancel(): void {
    this.isCancelled = true;
  }
  /** Answers the oldest question with a number that identifies the answer. */
  answer(ttl: bigint, id = this.asked.shift()!): void {
    this.emit("data", create(LeaseKeepAliveResponseSchema, { ID: id, TTL: ttl }));
  }
}

let world: VirtualWorld;
let streams: FakeStream[];
let refreshes: Refreshes;
beforeEach(() => {
  world = new VirtualWorld();
  streams = [];
  refreshes = new Refreshes(() => {
    streams.push(new FakeStream());
    return streams.at(-1) as unknown as RefreshStream;
  }, world);
});

/** The outcome of a refresh: a TTL, or the error's text. */
async function ask(id: number, timeoutMs = 1_000) {
  try {
    return Number((await refreshes.ask(BigInt(id), timeoutMs)).TTL);
  } catch (error) {
    return (error as Error).message;
  }
}

test("refreshes of all leases go over one stream, and each gets its own answer", async () => {
  const answers = [ask(1), ask(2), ask(1)];
  for (const ttl of [10n, 20n, 30n]) streams[0]!.answer(ttl);
  expect(await Promise.all(answers)).toEqual([10, 20, 30]);
  expect([streams.length, streams[0]!.isCancelled]).toEqual([1, false]);
});

test("a late answer is not taken for the answer to a later refresh of the lease", async () => {
  const late = ask(1, 500);
  await world.advance(501);
  const next = ask(1);
  streams[0]!.answer(1n);
  streams[0]!.answer(2n);
  expect(await Promise.all([late, next])).toEqual(["Deadline exceeded", 2]);
  expect([streams.length, streams[0]!.isCancelled]).toEqual([1, false]);
});

test("an answer for another lease acknowledges nothing, and ends the stream", async () => {
  const answers = [ask(1), ask(2)];
  streams[0]!.answer(10n, 2n);
  expect(await Promise.all(answers)).toEqual(Array(2).fill("it answered a refresh that was not requested"));
  expect(streams[0]!.isCancelled).toBe(true);
});

test("a mute server's stream is closed, which bounds the questions on it", async () => {
  const answers = Array.from({ length: 40 }, async (_, index) => {
    await world.advance(0);
    return ask(index, 700);
  });
  await world.advance(1_999);
  expect(streams[0]!.isCancelled).toBe(false);
  const last = ask(99, 700);
  await world.advance(800);
  expect(await last).toBe("Deadline exceeded");
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["Deadline exceeded"]));
  expect([streams.length, streams[0]!.isCancelled]).toEqual([1, true]);
});

test("streams to a server that refuses them are opened at most ten times a second", async () => {
  for (let passedMs = 0; passedMs < 1_000; passedMs += 5) {
    const answer = ask(1);
    if (streams.length > 0) streams.at(-1)!.emit("error", Object.assign(new Error("no"), { details: "no" }));
    expect(await answer).toBe("no");
    await world.advance(5);
  }
  expect(streams.length).toBe(10);
});

test("whatever happens, a refresh gets its own answer or none", async () => {
  const event = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant("ask" as const), id: fc.integer({ min: 1, max: 3 }) }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("answer" as const) }) },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ max: 900, min: 1 }) }),
    },
    { weight: 1, arbitrary: fc.constant({ do: "fail" as const }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
      const own = new VirtualWorld();
      // The server answers with the question's number as the TTL, so that the result identifies the answer.
      let asked = 0;
      const opened: (FakeStream & { numbers: number[] })[] = [];
      const shared = new Refreshes(() => {
        const stream = Object.assign(new FakeStream(), { numbers: [] as number[] });
        stream.write = ({ ID }) => (stream.asked.push(ID), stream.numbers.push(asked), true);
        opened.push(stream);
        return stream as unknown as RefreshStream;
      }, own);
      const wrong: string[] = [];
      for (const each of events) {
        const stream = opened.at(-1);
        if (each.do === "ask") {
          asked += 1;
          const number = asked;
          const answer = shared.ask(BigInt(each.id), 700);
          answer.then(
            ({ TTL }) => Number(TTL) !== number && wrong.push(`${number} got ${TTL}`),
            () => undefined,
          );
        } else if (each.do === "answer" && stream !== undefined && stream.asked.length > 0)
          stream.answer(BigInt(stream.numbers.shift()!));
        else if (each.do === "wait") await own.advance(each.ms);
        else if (each.do === "fail")
          stream?.emit("error", Object.assign(new Error("lost"), { details: "lost" }));
      }
      await own.advance(3_000);
      expect(wrong).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
