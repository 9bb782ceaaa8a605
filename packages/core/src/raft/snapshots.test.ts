import { describe, expect, test } from "vitest";
import { disk, Lab, log, Single } from "../../../../test/scenarios/raft-runner/lab.js";
import { founding, joining } from "./options.js";
import type { InstallSnapshot, SnapshotMeta } from "./types.js";

const three = [1n, 2n, 3n];

/** Two servers have continued without the third, and have dropped the entries that they no longer need. */
function leftBehind(keepEntries: number): Lab {
  const lab = Lab.of(3);
  lab.elect(1);
  lab.pass(1);
  lab.partition([1, 2], [3]);
  for (let count = 0; count < 20; count += 1) lab.propose(1, `x${count}`);
  lab.deliver();
  lab.server(1).compact(keepEntries);
  lab.heal();
  return lab;
}

describe("7: log compaction", () => {
  test("a follower that needs dropped entries gets a snapshot, one at a time, and continues from there", () => {
    const lab = leftBehind(0);
    lab.tick(1, 1);
    lab.delivered.length = 0;
    lab.deliver();
    lab.pass(2);
    const snapshots = lab.delivered.filter(({ kind }) => kind === "snapshot");
    expect(snapshots).toHaveLength(1);
    expect(lab.applied(3)).toEqual(lab.applied(1));
    lab.propose(1, "later");
    lab.deliver();
    lab.pass(1);
    expect(lab.applied(3).at(-1)).toBe("2:later");
  });

  test("a follower that lacks only entries that were kept gets no snapshot", () => {
    const lab = leftBehind(30);
    lab.delivered.length = 0;
    lab.pass(3);
    expect(lab.delivered.filter(({ kind }) => kind === "snapshot")).toEqual([]);
    expect(lab.applied(3)).toEqual(lab.applied(1));
  });

  test("during a transfer only heartbeats are sent; after a failure it is retried", () => {
    const lab = leftBehind(0);
    lab.tick(1, 1);
    for (let tick = 0; tick < 3; tick += 1) {
      const held = lab.network.filter(({ message }) => message.kind === "snapshot");
      lab.network = lab.network.filter(({ message }) => message.kind !== "snapshot");
      lab.deliver();
      lab.tick(1, 1);
      if (held.length === 0) continue;
      expect(lab.status(1).followers[1]).toMatchObject({ id: 3n, state: "snapshot" });
      lab.propose(1, "meanwhile");
      expect(lab.network.filter(({ message }) => message.to === 3n && message.kind === "append")).toEqual([]);
      lab.server(1).act((raft) => raft.reportSnapshot(3n, false));
      expect(lab.status(1).followers[1]).toMatchObject({ state: "probe" });
    }
    lab.pass(3);
    expect(lab.applied(3)).toEqual(lab.applied(1));
  });

  test("if the answer to a snapshot is lost, the next append finds out that it arrived", () => {
    const lab = leftBehind(0);
    lab.tick(1, 2);
    lab.deliver((message) => message.kind !== "snapshot-answer");
    lab.server(1).act((raft) => raft.reportSnapshot(3n, true));
    lab.pass(3);
    expect(lab.status(1).followers[1]).toMatchObject({ state: "replicate" });
    expect(lab.applied(3)).toEqual(lab.applied(1));
  });

  test("no snapshot is sent to a follower that has been silent for an election timeout", () => {
    const lab = leftBehind(0);
    lab.partition([1, 2], [3]);
    lab.pass(25);
    lab.server(1).act((raft) => raft.reportUnreachable(3n));
    expect(lab.status(1).followers[1]).toMatchObject({ state: "probe", active: false });
    expect(lab.network.filter(({ message }) => message.kind === "snapshot")).toEqual([]);
    lab.heal();
    lab.pass(3);
    expect(lab.applied(3)).toEqual(lab.applied(1));
  });

  const meta: SnapshotMeta = { index: 9, term: 4, membership: { voters: three, learners: [] } };
  const install: InstallSnapshot = { kind: "snapshot", from: 2n, to: 1n, term: 5, meta };

  test("figure 13, 7: a log that disagrees is discarded as a whole; the answer waits for the disk", () => {
    const raft = new Single(1n, disk(three, log(2, 2, 2))).raft;
    raft.step(install);
    const { persist, messages, early } = raft.ready()!;
    expect(persist).toMatchObject({ snapshot: meta, entries: [] });
    expect(early).toEqual([]);
    expect(messages).toMatchObject([{ kind: "snapshot-answer", rejected: false, index: 9 }]);
    expect(raft.status()).toMatchObject({ lastIndex: 9, commit: 9, persistedIndex: 1 });
    raft.persisted(persist!.sequence);
    expect(raft.status().persistedIndex).toBe(9);
    expect(raft.ready()).toBeUndefined();
  });

  test("figure 13, 6: a log that contains its last entry is kept, with the entries after it", () => {
    const one = new Single(1n, disk(three, log(2, 2, 3, 3, 3, 4, 4, 4, 4)));
    const [answer] = one.exchange(install);
    expect(answer).toMatchObject({ kind: "snapshot-answer", index: 9 });
    expect(one.raft.status()).toMatchObject({ lastIndex: 10, commit: 9, snapshotIndex: 1 });
  });

  test("a snapshot older than the commit index changes nothing", () => {
    const one = new Single(1n, disk(three, log(2, 2, 3), { term: 5, commit: 4 }));
    one.drain();
    const [answer] = one.exchange({ ...install, meta: { ...meta, index: 3, term: 2 } });
    expect(answer).toMatchObject({ index: 4 });
    expect(one.raft.status()).toMatchObject({ lastIndex: 4, commit: 4, snapshotIndex: 1 });
  });

  test("a snapshot carries the membership: a joining server learns of all members", () => {
    const lab = Lab.of(3);
    lab.elect(1);
    lab.pass(1);
    lab.add(4n, joining());
    lab.change(1, "add-learner", 4);
    lab.deliver();
    lab.pass(2);
    expect(lab.delivered.filter(({ kind }) => kind === "snapshot")).toHaveLength(1);
    expect(lab.status(4).membership).toEqual({ voters: three, learners: [4n] });
    expect(lab.applied(4)).toEqual(lab.applied(1));
  });

  test("a restart begins from the snapshot and the entries after it", () => {
    const lab = leftBehind(2);
    lab.pass(2);
    lab.server(1).crash();
    lab.server(1).start();
    expect(lab.status(1)).toMatchObject({ snapshotIndex: 22, lastIndex: 22, applied: 22 });
    lab.pass(1);
    lab.elect(1);
    lab.pass(2);
    expect(lab.applied(1)).toEqual(lab.applied(3));
  });

  test("entries covered by a snapshot are kept within both bounds: in number and in bytes", () => {
    const kept = (keepEntries: number, keepBytes?: number): number => {
      const one = new Single(1n, founding([1n]));
      one.tick(10);
      for (let count = 0; count < 20; count += 1) one.raft.propose([new Uint8Array(1_000)]);
      one.drain();
      const { applied } = one.raft.status();
      one.raft.compact(one.raft.snapshotMeta(applied), keepEntries, keepBytes);
      let index = applied;
      const isThere = () => {
        try {
          return one.raft.snapshotMeta(index - 1).term > 0;
        } catch {
          return false;
        }
      };
      while (isThere()) index -= 1;
      return applied - index;
    };
    expect([kept(0), kept(5), kept(5, 1e6), kept(10, 5_200), kept(10, 100)]).toEqual([0, 5, 5, 5, 0]);
    expect(kept(100)).toBe(21);
  });

  test("a snapshot covers applied entries only", () => {
    const one = new Single(1n, founding([1n]));
    one.tick(10);
    expect(one.raft.snapshotMeta(2)).toMatchObject({ index: 2, term: 2 });
    expect(() => one.raft.snapshotMeta(3)).toThrow(RangeError);
    expect(() => one.raft.compact({ ...meta, index: 3 }, 0)).toThrow(RangeError);
    expect(() => one.raft.applied(3)).toThrow(RangeError);
    one.raft.compact(one.raft.snapshotMeta(2), 0);
    expect(() => one.raft.snapshotMeta(1)).toThrow(RangeError);
    expect(one.raft.status().snapshotIndex).toBe(2);
  });
});
