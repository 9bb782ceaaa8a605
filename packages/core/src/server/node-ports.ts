import { readBothClocks, type Clock } from "leasehold/common";
import type { Done, HostPorts } from "../host/ports.js";
import type { Disk } from "./disk/disk.js";
import { Turns } from "./accounts/turns.js";

const clock: Clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() };

/** Receives durations, ms. */
export interface DiskTimes {
  synced(tookMs: number): void;
  snapshotSaved(tookMs: number): void;
}

/**
 * Returns a host's ports on Node: clock, timers, event loop, and the disk.
 *
 * @param took called with the durations of writes to the log and of snapshots
 */
export function nodePorts(disk: Disk, took: DiskTimes): Omit<HostPorts, "send"> {
  return {
    now: () => readBothClocks(clock),
    every: (periodMs, run) => {
      const timer = setInterval(run, periodMs);
      return () => clearInterval(timer);
    },
    defer: (turn) => void setImmediate(turn),
    beginTurn: () => new Turns(),
    disk: {
      persist: (persist, received, done) => {
        const begunMs = performance.now();
        void settle(disk.persist(persist, received), (error) => {
          took.synced(performance.now() - begunMs);
          done(error);
        });
      },
      saveSnapshot: (snapshot, signal, done) => {
        const begunMs = performance.now();
        void settle(disk.saveSnapshot(snapshot, signal), (error) => {
          if (error === undefined) took.snapshotSaved(performance.now() - begunMs);
          done(error);
        });
      },
    },
  };
}

async function settle(write: Promise<void>, done: Done): Promise<void> {
  try {
    await write;
  } catch (error) {
    done(error);
    return;
  }
  done();
}
