import { setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  WatchRequestSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Credentials } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import { HeldCarrier } from "../../../../../test/support/held-carrier.js";
import type { CoreHost, Deliver } from "../../host/host.js";
import type { Streams } from "./calls/streams.js";
import { watchHandler } from "./watch.js";

async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await turn();
}

test("a client that sends without reading is paused until it reads", async () => {
  let [asked, answered] = [0, 0];
  const carrier = new HeldCarrier();
  carrier.isStuck = true;
  const stream = carrier.stream(() => (answered += 1));
  let deliver: Deliver = (_response: WatchResponse | CoreError) => undefined;
  const host = {
    openWatches: (_client: string, to: Deliver) => {
      deliver = to;
      return 1;
    },
    // Each request is answered in a later turn.
    watch: () => {
      asked += 1;
      setImmediate(() => deliver(create(WatchResponseSchema)));
    },
    watchSent: () => undefined,
    closeWatches: () => undefined,
    status: () => ({ hasCaughtUp: true }),
  };
  watchHandler(host as unknown as CoreHost, { admit: () => true } as unknown as Streams, 1_000, {
    of: () => undefined,
  })(stream);
  const requests = 5_000;
  for (let count = 0; count < requests; count += 1) {
    carrier.ask(stream, create(WatchRequestSchema));
    if (count % 50 === 0) await turn();
  }
  await turns(10);
  expect(asked).toBeLessThan(1_200);
  carrier.unstick();
  await turns(2_000);
  expect([asked, answered]).toEqual([requests, requests]);
});

test("an expired token is detected at each watch, in the order of requests", async () => {
  const asked: unknown[] = [];
  const carrier = new HeldCarrier();
  const stream = carrier.stream(() => undefined);
  const host = {
    openWatches: () => 1,
    watch: (...words: unknown[]) => asked.push(words[2]),
    closeWatches: () => asked.push("closed"),
    request: (...[, , , settle]: [unknown, unknown, unknown, () => void]) => settle(),
  };
  const ann: Credentials = { kind: "user", user: "ann", revision: 3n };
  const later = { ...ann, revision: 4n };
  let isOver = false;
  const of = () => {
    // The first check takes a while; then the result is cached for some time; finally the token has expired.
    if (!isOver) return asked.length === 0 ? turns(3).then(() => later) : ann;
    return turns(3).then(() => Promise.reject(new CoreError("invalidAuthToken")));
  };
  const admits = { admit: () => true } as unknown as Streams;
  watchHandler(host as unknown as CoreHost, admits, 1_000, { of })(stream);
  for (let count = 0; count < 3; count += 1) carrier.ask(stream, create(WatchRequestSchema));
  await turns(20);
  expect(asked).toEqual([later, ann, ann]);
  isOver = true;
  carrier.ask(stream, create(WatchRequestSchema));
  await turns(10);
  expect(asked.slice(3)).toEqual([{ kind: "token", token: "" }]);
  // The client disconnects while the token is checked: nothing of it is kept.
  carrier.ask(stream, create(WatchRequestSchema));
  stream.over(false);
  await turns(10);
  expect(asked.slice(4)).toEqual(["closed"]);
});
