import { BlockMedium, type BlockFile } from "../../packages/leasehold/src/stores/block/medium.js";
import { BlockStore } from "../../packages/leasehold/src/stores/block/block-store.js";
import { type Layout, sizeBytesOf } from "../../packages/leasehold/src/stores/block/layout.js";
import type { BlockWorld } from "../../packages/leasehold/src/stores/block/world.js";
import type { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";

/** A disk in memory that several processes share, on virtual time: each sector is written as a whole or not at all. */
export class SimulatedDevice {
  readonly bytes: Uint8Array;
  readonly sectorBytes: number;
  readonly world: VirtualWorld;
  /** How long the next operation takes, ms. */
  latencyMs: (operation: "read" | "write") => number = () => 1;
  /** What is wrong with the next operation, if anything is. */
  fault: () => Error | false = () => false;
  /** What was read and written since the counts were set to 0. */
  readonly counts = { reads: 0, bytesRead: 0, writes: 0, bytesWritten: 0 };

  constructor(world: VirtualWorld, sizeBytes: number, sectorBytes = 512) {
    this.world = world;
    this.bytes = new Uint8Array(sizeBytes);
    this.sectorBytes = sectorBytes;
  }

  forget(): void {
    this.bytes.fill(0);
  }

  resetCounts(): void {
    Object.assign(this.counts, { reads: 0, bytesRead: 0, writes: 0, bytesWritten: 0 });
  }
}

/** A process that uses the device. It may stall, with all that it waits for, and it may be killed. */
export class DeviceProcess implements BlockWorld {
  readonly clock: BlockWorld["clock"];
  readonly random: BlockWorld["random"];
  readonly #device: SimulatedDevice;
  #stalledUntilMs = 0;
  #isDead = false;

  constructor(device: SimulatedDevice) {
    this.#device = device;
    this.clock = device.world.clock;
    this.random = device.world.random;
  }

  /** Its event loop stands still for so long from now. */
  stall(ms: number): void {
    this.#stalledUntilMs = this.clock.monotonicMs() + ms;
  }

  /** A write that is under way may end in its middle. */
  kill(): void {
    this.#isDead = true;
  }

  layout(): Promise<Layout | undefined> {
    return new BlockMedium("simulated", this.#file()).readLayout();
  }

  open(layout: Layout, writer: string): BlockStore {
    const medium = new BlockMedium("simulated", this.#file());
    return new BlockStore(medium, layout, writer, this);
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const giveUp = () => {
        timer.cancel();
        reject(signal.reason as Error);
      };
      const timer = this.#device.world.timers.after(ms, () =>
        this.#go(() => {
          signal.removeEventListener("abort", giveUp);
          resolve();
        }),
      );
      signal.addEventListener("abort", giveUp);
    });
  }

  /** What wakes the process waits until it runs again. */
  #go(run: () => void): void {
    if (this.#isDead) return;
    const leftMs = this.#stalledUntilMs - this.clock.monotonicMs();
    if (leftMs <= 0) run();
    else this.#device.world.timers.after(leftMs, () => this.#go(run));
  }

  #file(): BlockFile {
    const device = this.#device;
    const { bytes, counts, sectorBytes, world } = device;
    const after = (ms: number, run: () => void) => void world.timers.after(ms, run);
    return {
      sectorBytes,
      sizeBytes: bytes.length,
      read: (into, position) =>
        new Promise((resolve, reject) => {
          const fault = device.fault();
          if (fault !== false) return reject(fault);
          counts.reads += 1;
          counts.bytesRead += into.length;
          const ms = device.latencyMs("read");
          // What it sees is what stands there at some moment while it lasts.
          after(Math.min(ms, 10) * world.random.next(), () => {
            const seen = bytes.slice(position, position + into.length);
            after(ms, () =>
              this.#go(() => {
                into.set(seen);
                resolve();
              }),
            );
          });
        }),
      write: (from, position) =>
        new Promise((resolve, reject) => {
          const fault = device.fault();
          if (fault !== false) return reject(fault);
          counts.writes += 1;
          counts.bytesWritten += from.length;
          const written = from.slice();
          const ms = device.latencyMs("write");
          for (let start = 0; start < written.length; start += sectorBytes) {
            const sector = written.subarray(start, start + sectorBytes);
            after(ms * world.random.next(), () => {
              // A machine that is switched off writes some sectors of what was under way, and others not.
              if (!this.#isDead || world.random.next() < 0.5) bytes.set(sector, position + start);
            });
          }
          after(ms, () => this.#go(resolve));
        }),
      close: async () => undefined,
    };
  }
}

export const smallLayout: Layout = {
  id: "the medium",
  slots: 16,
  regions: 32,
  delayMs: 100,
  slotLeaseMs: 2_000,
};

export function deviceFor(world: VirtualWorld, layout: Layout = smallLayout): SimulatedDevice {
  return new SimulatedDevice(world, sizeBytesOf(layout));
}

/** Lets virtual time pass while `body` runs, as fast as the event loop turns. */
export async function driven<T>(world: VirtualWorld, body: () => Promise<T>): Promise<T> {
  const running = { isOver: false };
  const result = body().finally(() => (running.isOver = true));
  while (!running.isOver) await world.advance(5);
  return result;
}
