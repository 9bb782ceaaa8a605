import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { beforeEach, expect, test } from "vitest";
import type { Cancellation } from "../lease/provider.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import type { Connection } from "./connection/connection.js";
import { KV, RangeRequestSchema, RangeResponseSchema } from "./gen/etcd/rpc_pb.js";
import { serviceError } from "./refreshes.js";
import { Servers } from "./servers.js";

interface Plan {
  /** Infinity: the server never answers. */
  readonly answersAfterMs: number;
  readonly refusal?: string;
  /** A failure after which other servers are asked. */
  readonly failure?: string;
}

let world: VirtualWorld;
let asked: { readonly endpoint: string; readonly atMs: number }[];
let inFlight: number;
beforeEach(() => {
  world = new VirtualWorld();
  asked = [];
  inFlight = 0;
});

/** A core whose servers each answer after some time, with their number as the count. */
function core(plans: readonly Plan[]): Servers {
  const connect = (endpoint: string): Connection => ({
    isReady: true,
    ask: <Input extends DescMessage, Output extends DescMessage>(
      _method: unknown,
      _request: MessageShape<Input>,
      _token: string | undefined,
      timeoutMs: number,
    ) => {
      const plan = plans[Number(endpoint)]!;
      asked.push({ endpoint, atMs: world.clock.monotonicMs() });
      inFlight += 1;
      return new Promise<MessageShape<Output>>((resolve, reject) => {
        const isLate = plan.answersAfterMs > timeoutMs;
        world.timers.after(Math.min(plan.answersAfterMs, timeoutMs), () => {
          inFlight -= 1;
          if (isLate) reject(serviceError(4, "Deadline exceeded"));
          else if (plan.failure !== undefined) reject(serviceError(14, plan.failure));
          else if (plan.refusal !== undefined) reject(serviceError(9, plan.refusal));
          else
            resolve(
              create(RangeResponseSchema, {
                count: BigInt(endpoint),
              }) as MessageShape<DescMessage> as MessageShape<Output>,
            );
        });
      });
    },
    open: () => {
      throw new Error("no streams here");
    },
    close: () => undefined,
  });
  return new Servers(
    plans.map((_, index) => `${index}`),
    { connect },
    world,
  );
}

/** Returns the number of the server that answered, or the error. */
async function read(servers: Servers, timeoutMs: number, cancellation?: Cancellation) {
  const limits = { timeoutMs, ...(cancellation && { cancellation }) };
  try {
    return Number((await servers.ask(KV.method.range, create(RangeRequestSchema), limits)).count);
  } catch (error) {
    return (error as Error).message;
  }
}

const startMs = () => asked[0]!.atMs;

test("a core slower than each server's share of the time still answers in time", async () => {
  const servers = core(Array.from({ length: 5 }, () => ({ answersAfterMs: 350 })));
  const answer = read(servers, 1_000);
  await world.advance(1_000);
  const first = Number(asked[0]!.endpoint);
  expect(await answer).toBe(first);
  expect(asked.map(({ atMs }) => atMs - startMs())).toEqual([0, 200]);
});

test("the first of several answers counts, and calls to silent servers end at their deadlines", async () => {
  const servers = core([{ answersAfterMs: Infinity }, { answersAfterMs: 20 }, { answersAfterMs: Infinity }]);
  const answer = read(servers, 900);
  await world.advance(900);
  expect(await answer).toBe(1);
  await world.advance(2_000);
  expect(inFlight).toBe(0);
});

test("without an answer the calls end at the timeout, and each server was asked", async () => {
  const servers = core(Array.from({ length: 3 }, () => ({ answersAfterMs: Infinity })));
  const answer = read(servers, 900);
  await world.advance(899);
  expect(new Set(asked.map(({ endpoint }) => endpoint)).size).toBe(3);
  await world.advance(1);
  expect(await answer).toMatch(/^no answer from the core within 900ms: /);
  expect(inFlight).toBe(0);
});

test("a mute core is asked at most once in each share and pause", async () => {
  const servers = core(Array.from({ length: 3 }, () => ({ answersAfterMs: Infinity })));
  const answer = read(servers, 60_000);
  await world.advance(60_000);
  await answer;
  expect(asked.length).toBeGreaterThan(26);
  expect(asked.length).toBeLessThan(34);
});

test("a core without a leader is asked again and again", async () => {
  const servers = core([{ answersAfterMs: 1, failure: "no leader" }]);
  const answer = read(servers, 5_000);
  await world.advance(5_000);
  expect(await answer).toContain("no leader");
  expect(asked.length).toBeGreaterThan(10);
});

test("a refusal ends the call at once, whoever else has been asked", async () => {
  const refusal = "etcdserver: mvcc: required revision has been compacted";
  const servers = core(Array.from({ length: 5 }, () => ({ answersAfterMs: 350, refusal })));
  const answer = read(servers, 1_000);
  await world.advance(351);
  expect(await answer).toContain(refusal);
});

test("a cancelled call ends at once", async () => {
  const servers = core([{ answersAfterMs: Infinity }, { answersAfterMs: Infinity }]);
  const cancellation: { cancelled: boolean } & Cancellation = {
    cancelled: false,
    onCancel: undefined,
  };
  const answer = read(servers, 10_000, cancellation);
  await world.advance(100);
  cancellation.cancelled = true;
  cancellation.onCancel!();
  await world.advance(0);
  expect(await answer).toMatch(/^no answer/);
  expect(cancellation.onCancel).toBeUndefined();
  expect(asked).toHaveLength(1);
});
