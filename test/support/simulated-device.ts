import { BlockMedium, type BlockFile } from "../../packages/leasehold/src/stores/block/medium.js";
import { BlockStore } from "../../packages/leasehold/src/stores/block/block-store.js";
import { type Layout, sizeBytesOf } from "../../packages/leasehold/src/stores/block/layout.js";
import type { BlockWorld } from "../../packages/leasehold/src/stores/block/world.js";
import type { VirtualWorld } from "../../packages/leasehold/src/testing/virtual-world.js";

/**
 * A disk in memory that several processes share, on virtual time. Each sector is written as a whole or not at
 * all.
 */
export class SimulatedDevice {
  readonly bytes: Uint8Array;
  readonly sectorBytes: number;
  readonly world: VirtualWorld;
  /** The duration of the next operation, ms. */
  latencyMs: (operation: "read" | "write") => number = () => 1;
  /** The error of the next operation, or false. */
  fault: () => Error | false = () => false;
  /** Reads and writes since the counts were reset. */
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

/**
 * A process that uses the device. It can stall, together with everything that it waits for, and it can be
 * killed.
 */
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

  /** Blocks the process's event loop for this long. */
  stall(ms: number): void {
    this.#stalledUntilMs = this.clock.monotonicMs() + ms;
  }

  /** A write in progress may end in its middle. */
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

  /** Runs a callback of the process, once the process is no longer stalled. */
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
          // A read sees the content at some moment during the operation.
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
              // A machine that is switched off writes only some sectors of a write in progress.
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

/** Runs `body` while virtual time passes, as fast as the event loop turns. */
export async function driven<T>(world: VirtualWorld, body: () => Promise<T>): Promise<T> {
  const running = { isOver: false };
  const result = body().finally(() => (running.isOver = true));
  while (!running.isOver) await world.advance(5);
  return result;
}
