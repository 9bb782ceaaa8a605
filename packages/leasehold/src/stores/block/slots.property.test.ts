import fc from "fast-check";
import { expect, test } from "vitest";
import { effort } from "../../../../../test/support/effort.js";
import { DeviceProcess, deviceFor, smallLayout } from "../../../../../test/support/simulated-device.js";
import { VirtualWorld } from "../../testing/virtual-world.js";
import type { BlockStore } from "./block-store.js";
import { encodeSuperblock, type Layout } from "./layout.js";

/**
 * The production code of a block store on a simulated disk. Processes come and go, are killed in the middle
 * of a write, and stall between any two steps. Reads are sometimes slow; writes keep δ, on which slots
 * depend.
 */

const registers = 8;

const actorsMax = 3;

/** A process's last read of a register, with its mark. */
interface Seen {
  readonly mark: string;
  readonly newest: number;
}

interface Actor {
  readonly process: DeviceProcess;
  readonly store: BlockStore;
  readonly name: string;
  readonly seen: Map<string, Seen>;
}

class Site {
  readonly world: VirtualWorld;
  readonly #layout: Layout;
  readonly #device;
  #actors: Actor[] = [];
  #count = 0;
  /** The newest confirmed write, by register; and the newest announced one. */
  readonly #confirmed = new Map<string, number>();
  readonly #announced = new Map<string, number>();
  readonly #problems: string[] = [];
  readonly counts = { tenures: 0, written: 0, failed: 0, read: 0, quiet: 0 };

  constructor(seed: number) {
    this.world = new VirtualWorld({ seed });
    const { random } = this.world;
    // With two slots, these change owners all the time; with many, some are never used.
    this.#layout = {
      ...smallLayout,
      delayMs: 15,
      slotLeaseMs: 300,
      slots: random.next() < 0.6 ? 2 : 24,
      regions: 2,
    };
    this.#device = deviceFor(this.world, this.#layout);
    this.#device.bytes.set(encodeSuperblock(this.#layout));
    this.#device.latencyMs = (operation) => {
      if (operation === "read" && random.next() < 0.015) return random.next() * 1_000;
      return 1 + random.next() * (random.next() < 0.97 ? 3 : 6);
    };
  }

  async run(steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      for (let burst = 1 + Math.floor(3 * this.world.random.next()); burst > 0; burst -= 1) await this.#act();
      this.#checkSlots();
      if (this.#problems[0] !== undefined) throw new Error(`step ${step}: ${this.#problems[0]}`);
      const { random } = this.world;
      for (let leftMs = random.next() * (random.next() < 0.8 ? 40 : 400); leftMs > 0; leftMs -= 15) {
        await this.world.advance(15);
        this.#checkSlots();
      }
    }
    await this.#quietDown();
    for (const { store } of this.#actors) void store.close();
    await this.world.advance("1s");
  }

  /** Stops the faults. After that every process gets a slot again, if there are enough. */
  async #quietDown(): Promise<void> {
    if (this.#layout.slots <= actorsMax) return;
    this.#device.latencyMs = () => 1;
    await this.world.advance("4s");
    for (const { store, name } of this.#actors)
      if (store.slotHeld === undefined) throw new Error(`${name} has no slot, and nothing goes wrong`);
  }

  async #act(): Promise<void> {
    const { random } = this.world;
    const actor = this.#actors[Math.floor(random.next() * this.#actors.length)];
    const dice = random.next();
    if (actor === undefined || (dice < 0.05 && this.#actors.length < actorsMax)) this.#start();
    else if (dice < 0.055) await this.#kill(actor);
    else if (dice < 0.12)
      actor.process.stall(random.next() < 0.6 ? 40 * random.next() : 1_000 * random.next());
    else if (dice < 0.5) void this.#write(actor);
    else void this.#read(actor);
  }

  #start(): void {
    const process = new DeviceProcess(this.#device);
    const name = `w${++this.#count}`;
    const actor = { process, store: process.open(this.#layout, name), name, seen: new Map() };
    this.#actors.push(actor);
    actor.store.takeSlot(undefined).then(
      () => (this.counts.tenures += 1),
      () => this.#remove(actor),
    );
  }

  /** Kills the process, in the middle of a write if it has a slot. */
  async #kill(actor: Actor): Promise<void> {
    void this.#write(actor);
    await this.world.advance(Math.floor(this.world.random.next() * 6));
    actor.process.kill();
    this.#remove(actor);
  }

  #remove(actor: Actor): void {
    this.#actors = this.#actors.filter((one) => one !== actor);
  }

  async #write({ store }: Actor): Promise<void> {
    const { random } = this.world;
    const register = `r${Math.floor(random.next() * registers)}`;
    const sequence = ++this.#count;
    const quiet = random.next() < 0.3;
    const next = new TextEncoder().encode(`${register} ${sequence} ${"x".repeat(random.next() * 300)}`);
    const answer = await store.perform({ op: "put", register, next, quiet });
    this.counts[answer.kind === "written" ? "written" : "failed"] += 1;
    if (answer.kind !== "written") return;
    for (const newest of quiet ? [this.#confirmed] : [this.#confirmed, this.#announced])
      newest.set(register, Math.max(sequence, newest.get(register) ?? 0));
  }

  /**
   * Checks that writes confirmed before the read began are in its answer, and that those announced since its
   * mark are reported.
   */
  async #read({ store, seen }: Actor): Promise<void> {
    const register = `r${Math.floor(this.world.random.next() * registers)}`;
    const [confirmed, announced] = [this.#confirmed, this.#announced].map(
      (newest) => newest.get(register) ?? 0,
    );
    const before = seen.get(register);
    const request = {
      op: "read",
      register,
      ...(before !== undefined && { quietSince: before.mark }),
    } as const;
    const answer = await store.perform(request);
    if (answer.kind === "quiet") {
      this.counts.quiet += 1;
      if (before!.newest < announced!) this.#problems.push(`${announced} was announced, and it was quiet`);
    }
    if (answer.kind === "failed" && answer.error.code === "STORE_CORRUPT")
      this.#problems.push(`a region cannot be read: ${answer.error.message}`);
    if (answer.kind !== "cells") return;
    this.counts.read += 1;
    const found = answer.cells.map((cell) => new TextDecoder().decode(cell).split(" "));
    if (found.some(([name]) => name !== register)) this.#problems.push(`${register} has another's content`);
    const newest = Math.max(0, ...found.map(([, sequence]) => Number(sequence)));
    if (newest < confirmed!) this.#problems.push(`${confirmed} was confirmed, and the newest is ${newest}`);
    if (answer.mark !== undefined) seen.set(register, { mark: answer.mark, newest });
  }

  #checkSlots(): void {
    const slots = this.#actors.flatMap(({ store }) => store.slotHeld ?? []);
    if (new Set(slots).size < slots.length) this.#problems.push(`two processes trust slot ${slots[0]}`);
  }
}

const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 12 * effort);

test("no two processes trust one slot, and no confirmed write is lost, whichever process stalls or is killed", async () => {
  const total = { tenures: 0, written: 0, failed: 0, read: 0, quiet: 0 };
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async (seed) => {
      const site = new Site(seed);
      await site.run(120);
      for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += site.counts[key];
    }),
    { numRuns: seeds, endOnFailure: true },
  );
  for (const count of Object.values(total)) expect(count).toBeGreaterThan(seeds);
});
