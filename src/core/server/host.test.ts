import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PutRequestSchema } from "../gen/etcd/rpc_pb.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Persist } from "../raft/types.js";
import type { CoreServer } from "../replica/api.js";
import type { Effects, Input, PeerMessage, SnapshotToWrite } from "../replica/types.js";
import { CoreError } from "../state/errors.js";
import type { Disk } from "./disk/disk.js";
import { CoreHost } from "./host.js";

const heartbeat: PeerMessage = { kind: "heartbeat", from: 1n, to: 2n, term: 1, commit: 0, round: 0 };
const told = (number: number): PeerMessage => ({
  kind: "told",
  from: 1n,
  to: 2n,
  number,
  index: 1,
  revision: 1,
  ttlSeconds: 1,
});
const nothing: Effects = {
  persist: undefined,
  early: [],
  messages: [],
  answers: [],
  watches: [],
  snapshot: undefined,
  leadership: undefined,
};
const write = (sequence: number): Persist => ({
  sequence,
  hardState: { term: 1, votedFor: 1n, commit: 0 },
  entries: [],
  snapshot: undefined,
});

/** A server whose effects a test writes down, and a disk that is as slow as a test likes. */
class Stage {
  readonly inputs: Input[] = [];
  readonly sent: PeerMessage[] = [];
  readonly failures: unknown[] = [];
  readonly writes: { readonly sequence: number; done: () => void; fail: (error: unknown) => void }[] = [];
  readonly effects: Effects[] = [];
  /** Snapshots that are being saved: what ends it, and whether it was given up. */
  readonly saves: { readonly signal: AbortSignal | undefined; end: () => void }[] = [];
  readonly host: CoreHost;

  constructor() {
    const server: CoreServer = {
      step: (input) => void this.inputs.push(input),
      take: () => this.effects.shift(),
      status: () => {
        throw new Error("not asked here");
      },
    };
    const persist = ({ sequence }: Persist) =>
      new Promise<void>((done, fail) => void this.writes.push({ sequence, done, fail }));
    const saveSnapshot = (_: SnapshotToWrite, signal?: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        this.saves.push({ signal, end: () => reject(new Error("given up")) });
      });
    this.host = new CoreHost({
      server,
      disk: { persist, saveSnapshot } as unknown as Disk,
      tickMs: 100,
      send: (message) => void this.sent.push(message),
      failed: (error) => void this.failures.push(error),
      trouble: () => undefined,
      leadership: () => undefined,
    });
  }

  /** One turn in which this is to be done. */
  async turn(...effects: Effects[]): Promise<void> {
    this.effects.push(...effects);
    this.host.step({ kind: "cancel", id: -1 });
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  }
}

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});
afterEach(async () => {
  vi.useRealTimers();
  for (const { done } of stage.writes) done();
  await stage.host.stop();
});

describe("persist before send", () => {
  test("messages leave when the write is on disk; early ones do not wait", async () => {
    await stage.turn({ ...nothing, persist: write(1), early: [heartbeat], messages: [told(1)] });
    expect(stage.sent).toEqual([heartbeat]);
    stage.writes[0]!.done();
    await stage.turn();
    expect(stage.sent).toEqual([heartbeat, told(1)]);
    expect(stage.inputs).toContainEqual({ kind: "persisted", sequence: 1 });
  });

  test("messages without a write of their own wait for those before; and keep their order", async () => {
    await stage.turn({ ...nothing, persist: write(1), messages: [told(1)] });
    await stage.turn(
      { ...nothing, messages: [told(2)] },
      { ...nothing, persist: write(2), messages: [told(3)] },
    );
    expect(stage.sent).toEqual([]);
    stage.writes[0]!.done();
    await stage.turn();
    expect(stage.sent).toEqual([told(1), told(2)]);
    stage.writes[1]!.done();
    await stage.turn({ ...nothing, messages: [told(4)] });
    expect(stage.sent).toEqual([told(1), told(2), told(3), told(4)]);
  });

  test("a slow disk does not stop the ticks", async () => {
    await stage.turn({ ...nothing, persist: write(1) });
    const ticks = () => stage.inputs.filter(({ kind }) => kind === "tick").length;
    await vi.waitFor(() => expect(ticks()).toBeGreaterThan(2), 2_000);
  });

  test("a disk that fails ends it: nothing is sent, and requests are told that the server has stopped", async () => {
    const answers: unknown[] = [];
    const request = { kind: "put", request: create(PutRequestSchema) } as const;
    stage.host.request("c", request, 1_000, (result) => void answers.push(result));
    await stage.turn({ ...nothing, persist: write(1), messages: [told(1)] });
    const error = new LeaseholdError("DISK_FAILED", "no");
    stage.writes[0]!.fail(error);
    await stage.turn({ ...nothing, messages: [told(2)] });
    expect(stage.failures).toEqual([error]);
    expect(stage.sent).toEqual([]);
    expect(answers).toEqual([new CoreError("stopped")]);
    stage.host.request("c", request, 1_000, (result) => void answers.push(result));
    expect(answers).toHaveLength(2);
  });
});

describe("a stop", () => {
  const snapshot = { meta: { index: 1, term: 1, membership: { voters: [], learners: [] } }, pieces: [] };

  test("gives up the snapshot that is being saved, and ends when nothing of it is written any more", async () => {
    await stage.turn({ ...nothing, snapshot });
    let isStopped = false;
    const stopping = stage.host.stop().then(() => (isStopped = true));
    await stage.turn();
    expect(stage.saves[0]!.signal?.aborted).toBe(true);
    expect(isStopped).toBe(false);
    stage.saves[0]!.end();
    await stopping;
    expect(stage.inputs).not.toContainEqual({ kind: "snapshot-failed" });
  });

  test("that follows a failure waits for what is written, too", async () => {
    await stage.turn({ ...nothing, persist: write(1), snapshot });
    await stage.turn({ ...nothing, persist: write(2) });
    stage.writes[1]!.fail(new LeaseholdError("DISK_FAILED", "no"));
    await stage.turn();
    expect(stage.failures).toHaveLength(1);
    let isStopped = false;
    const stopping = stage.host.stop().then(() => (isStopped = true));
    await stage.turn();
    expect(isStopped).toBe(false);
    stage.saves[0]!.end();
    await stopping;
  });
});

test("an answer is given once, and not to a client that is gone", async () => {
  const answers: unknown[] = [];
  const request = { kind: "put", request: create(PutRequestSchema) } as const;
  const ids = [1, 2].map(() =>
    stage.host.request("c", request, 1_000, (result) => void answers.push(result)),
  );
  stage.host.cancel(ids[0]!);
  const result = new CoreError("timeout");
  await stage.turn({ ...nothing, answers: [...ids, ...ids].map((id) => ({ id, result })) });
  expect(answers).toEqual([result]);
  expect(stage.inputs).toContainEqual({ kind: "cancel", id: ids[0] });
});
