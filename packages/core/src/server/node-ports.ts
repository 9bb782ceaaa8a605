import { readBothClocks, type Clock } from "leasehold/common";
import type { Done, HostPorts } from "../host/ports.js";
import type { Disk } from "./disk/disk.js";
import { Turns } from "./accounts/turns.js";

const clock: Clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() };

/**
 * A host's ports on Node: clock, timers, event loop, and the disk.
 *
 * @param synced called with the duration of each write of the log
 */
export function nodePorts(disk: Disk, synced: (tookMs: number) => void): Omit<HostPorts, "send"> {
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
          synced(performance.now() - begunMs);
          done(error);
        });
      },
      saveSnapshot: (snapshot, signal, done) => void settle(disk.saveSnapshot(snapshot, signal), done),
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
