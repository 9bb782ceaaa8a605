import { create } from "@bufbuild/protobuf";
import { afterEach, expect, test, vi } from "vitest";
import {
  DeleteRangeResponseSchema,
  PutResponseSchema,
  RangeRequestSchema,
  RangeResponseSchema,
  type ResponseOp,
  ResponseOpSchema,
  TxnResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { finish } from "../../../state/steps.js";
import { Answers } from "./answers.js";
import { CoreState } from "../../../state/state.js";
import { LongAnswer } from "./encode.js";

/** Long, for a busy machine. */
const patience = { timeout: 60_000 };

const kvs = Array.from({ length: 100 }, () => ({ key: new Uint8Array(10), value: new Uint8Array(10_000) }));
const long = () => create(RangeResponseSchema, { kvs });

const inTxn = (...responses: ResponseOp["response"][]) =>
  create(TxnResponseSchema, {
    responses: responses.map((response) => create(ResponseOpSchema, { response })),
  });

/** Calls whose clients read an answer when told to. */
const largestBytes = 1_100_000;
const open: Answers[] = [];
afterEach(() => {
  for (const answers of open.splice(0)) answers.close();
  vi.useRealTimers();
});

class Stage {
  readonly answers = new Answers(largestBytes);
  readonly answered: (string | number)[] = [];

  constructor() {
    open.push(this.answers);
  }

  /** @returns a function by which the client reads the answer */
  ask(client: string, answer: Parameters<Answers["send"]>[1]): () => void {
    let over = () => undefined as void;
    const call = {
      peer: { address: client, commonName: "" },
      whenOver: (listener: () => void) => (over = listener),
      cut: ({ details }: { details: string }) => {
        this.answered.push(`cut: ${details}`);
        over();
      },
    };
    this.answers.send(call, answer, (error, value) => {
      const text = value instanceof LongAnswer ? value.length : "answered";
      this.answered.push(error === null ? text : String((error as { details: string }).details));
    });
    return () => over();
  }
}

test("a client that does not read has one large answer pending, and others get theirs", async () => {
  const stage = new Stage();
  const first = stage.ask("slow", long());
  stage.ask("slow", long());
  stage.ask("slow", inTxn({ case: "responseRange", value: long() }));
  expect(stage.answered).toEqual(["etcdserver: too many requests", "etcdserver: too many requests"]);
  stage.ask("other", long());
  await vi.waitFor(() => expect(stage.answered).toHaveLength(4), patience);
  expect(stage.answered.slice(2).every((bytes) => Number(bytes) > 1_000_000)).toBe(true);
  // The client reads the first answer.
  first();
  stage.ask("slow", long());
  await vi.waitFor(() => expect(stage.answered).toHaveLength(5), patience);
  expect(stage.answered[4]).toBeGreaterThan(1_000_000);
});

test("an executed write is answered however much its client has left unread, and its answer counts", async () => {
  const deleted = () => create(DeleteRangeResponseSchema, { prevKvs: kvs });
  for (const answer of [
    deleted(),
    inTxn({ case: "responseDeleteRange", value: deleted() }),
    inTxn(
      { case: "responsePut", value: create(PutResponseSchema) },
      { case: "responseRange", value: long() },
    ),
    inTxn({ case: "responseTxn", value: inTxn({ case: "responseDeleteRange", value: deleted() }) }),
  ]) {
    const stage = new Stage();
    const first = stage.ask("slow", long());
    const second = stage.ask("slow", answer);
    await vi.waitFor(() => expect(stage.answered).toHaveLength(2), patience);
    expect(stage.answered.every((bytes) => Number(bytes) > 1_000_000)).toBe(true);
    expect(stage.answers.refusalFor("slow")?.failure).toBe("tooManyRequests");
    for (const taken of [first, second]) taken();
    expect(stage.answers.refusalFor("slow")).toBeUndefined();
  }
});

test("a client that reads nothing gets no more answers, even small ones", () => {
  const stage = new Stage();
  const calls: (() => void)[] = [];
  while (stage.answers.refusalFor("slow") === undefined)
    calls.push(stage.ask("slow", create(PutResponseSchema)));
  expect(calls.length).toBeLessThan(1_200);
  expect(stage.answers.refusalFor("other")).toBeUndefined();
  calls[0]!();
  calls[1]!();
  expect(stage.answers.refusalFor("slow")).toBeUndefined();
});

const value = new Uint8Array(100_000);

class Store {
  readonly #state = new CoreState();

  put(key: string, content = value): void {
    const body = { case: "put", value: { key: Buffer.from(key), value: content } } as const;
    this.#state.apply(create(CommandSchema, { body }), 1);
  }

  /** Removes all history before the last change. */
  forgetPast(): void {
    const { revisions } = this.#state;
    revisions.compact(revisions.current);
    finish(revisions.sweep());
  }

  /** A snapshot replaces the state. */
  abandon(): void {
    this.#state.revisions.abandon();
  }

  read() {
    const all = create(RangeRequestSchema, { key: Buffer.from("a"), rangeEnd: Buffer.from("z") });
    return finish(this.#state.read(all));
  }
}

function filled(): Store {
  const store = new Store();
  for (let number = 0; number < 10; number += 1) store.put(`k${number}`);
  return store;
}

test("unread references to data that is in memory anyway cause no refusals", async () => {
  const [stage, store] = [new Stage(), filled()];
  for (let number = 0; number < 15; number += 1) stage.ask(`client ${number}`, store.read());
  await vi.waitFor(() => expect(stage.answered).toHaveLength(15), patience);
  expect(stage.answered.every((bytes) => Number(bytes) > 1_000_000)).toBe(true);
});

test("a long answer is cut off only when it alone retains more than the largest answer may have", async () => {
  vi.useFakeTimers();
  const [stage, store] = [new Stage(), filled()];
  const txn = { case: "responseRange", value: store.read() } as const;
  stage.ask("range", store.read());
  stage.ask("transaction", inTxn(txn));
  await vi.waitFor(() => expect(stage.answered).toHaveLength(2), patience);
  // A version takes 200 bytes in addition to its key of two: as many as fit in the bound.
  const most = Math.floor(largestBytes / 100_202);
  for (let number = 0; number < most; number += 1) store.put(`k${number}`);
  store.forgetPast();
  stage.ask("later", store.read());
  vi.advanceTimersByTime(1_000);
  await vi.waitFor(() => expect(stage.answered).toHaveLength(3), patience);
  store.put("k0");
  store.forgetPast();
  vi.advanceTimersByTime(1_000);
  const refusal = "cut: etcdserver: too many requests";
  expect(stage.answered.slice(3)).toEqual([refusal, refusal]);
  // Later answers retain less, until a snapshot replaces the state: then they retain all of it.
  vi.advanceTimersByTime(1_000);
  expect(stage.answered).toHaveLength(5);
  store.put("more");
  store.abandon();
  vi.advanceTimersByTime(1_000);
  expect(stage.answered.slice(5)).toEqual([refusal]);
});

/** Enough keys that their tree counts; `change` changes each leaf. */
function bushy(): { readonly store: Store; readonly change: () => void } {
  const store = new Store();
  const keyAt = (number: number) => `k${String(number).padStart(5, "0")}`;
  for (let number = 0; number < 20_000; number += 1) store.put(keyAt(number), new Uint8Array(1));
  const change = () => {
    for (let number = 0; number < 20_000; number += 16) store.put(keyAt(number), new Uint8Array(1));
  };
  return { store, change };
}

const cutOff = "cut: etcdserver: too many requests";

test("a client that reads nothing retains only as many trees as it has room for, and one tree at any rate of change", () => {
  vi.useFakeTimers();
  const [stage, { change, store }] = [new Stage(), bushy()];
  const cuts = () => stage.answered.filter((each) => each === cutOff).length;
  stage.ask("other", store.read());
  for (let number = 0; number < 5; number += 1) {
    change();
    vi.advanceTimersByTime(1_000);
  }
  expect(cuts()).toBe(0);
  for (let number = 0; number < 5; number += 1) {
    stage.ask("slow", store.read());
    change();
    vi.advanceTimersByTime(1_000);
  }
  // Each answer retains a tree of 480,000 bytes, and there is room for 2,200,000.
  expect(cuts()).toBeGreaterThan(2);
  expect(stage.answers.refusalFor("other")).toBeUndefined();
});

test("an unread answer that no longer grows is kept, however much room others take later", async () => {
  vi.useFakeTimers();
  const [stage, { change, store }] = [new Stage(), bushy()];
  stage.ask("early", store.read());
  change();
  vi.advanceTimersByTime(1_000);
  stage.ask("large", long());
  stage.ask("later", create(RangeResponseSchema, { kvs: kvs.slice(50) }));
  await vi.waitFor(() => expect(stage.answered).toHaveLength(3), patience);
  // The early answer takes half a megabyte by now, and less than that is free.
  expect(stage.answers.refusalFor("early")?.failure).toBe("tooManyRequests");
  vi.advanceTimersByTime(1_000);
  expect(stage.answered).not.toContain(cutOff);
});

test("a cut-off answer reports whether its request was executed", () => {
  vi.useFakeTimers();
  const [stage, { change, store }] = [new Stage(), bushy()];
  const put = { case: "responsePut", value: create(PutResponseSchema) } as const;
  for (let number = 0; number < 8; number += 1) {
    stage.ask("slow", inTxn(put, { case: "responseRange", value: store.read() }));
    change();
    vi.advanceTimersByTime(1_000);
  }
  const cuts = stage.answered.filter((each) => String(each).startsWith("cut: "));
  expect(new Set(cuts)).toEqual(
    new Set(["cut: leasehold: the request was carried out, and its answer is too large"]),
  );
});

test("long answers of one moment retain one tree, and its room is released with the answer", () => {
  vi.useFakeTimers();
  const [stage, { change, store }] = [new Stage(), bushy()];
  const calls = Array.from({ length: 10 }, (_, number) => stage.ask(`client ${number}`, store.read()));
  change();
  vi.advanceTimersByTime(1_000);
  expect(stage.answered).not.toContain(cutOff);
  for (const taken of calls) taken();
  for (let number = 0; number < 20; number += 1) {
    const taken = stage.ask("slow", store.read());
    change();
    vi.advanceTimersByTime(1_000);
    taken();
  }
  expect(stage.answered).not.toContain(cutOff);
});

test("answers from a state that a snapshot has replaced retain its tree", () => {
  vi.useFakeTimers();
  const stage = new Stage();
  for (let number = 0; number < 5; number += 1) {
    const { store } = bushy();
    stage.ask("slow", store.read());
    store.abandon();
    vi.advanceTimersByTime(1_000);
  }
  expect(stage.answered.filter((each) => each === cutOff).length).toBeGreaterThan(2);
});
