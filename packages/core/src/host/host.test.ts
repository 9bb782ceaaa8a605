import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test } from "vitest";
import {
  PutRequestSchema,
  RangeRequestSchema,
  RangeResponseSchema,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { LeaseholdError } from "leasehold/common";
import type { Persist } from "../raft/types.js";
import type { Effects, Input, PeerMessage } from "../replica/types.js";
import { CoreError } from "../state/errors.js";
import { CoreHost } from "./host.js";
import type { Done } from "./ports.js";

const heartbeat: PeerMessage = {
  kind: "heartbeat",
  from: 1n,
  to: 2n,
  term: 1,
  commit: 0,
  round: 0,
  transfersOver: 0,
};
const answer = (number: number): PeerMessage => ({
  kind: "leader-answer",
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
  notices: [],
  messages: [],
  answers: [],
  watches: [],
  snapshot: undefined,
  leadership: undefined,
  roll: undefined,
  compared: undefined,
  objections: [],
};
const write = (sequence: number): Persist => ({
  sequence,
  hardState: { term: 1, votedFor: 1n, commit: 0 },
  entries: [],
  snapshot: undefined,
});

interface Write {
  readonly sequence: number;
  readonly done: Done;
}

/** Runs a host whose ports are controlled by the test, and records what it does. */
class Stage {
  readonly inputs: Input[] = [];
  readonly sent: PeerMessage[] = [];
  readonly failures: unknown[] = [];
  readonly writes: Write[] = [];
  readonly effects: Effects[] = [];
  /** Snapshots being saved. */
  readonly saves: { readonly signal: AbortSignal; readonly done: Done }[] = [];
  readonly turns: (() => void)[] = [];
  /** Whether connections to other servers accept messages. */
  takes = true;
  /** Number of effects that fit in one turn. */
  takesPerTurn = Infinity;
  tick: (() => void) | undefined;
  readonly host: CoreHost;

  constructor() {
    this.host = new CoreHost({
      logic: {
        step: (input) => void this.inputs.push(input),
        take: () => this.effects.shift(),
        userOf: () => undefined,
        status: () => {
          throw new Error("not asked here");
        },
      },
      disk: {
        persist: ({ sequence }, _received, done) => void this.writes.push({ sequence, done }),
        saveSnapshot: (_snapshot, signal, done) => void this.saves.push({ signal, done }),
      },
      tickMs: 100,
      now: () => ({ monotonicMs: 0, wallMs: 0 }),
      every: (_periodMs, run) => {
        this.tick = run;
        return () => (this.tick = undefined);
      },
      defer: (turn) => void this.turns.push(turn),
      beginTurn: () => {
        let takes = 0;
        const isOver = () => (takes += 1) >= this.takesPerTurn;
        return {
          get isOver() {
            return isOver();
          },
        };
      },
      send: (message) => this.takes && this.sent.push(message) > 0,
      failed: (error) => void this.failures.push(error),
      trouble: () => undefined,
      leadership: () => undefined,
      roll: () => undefined,
      compared: () => undefined,
    });
  }

  /** Runs one turn with these effects. */
  turn(...effects: Effects[]): void {
    this.effects.push(...effects);
    this.host.step({ kind: "cancel", id: -1 });
    this.turns.shift()?.();
  }
}

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});

describe("persist before send", () => {
  test("messages leave when the write is on disk, and early messages leave at once", () => {
    stage.turn({ ...nothing, persist: write(1), early: [heartbeat], messages: [answer(1)] });
    expect(stage.sent).toEqual([heartbeat]);
    stage.writes[0]!.done();
    stage.turn();
    expect(stage.sent).toEqual([heartbeat, answer(1)]);
    expect(stage.inputs).toContainEqual({ kind: "persisted", sequence: 1 });
  });

  test("clients are answered before other servers learn the commit, and watches after those", () => {
    const told: string[] = [];
    const id = stage.host.request(
      "client",
      { kind: "range", request: create(RangeRequestSchema, {}) },
      1,
      () => told.push(`answer, when ${stage.sent.length} were sent`),
    );
    const stream = stage.host.openWatches("c", () => told.push(`event, when ${stage.sent.length} were sent`));
    const response = create(WatchResponseSchema, {});
    const result = create(RangeResponseSchema, {});
    stage.turn({
      ...nothing,
      early: [heartbeat],
      answers: [{ id, result }],
      notices: [answer(1)],
      watches: [{ stream, response }],
    });
    expect(told).toEqual(["answer, when 1 were sent", "event, when 2 were sent"]);
  });

  test("messages without a write wait for the writes before them, and all keep their order", () => {
    stage.turn({ ...nothing, persist: write(1), messages: [answer(1)] });
    stage.turn(
      { ...nothing, messages: [answer(2)] },
      { ...nothing, persist: write(2), messages: [answer(3)] },
    );
    expect(stage.sent).toEqual([]);
    stage.writes[0]!.done();
    stage.turn();
    expect(stage.sent).toEqual([answer(1), answer(2)]);
    stage.writes[1]!.done();
    stage.turn({ ...nothing, messages: [answer(4)] });
    expect(stage.sent).toEqual([answer(1), answer(2), answer(3), answer(4)]);
  });

  test("a slow disk does not stop the ticks", () => {
    stage.turn({ ...nothing, persist: write(1) });
    stage.tick!();
    stage.tick!();
    expect(stage.inputs.filter(({ kind }) => kind === "tick")).toHaveLength(2);
  });

  test("a failed write stops the server: nothing is sent, and requests are answered with `server stopped`", () => {
    const answers: unknown[] = [];
    const request = { kind: "put", request: create(PutRequestSchema) } as const;
    stage.host.request("c", request, 1_000, (result) => void answers.push(result));
    stage.turn({ ...nothing, persist: write(1), messages: [answer(1)] });
    const error = new LeaseholdError("DISK_FAILED", "no");
    stage.writes[0]!.done(error);
    stage.turn({ ...nothing, messages: [answer(2)] });
    expect(stage.failures).toEqual([error]);
    expect(stage.sent).toEqual([]);
    expect(answers).toEqual([new CoreError("stopped")]);
    stage.host.request("c", request, 1_000, (result) => void answers.push(result));
    expect(answers).toHaveLength(2);
  });
});

describe("a stop", () => {
  const snapshot = { meta: { index: 1, term: 1, membership: { voters: [], learners: [] } }, pieces: [] };
  const pause = () => new Promise((resolve) => setImmediate(resolve));

  test("aborts the snapshot being saved, and ends when the disk has finished", async () => {
    stage.turn({ ...nothing, snapshot });
    let isStopped = false;
    const stopping = stage.host.stop().then(() => (isStopped = true));
    expect(stage.tick).toBeUndefined();
    await pause();
    expect(stage.saves[0]!.signal.aborted).toBe(true);
    expect(isStopped).toBe(false);
    stage.saves[0]!.done(new Error("given up"));
    await stopping;
    expect(stage.inputs).not.toContainEqual({ kind: "snapshot-failed" });
  });

  test("after a failed write waits for the other writes too", async () => {
    stage.turn({ ...nothing, persist: write(1), snapshot });
    stage.turn({ ...nothing, persist: write(2) });
    stage.writes[0]!.done(new LeaseholdError("DISK_FAILED", "no"));
    expect(stage.failures).toHaveLength(1);
    let isStopped = false;
    const stopping = stage.host.stop().then(() => (isStopped = true));
    stage.writes[1]!.done(new LeaseholdError("DISK_FAILED", "no"));
    await pause();
    expect(isStopped).toBe(false);
    stage.saves[0]!.done(new Error("given up"));
    await stopping;
    expect(stage.failures).toHaveLength(1);
  });
});

test("the logic is informed of each message that no connection accepted", () => {
  stage.turn({ ...nothing, early: [heartbeat] });
  stage.takes = false;
  stage.turn({ ...nothing, early: [answer(1)] });
  expect(stage.sent).toEqual([heartbeat]);
  expect(stage.inputs.filter(({ kind }) => kind === "not-sent")).toEqual([
    { kind: "not-sent", message: answer(1) },
  ]);
});

test("a turn leaves the rest of the work to the next one", () => {
  stage.takesPerTurn = 2;
  stage.turn(...[1, 2, 3].map((number) => ({ ...nothing, messages: [answer(number)] })));
  expect(stage.sent).toEqual([answer(1), answer(2)]);
  stage.turns.shift()!();
  expect(stage.sent).toEqual([answer(1), answer(2), answer(3)]);
  expect(stage.turns).toEqual([]);
});

test("an answer is delivered once, and not to a client that is gone", () => {
  const answers: unknown[] = [];
  const request = { kind: "put", request: create(PutRequestSchema) } as const;
  const ids = [1, 2].map(() =>
    stage.host.request("c", request, 1_000, (result) => void answers.push(result)),
  );
  stage.host.cancel(ids[0]!);
  const result = new CoreError("timeout");
  stage.turn({ ...nothing, answers: [...ids, ...ids].map((id) => ({ id, result })) });
  expect(answers).toEqual([result]);
  expect(stage.inputs).toContainEqual({ kind: "cancel", id: ids[0] });
});
