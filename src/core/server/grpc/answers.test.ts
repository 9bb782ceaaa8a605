import { create } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { DeleteRangeResponseSchema, PutResponseSchema, RangeResponseSchema } from "../../gen/etcd/rpc_pb.js";
import { Answers } from "./answers.js";
import { Encoded } from "./encode.js";

/** For a busy machine. */
const patience = { timeout: 60_000 };

const kvs = Array.from({ length: 100 }, () => ({ key: new Uint8Array(10), value: new Uint8Array(10_000) }));
const long = () => create(RangeResponseSchema, { kvs });

/** Calls of clients that take in an answer when they are told to. */
class Stage {
  readonly answers = new Answers(1_100_000);
  readonly told: (string | number)[] = [];

  /** @returns the client takes it in */
  ask(client: string, answer: Parameters<Answers["send"]>[1]): () => void {
    let over = () => undefined as void;
    const call = {
      peer: { address: client, commonName: "" },
      whenOver: (listener: () => void) => (over = listener),
    };
    this.answers.send(call, answer, (error, value) => {
      const text = value instanceof Encoded ? value.bytes.length : "answered";
      this.told.push(error === null ? text : String((error as { details: string }).details));
    });
    return () => over();
  }
}

test("a client that does not read has one large answer here, and others get theirs", async () => {
  const stage = new Stage();
  const first = stage.ask("slow", long());
  stage.ask("slow", long());
  stage.ask("slow", create(DeleteRangeResponseSchema, { prevKvs: kvs }));
  expect(stage.told).toEqual([
    "etcdserver: too many requests",
    "leasehold: the request was carried out, and its answer is too large",
  ]);
  stage.ask("other", long());
  await vi.waitFor(() => expect(stage.told).toHaveLength(4), patience);
  expect(stage.told.slice(2).every((bytes) => Number(bytes) > 1_000_000)).toBe(true);
  // It takes the first one in.
  first();
  stage.ask("slow", long());
  await vi.waitFor(() => expect(stage.told).toHaveLength(5), patience);
  expect(stage.told[4]).toBeGreaterThan(1_000_000);
});

test("a client that takes in nothing is asked for no more, also when its answers are small", () => {
  const stage = new Stage();
  const calls: (() => void)[] = [];
  while (stage.answers.hasRoomFor("slow")) calls.push(stage.ask("slow", create(PutResponseSchema)));
  expect(calls.length).toBeLessThan(1_200);
  expect(stage.answers.hasRoomFor("other")).toBe(true);
  calls[0]!();
  calls[1]!();
  expect(stage.answers.hasRoomFor("slow")).toBe(true);
});
