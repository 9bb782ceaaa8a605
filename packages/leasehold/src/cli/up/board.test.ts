import { beforeEach, describe, expect, test } from "vitest";
import { reportOf } from "../../../../../test/support/member-status.js";
import type { MemberReport, MemberStatus } from "../../flease/tcp/types.js";
import type { ResourceHint } from "../../lease/types.js";
import { Board, type Change } from "./board.js";

const TTL_MS = 4_000;
let board: Board;
let changes: Change[];

beforeEach(() => {
  changes = [];
  board = new Board([{ id: "a", address: "h:1" }], (change) => changes.push(change));
  board.observeWorker("worker-1", { type: "started", holder: "worker-1.aa" }, TTL_MS, 0);
  board.observeWorker("worker-2", { type: "started", holder: "worker-2.bb" }, TTL_MS, 0);
});

function held(resource: string, holder: string, token: bigint, remainingMs = 3_000): ResourceHint {
  return { resource, state: "held", holder, token, remainingMs, confirmed: true };
}

const acquired = (resource: string, token: string, waitedMs = 0) =>
  ({ type: "acquired", resource, token, waitedMs }) as const;
const released = (resource: string, token: string) =>
  ({ type: "released", resource, token, heldMs: 2_500 }) as const;
const kinds = (): string[] => changes.map((change) => change.kind);

describe("leases", () => {
  test("of our workers carry their names, and are reported once", () => {
    board.observeWorker("worker-1", acquired("x", "5", 1_200), TTL_MS, 1_000);
    board.observeLeases([held("x", "worker-1.aa", 5n)], 1_500);
    board.observeLeases([held("x", "worker-1.aa", 5n, 3_900)], 2_000);
    expect(board.leases.get("x")).toMatchObject({
      holder: "worker-1",
      token: "5",
      endsAtMs: 5_900,
      sinceMs: 1_000,
    });
    expect(changes.map((change) => change.text)).toEqual([
      "worker-1 acquired x after waiting 1.2 s, token 5",
    ]);
    expect(board.heldBy("worker-1")).toEqual(["x"]);
  });

  test("of others follow the cluster's answers", () => {
    board.observeLeases([held("y", "host-9.cc", 8n)], 1_000);
    board.observeLeases([], 2_000);
    expect(changes.map((change) => change.text)).toEqual([
      "host-9.cc acquired y, token 8",
      "host-9.cc does not hold y any more",
    ]);
    expect(board.leases.size).toBe(0);
  });

  test("an answer older than the worker's own news changes nothing", () => {
    board.observeWorker("worker-1", acquired("x", "5"), TTL_MS, 1_000);
    board.observeLeases([], 1_001);
    expect(board.leases.has("x")).toBe(true);
    board.observeWorker("worker-1", released("x", "5"), TTL_MS, 2_000);
    board.observeLeases([held("x", "worker-1.aa", 5n)], 2_001);
    expect(board.leases.has("x")).toBe(false);
    expect(kinds()).toEqual(["acquired", "released"]);
  });

  test("a token never goes back", () => {
    board.observeLeases([held("x", "host-9.cc", 8n)], 1_000);
    board.observeLeases([held("x", "host-8.dd", 7n)], 1_100);
    expect(board.leases.get("x")).toMatchObject({ holder: "host-9.cc", token: "8" });
  });
});

describe("a killed holder", () => {
  beforeEach(() => {
    board.observeWorker("worker-1", acquired("x", "5"), TTL_MS, 1_000);
    board.workerDied("worker-1", "killed", 2_000);
    board.observeWorker("worker-1", { type: "started", holder: "worker-1.ee" }, TTL_MS, 3_000);
  });

  test("is marked until another takes over, and the log has the delay", () => {
    board.observeLeases([held("x", "worker-1.aa", 5n, 1_500)], 3_500);
    expect(board.leases.get("x")).toMatchObject({ holder: "worker-1", killed: true });
    expect(board.heldBy("worker-1")).toEqual([]);
    board.observeLeases([], 5_500);
    expect(board.leases.has("x")).toBe(false);
    board.observeWorker("worker-2", acquired("x", "6", 3_000), TTL_MS, 6_100);
    expect(changes.map((change) => change.text)).toEqual([
      "worker-1 acquired x, token 5",
      "worker-1 was killed (SIGKILL) while it held x",
      "worker-2 took over x from worker-1 after 4.1 s, token 6",
    ]);
    expect(changes.at(-1)).toMatchObject({ kind: "taken-over", afterMs: 4_100, resource: "x", token: "6" });
    expect(board.leases.get("x")?.killed).toBe(false);
  });

  test("one that is restarted under the same name is another holder", () => {
    board.observeWorker("worker-1", acquired("z", "9"), TTL_MS, 3_100);
    expect(board.leases.get("z")?.killed).toBe(false);
    expect(board.heldBy("worker-1")).toEqual(["z"]);
  });

  test("one that died before it could report its lease has a successor as well", () => {
    board.observeLeases([held("w", "worker-1.aa", 7n)], 2_100);
    board.observeLeases([held("w", "host-9.cc", 8n)], 6_000);
    expect(changes.at(-1)?.text).toBe("host-9.cc took over w from worker-1 after 4.0 s, token 8");
  });
});

describe("members", () => {
  const report = (state: MemberStatus["state"], readyInMs: number): MemberReport[] => [
    reportOf({ state, readyInMs }),
  ];
  const silent: MemberReport[] = [{ id: "a", address: "h:1", reachable: false, reason: "refused" }];

  test("count down steadily, and each change is reported once", () => {
    board.observeMembers(silent, 0);
    board.observeMembers(report("recovering", 4_100), 100);
    board.observeMembers(report("recovering", 3_560), 600);
    expect(board.members.get("a")).toMatchObject({ state: "recovering", readyAtMs: 4_200 });
    board.observeMembers(report("ready", 0), 4_300);
    board.observeMembers(silent, 5_000);
    expect(changes.map((change) => change.text)).toEqual([
      "member a is recovering, ready in 4.1 s",
      "member a is ready",
      "member a is unreachable",
    ]);
  });
});

test("the log keeps the newest 200 lines", () => {
  for (let i = 0; i < 1_000; i += 1) board.note("trouble", String(i), i);
  expect(board.log.length).toBe(200);
  expect(board.log.at(-1)?.text).toBe("999");
});
