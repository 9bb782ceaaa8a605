import { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import {
  type LeaseKeepAliveRequest,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  LeaseKeepAliveResponseSchema,
} from "../../gen/etcd/rpc_pb.js";
import type { ClientRequest } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import type { Settle } from "../../host/host.js";
import type { Stream } from "./streams.js";
import { keepAliveHandler } from "./keep-alive.js";

/** A client's stream, and a core that answers when it is told to. */
class Fixture {
  readonly answered: bigint[] = [];
  readonly cancelled: number[] = [];
  readonly errors: string[] = [];
  /** The connection has no room: written answers stay where they are. */
  isStuck = false;
  readonly #under: { readonly id: bigint; readonly settle: Settle }[] = [];
  readonly #stuck: (() => void)[] = [];
  readonly stream: Duplex;
  isEnded = false;

  constructor() {
    this.stream = new Duplex({
      objectMode: true,
      writableHighWaterMark: 1_000_000,
      read: () => undefined,
      write: ({ ID }: LeaseKeepAliveResponse, _encoding, done) => {
        this.answered.push(ID);
        if (this.isStuck) this.#stuck.push(done);
        else done();
      },
      final: (done) => {
        this.isEnded = true;
        done();
      },
    });
    Object.assign(this.stream, { getDeadline: () => Infinity, getPeer: () => "c", cancelled: false });
    this.stream.on("error", (error: ServiceError) => this.errors.push(error.details));
    const host = {
      request: (_client: string, request: ClientRequest, _deadlineMs: number, settle: Settle) => {
        this.#under.push({ id: (request.request as LeaseKeepAliveRequest).ID, settle });
        return this.#under.length;
      },
      cancel: (id: number) => void this.cancelled.push(id),
    };
    keepAliveHandler(host, { admit: () => true }, 1_000)(this.stream as unknown as Stream);
  }

  get asked(): number {
    return this.#under.length;
  }

  ask(...ids: number[]): void {
    for (const id of ids) this.stream.push(create(LeaseKeepAliveRequestSchema, { ID: BigInt(id) }));
  }

  /** The core answers the request that came as the so-many-th. */
  settle(index: number, error?: CoreError): void {
    const { id, settle } = this.#under[index]!;
    settle(error ?? create(LeaseKeepAliveResponseSchema, { ID: id, TTL: 10n }));
  }

  unstick(): void {
    this.isStuck = false;
    for (const done of this.#stuck.splice(0)) done();
  }
}

test("refreshes of one stream are under way together, and answered in the order of asking", async () => {
  const fixture = new Fixture();
  fixture.ask(1, 2, 3);
  await turn();
  expect(fixture.asked).toBe(3);
  fixture.settle(2);
  fixture.settle(1);
  await turn();
  expect(fixture.answered).toEqual([]);
  fixture.settle(0);
  await turn();
  expect(fixture.answered).toEqual([1n, 2n, 3n]);
});

test("a stream has so many under way at most, answers that its client does not take among them", async () => {
  const fixture = new Fixture();
  fixture.isStuck = true;
  fixture.ask(...Array.from({ length: 3_000 }, (_, index) => index));
  for (let round = 0; round < 10; round += 1) {
    await turn();
    for (let index = fixture.answered.length; index < fixture.asked; index += 1) fixture.settle(index);
  }
  expect(fixture.asked).toBe(1_024);
  fixture.unstick();
  for (let round = 0, settled = 1_024; round < 20; round += 1) {
    await turn();
    for (; settled < fixture.asked; settled += 1) fixture.settle(settled);
  }
  await turn();
  expect(fixture.answered.length).toBe(3_000);
});

test("a refusal ends the stream when its turn comes, and what was asked after it refreshes nothing", async () => {
  const fixture = new Fixture();
  fixture.ask(1, 2, 3);
  await turn();
  fixture.settle(1, new CoreError("timeout"));
  expect(fixture.errors).toEqual([]);
  fixture.settle(0);
  await turn();
  expect(fixture.answered).toEqual([1n]);
  expect(fixture.errors).toEqual(["etcdserver: request timed out"]);
  expect(fixture.cancelled).toEqual([3]);
});

test("requests of a client that is gone are cancelled", async () => {
  const fixture = new Fixture();
  fixture.ask(1, 2, 3);
  await turn();
  fixture.settle(1);
  fixture.stream.emit("cancelled");
  expect(fixture.cancelled).toEqual([1, 3]);
});

test("a client that asks no more gets its answers before the stream ends", async () => {
  const fixture = new Fixture();
  fixture.ask(1, 2);
  fixture.stream.push(null);
  await turn();
  fixture.settle(1);
  await turn();
  expect(fixture.isEnded).toBe(false);
  fixture.settle(0);
  await turn();
  expect([fixture.answered, fixture.isEnded]).toEqual([[1n, 2n], true]);
});
