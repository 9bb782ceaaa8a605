import { setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  type LeaseKeepAliveRequest,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  LeaseKeepAliveResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { ClientRequest } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import type { Settle } from "../../host/host.js";
import type { ServerStream } from "../wire/rpc/call.js";
import { HeldCarrier } from "../../../../../test/support/held-carrier.js";
import { keepAliveHandler } from "./lease.js";

/** A client's stream, and a core that answers when told to. */
class Fixture {
  readonly answered: bigint[] = [];
  readonly cancelled: number[] = [];
  readonly carrier = new HeldCarrier();
  readonly stream: ServerStream;
  readonly #under: { readonly id: bigint; readonly settle: Settle }[] = [];

  constructor() {
    this.stream = this.carrier.stream(({ ID }: LeaseKeepAliveResponse) => this.answered.push(ID));
    const host = {
      request: (_client: string, request: ClientRequest, _deadlineMs: number, settle: Settle) => {
        this.#under.push({ id: (request.request as LeaseKeepAliveRequest).ID, settle });
        return this.#under.length;
      },
      cancel: (id: number) => void this.cancelled.push(id),
    };
    keepAliveHandler(host, { admit: () => true }, 1_000)(this.stream);
  }

  get asked(): number {
    return this.#under.length;
  }

  ask(...ids: number[]): void {
    for (const id of ids)
      this.carrier.ask(this.stream, create(LeaseKeepAliveRequestSchema, { ID: BigInt(id) }));
  }

  /** Answers the request with this index. */
  settle(index: number, error?: CoreError): void {
    const { id, settle } = this.#under[index]!;
    settle(error ?? create(LeaseKeepAliveResponseSchema, { ID: id, TTL: 10n }));
  }

  /** How the stream ended: with an error, or without one. */
  get ends(): (string | undefined)[] {
    return this.carrier.ends.map((status) => status?.details);
  }
}

test("refreshes of one stream run concurrently and are answered in the order of requests", async () => {
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

test("a stream bounds its refreshes in progress, unread answers included", async () => {
  const fixture = new Fixture();
  fixture.carrier.isStuck = true;
  fixture.ask(...Array.from({ length: 3_000 }, (_, index) => index));
  for (let round = 0; round < 10; round += 1) {
    await turn();
    for (let index = fixture.answered.length; index < fixture.asked; index += 1) fixture.settle(index);
  }
  expect(fixture.asked).toBe(1_024);
  fixture.carrier.unstick();
  for (let round = 0, settled = 1_024; round < 20; round += 1) {
    await turn();
    for (; settled < fixture.asked; settled += 1) fixture.settle(settled);
  }
  await turn();
  expect(fixture.answered.length).toBe(3_000);
});

test("a refusal ends the stream after earlier answers, and later requests refresh nothing", async () => {
  const fixture = new Fixture();
  fixture.ask(1, 2, 3);
  await turn();
  fixture.settle(1, new CoreError("timeout"));
  expect(fixture.ends).toEqual([]);
  fixture.settle(0);
  await turn();
  expect(fixture.answered).toEqual([1n]);
  expect(fixture.ends).toEqual(["etcdserver: request timed out"]);
  expect(fixture.cancelled).toEqual([3]);
});

test("requests of a disconnected client are cancelled", async () => {
  const fixture = new Fixture();
  fixture.ask(1, 2, 3);
  await turn();
  fixture.settle(1);
  fixture.stream.over(false);
  expect(fixture.cancelled).toEqual([1, 3]);
});

test("a client that half-closes gets its answers before the stream ends", async () => {
  const fixture = new Fixture();
  fixture.ask(1, 2);
  fixture.carrier.askEnd(fixture.stream);
  await turn();
  fixture.settle(1);
  await turn();
  expect(fixture.ends).toEqual([]);
  fixture.settle(0);
  await turn();
  expect([fixture.answered, fixture.ends]).toEqual([[1n, 2n], [undefined]]);
});
