import { expect, test } from "vitest";
import type { DiskWait } from "../disk/disk-watch.js";
import type { FilesStatus } from "../types.js";
import { type DiskFault, faultyMs, hangingMs, nodeChecks } from "./node-checks.js";

const status = (more: object = {}) =>
  ({
    state: "serving",
    majority: true,
    peers: [
      { node: "b", reachable: true },
      { node: "c", reachable: false },
    ],
    ...more,
  }) as unknown as FilesStatus;

const failed = (state: FilesStatus, fault: DiskFault | undefined, nowMs: number, wait?: DiskWait): string[] =>
  nodeChecks(state, fault, nowMs, wait).flatMap(({ name, isPassed, detail }) =>
    isPassed ? [] : [`${name}: ${detail}`],
  );

test("a node with one other gone is ready, and without a majority it is not, and names who is silent", () => {
  expect(failed(status(), undefined, 0)).toEqual([]);
  expect(failed(status({ majority: false }), undefined, 0)).toEqual(["majority: no answer from c"]);
});

test("a node whose disk has failed says so for a minute, and one that has not joined until it has", () => {
  const fault = { atMs: 1_000, error: "the disk of this node has failed: EIO" };
  expect(failed(status(), fault, 1_000 + faultyMs - 1)).toEqual([`disk: ${fault.error}`]);
  expect(failed(status(), fault, 1_000 + faultyMs)).toEqual([]);
  expect(failed(status({ state: "waiting" }), undefined, 0)).toEqual([
    expect.stringMatching(/^joined: waiting: /),
  ]);
});

test("a node whose disk hangs is not ready, and names what does not return", () => {
  const wait = { what: "sync of index-1.log", waitedMs: hangingMs - 1 };
  expect(failed(status(), undefined, 0, wait)).toEqual([]);
  expect(failed(status(), undefined, 0, { ...wait, waitedMs: hangingMs })).toEqual([
    "disk: it hangs: the sync of index-1.log has not returned for 10 s",
  ]);
});
