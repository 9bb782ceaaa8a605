import { EventEmitter } from "node:events";
import type { ServerWritableStream } from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { CoreHost } from "../../host/host.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { frozen } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import type { Frozen } from "./frozen.js";
import { snapshotHandler } from "./snapshot.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

function stateNow(): FrozenState {
  const membership = { voters: [1n], learners: [] };
  const meta = { index: 1, term: 1, membership };
  return { $typeName: "leasehold.FrozenState", meta, source: frozen(new CoreState()), bytes: 1 };
}

/** A stream whose client takes nothing until it is told to. */
function backupFor(call: EventEmitter & { end: () => void }) {
  let isGivenBack = false;
  const write = vi.fn(() => false);
  const places = {
    take: () => Promise.resolve({ ...stateNow(), header: {} }),
    giveBack: () => (isGivenBack = true),
  };
  const stream = Object.assign(call, { write }) as unknown as ServerWritableStream<unknown, unknown>;
  snapshotHandler({} as CoreHost, places as unknown as Frozen)(stream);
  return { write, isGivenBack: () => isGivenBack };
}

test("a client that takes nothing of its backup for half a minute gives up its place", async () => {
  const call = Object.assign(new EventEmitter(), { end: vi.fn() });
  const failures: unknown[] = [];
  call.on("error", (error) => failures.push(error));
  const { write, isGivenBack } = backupFor(call);
  await vi.waitFor(() => expect(write).toHaveBeenCalled());
  await vi.advanceTimersByTimeAsync(29_000);
  expect(isGivenBack()).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  await vi.waitFor(() => expect(isGivenBack()).toBe(true));
  expect(failures).toMatchObject([{ details: "etcdserver: request timed out" }]);
});

test("a client that takes it in slowly gets all of its backup", async () => {
  const call = Object.assign(new EventEmitter(), { end: vi.fn() });
  const { write, isGivenBack } = backupFor(call);
  await vi.waitFor(() => expect(write).toHaveBeenCalled());
  await vi.advanceTimersByTimeAsync(29_000);
  call.emit("drain");
  await vi.waitFor(() => expect(isGivenBack()).toBe(true));
  expect(call.end).toHaveBeenCalledOnce();
});
