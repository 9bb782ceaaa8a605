import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { ResponseHeaderSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { CoreHost } from "../../host/host.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { frozen } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { HeldCarrier } from "../../../../../test/support/held-carrier.js";
import type { Frozen } from "./calls/frozen.js";
import { snapshotHandler } from "./snapshot.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

function stateNow(): FrozenState {
  const state = new CoreState();
  const value = new Uint8Array(32 * 1024);
  for (let number = 0; number < pieces; number += 1) {
    const body = { case: "put", value: { key: Buffer.from(`k${number}`), value } } as const;
    state.apply(create(CommandSchema, { body }), 1);
  }
  const membership = { voters: [1n], learners: [] };
  const meta = { index: 1, term: 1, membership };
  const header = create(ResponseHeaderSchema);
  return { $typeName: "leasehold.FrozenState", header, meta, source: frozen(state), bytes: 1 };
}

/** More pieces than are sent to a client that reads nothing. */
const pieces = 40;

/** Number of messages sent to a client that reads nothing. */
const unreadMax = 16;

/** Waits without a timer, since timers are fake here. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

/** A stream whose client reads nothing until told to. */
function backup() {
  let isGivenBack = false;
  const frozen: Pick<Frozen, "use"> = {
    use: (_host, _call, read) => read(stateNow()).finally(() => (isGivenBack = true)),
  };
  const carrier = new HeldCarrier();
  carrier.isStuck = true;
  snapshotHandler({} as CoreHost, frozen)(carrier.stream(() => undefined));
  return { carrier, isGivenBack: () => isGivenBack };
}

test("a client that does not read its backup for half a minute loses its slot", async () => {
  const { carrier, isGivenBack } = backup();
  await until(() => carrier.messages.length === unreadMax);
  const given = carrier.messages.length;
  await vi.advanceTimersByTimeAsync(29_000);
  expect([carrier.messages.length, isGivenBack()]).toEqual([given, false]);
  await vi.advanceTimersByTimeAsync(1_000);
  await until(isGivenBack);
  expect(given).toBeLessThan(pieces);
  expect(carrier.ends).toMatchObject([{ details: "etcdserver: request timed out" }]);
});

test("a slow client gets all of its backup", async () => {
  const { carrier, isGivenBack } = backup();
  await until(() => carrier.messages.length === unreadMax);
  await vi.advanceTimersByTimeAsync(29_000);
  carrier.unstick();
  await until(isGivenBack);
  expect(carrier.messages.length).toBeGreaterThanOrEqual(pieces);
  expect(carrier.ends).toEqual([undefined]);
});
