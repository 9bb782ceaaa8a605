import type { StoreAnswer, StoreCaller, StoreRequest, StoreTraits } from "../../delta/store.js";
import { readBothClocks } from "../../common/both-clocks.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { OpenedStore, ProbeFinding } from "../common/contract.js";
import { ioError } from "../common/io-error.js";
import { kindTraits } from "../common/kind-traits.js";
import {
  decodeHint,
  decodeUnit,
  encodeHint,
  encodeUnit,
  type Half,
  hintPosition,
  type Layout,
  envelopeIn,
  regionOf,
  slotPosition,
  type Unit,
  unitBytes,
  unitPosition,
} from "./layout.js";
import type { BlockMedium } from "./medium.js";
import { freshSlots, SlotLease, type SlotTenure } from "./slot-lease.js";
import { type BlockWorld, elapsedSince } from "./world.js";

const { bytesMax } = kindTraits.block;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A store on a device or a file, which processes write unit by unit; `layout.ts` describes the layout. */
export class BlockStore implements OpenedStore {
  readonly traits: StoreTraits;
  findings: readonly ProbeFinding[] = [];
  readonly #medium: BlockMedium;
  readonly #writer: string;
  readonly #world: BlockWorld;
  #layout: Layout;
  #slot: SlotLease;
  /** All slots before this one were in use at the last check, and a used slot stays used. */
  #slotsUsed = 0;
  #closing: Promise<void> | undefined;

  constructor(medium: BlockMedium, layout: Layout, writer: string, world: BlockWorld) {
    this.#medium = medium;
    this.#layout = layout;
    this.#writer = writer;
    this.#world = world;
    this.#slot = new SlotLease(medium, layout, writer, world);
    this.traits = { name: medium.name, durable: true, ...kindTraits.block, delayMs: layout.delayMs };
  }

  /** Takes a slot and returns its number. */
  takeSlot(signal: AbortSignal | undefined): Promise<number> {
    return this.#slot.open(signal);
  }

  /** The slot in which this process writes, while it can be trusted. */
  get slotHeld(): number | undefined {
    return this.#slot.tenure?.slot;
  }

  async perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer> {
    try {
      if (this.#closing !== undefined) {
        throw new LeaseholdError("STORE_UNAVAILABLE", "this store has been closed");
      }
      return await this.#answer(request, caller?.signal);
    } catch (error) {
      return { kind: "failed", error: ioError(this.traits.name, error) };
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#slot.close().then(() => this.#medium.alone(() => this.#medium.close()));
    return this.#closing;
  }

  async #answer(request: StoreRequest, signal: AbortSignal | undefined): Promise<StoreAnswer> {
    // If an operation was abandoned while the device hung, it is not performed when the device comes back.
    const inTurn = <T>(run: () => Promise<T>) =>
      this.#medium.alone(() => {
        if (signal?.aborted) throw new LeaseholdError("STORE_UNAVAILABLE", "the caller gave up");
        return run();
      });
    switch (request.op) {
      case "replace":
        throw new LeaseholdError("UNSUPPORTED", "a block device cannot compare and set");
      case "put":
        return inTurn(() => this.#put(request.register, request.next, request.quiet === true));
      case "read":
        return inTurn(() => this.#read(request.register, request.quietSince));
      case "list":
        return this.#list(request.prefix, request.registersMax, inTurn);
    }
  }

  async #list(
    prefix: string,
    registersMax: number,
    inTurn: <T>(run: () => Promise<T>) => Promise<T>,
  ): Promise<StoreAnswer> {
    const registers = new Map<string, Uint8Array[]>();
    for (let region = 0; region < this.#layout.regions && registers.size < registersMax; region += 1) {
      const units = await inTurn(() => this.#readRegion(region));
      for (const name of new Set(units.flatMap(({ records }) => Object.keys(records)))) {
        if (!name.startsWith(prefix) || registers.size >= registersMax) continue;
        registers.set(
          name,
          units.flatMap((unit) => cellOf(unit, name)),
        );
      }
    }
    return { kind: "registers", id: this.#layout.id, registers };
  }

  /**
   * Reads the hint first: announced records were written before the hint, so the following read sees them. In
   * the opposite order a record written in between would never be found.
   */
  async #read(register: string, quietSince: string | undefined): Promise<StoreAnswer> {
    const { id } = this.#layout;
    const region = regionOf(this.#layout, register);
    let mark = decodeHint(await this.#medium.readSector(hintPosition(this.#layout, region)), id);
    if (mark !== undefined && mark === quietSince) return { kind: "quiet", id };
    const units = await this.#readRegion(region);
    const cells = units.flatMap((unit) => cellOf(unit, register));
    const isSame = id === this.#layout.id;
    return { kind: "cells", id: this.#layout.id, cells, ...(isSame && mark !== undefined && { mark }) };
  }

  /**
   * The units of all slots in a region. Each unit names the medium for which it was written, so a single unit
   * of this medium proves that it was not replaced. If there is none, the medium's first unit is read, too.
   */
  async #readRegion(region: number): Promise<readonly Unit[]> {
    const slots = await this.#countSlots();
    const halves = await this.#medium.readUnits(unitPosition(this.#layout, region, 0, 0), 2 * slots);
    const units = Array.from({ length: slots }, (_, slot) => this.#current(halves, 2 * slot, region, slot));
    const own = units.filter((unit) => unit !== undefined);
    if (own.length === 0 && (await this.#isAnother())) return this.#readRegion(region % this.#layout.regions);
    return own;
  }

  /**
   * The number of slots that may have records. A process takes one of the first few unused slots, and writes
   * records only after that, so a write that ended before this read began is never missed.
   */
  async #countSlots(): Promise<number> {
    for (;;) {
      const { slots } = this.#layout;
      const first = this.#slotsUsed;
      const seen = await this.#medium.readUnits(slotPosition(first), Math.min(freshSlots, slots - first));
      const used = seen.map((unit) => envelopeIn(unit) !== undefined);
      const fresh = used.indexOf(false);
      this.#slotsUsed = fresh === -1 ? first + used.length : first + fresh;
      if (this.#slotsUsed === slots) return slots;
      if (fresh === 0) return first + used.lastIndexOf(true) + 1;
    }
  }

  /** The newer complete unit of a slot's two. */
  #current(halves: readonly Uint8Array[], index: number, region: number, slot: number): Unit | undefined {
    const [one, two] = ([0, 1] as const).map((half) =>
      this.#decode(halves[index + half]!, region, slot, half),
    );
    if (one === "torn" && two === "torn") {
      const position = unitPosition(this.#layout, region, slot, 0);
      throw new LeaseholdError("STORE_CORRUPT", `both units at byte ${position} are damaged`);
    }
    const [first, second] = [one, two].map((unit) => (unit === "torn" ? undefined : unit));
    if (first === undefined || second === undefined) return first ?? second;
    return first.sequence > second.sequence ? first : second;
  }

  /** A unit of another medium counts as never written. */
  #decode(bytes: Uint8Array, region: number, slot: number, half: Half): Unit | "torn" | undefined {
    try {
      const unit = decodeUnit(bytes);
      return unit === undefined || unit === "torn" || unit.id === this.#layout.id ? unit : undefined;
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      const position = unitPosition(this.#layout, region, slot, half);
      throw new LeaseholdError(error.code, `the unit at byte ${position}: ${error.message}`, {
        cause: error,
      });
    }
  }

  /**
   * Whether the medium was formatted again or replaced. If so, this store switches to the new one, where it
   * has yet to take a slot.
   */
  async #isAnother(): Promise<boolean> {
    const layout = await this.#medium.readLayout();
    if (layout === undefined) {
      throw new LeaseholdError("STORE_FOREIGN", "the medium was formatted, and is empty now");
    }
    if (layout.id === this.#layout.id) return false;
    this.#layout = layout;
    this.#slotsUsed = 0;
    const former = this.#slot;
    this.#slot = new SlotLease(this.#medium, layout, this.#writer, this.#world);
    void former.close();
    void this.#slot.open(undefined).catch(() => undefined);
    return true;
  }

  async #put(register: string, next: Uint8Array, quiet: boolean): Promise<StoreAnswer> {
    if (next.length > bytesMax) {
      throw new LeaseholdError("STORE_FULL", `it takes ${bytesMax} bytes, and these are ${next.length}`);
    }
    const { tenure } = this.#slot;
    if (tenure === undefined) throw this.#slot.error;
    const layout = this.#layout;
    const region = regionOf(layout, register);
    const { sequence, records } = await this.#ownUnit(region, tenure);
    const unit: Unit = {
      id: layout.id,
      sequence: sequence + 1,
      records: { ...records, [register]: decoder.decode(next) },
    };
    const envelope = encodeUnit(unit);
    if (envelope.length >= unitBytes) {
      const count = Object.keys(records).length;
      throw new LeaseholdError("STORE_FULL", `this region has ${count} records and no room for another`);
    }
    // A failed write may or may not have reached the medium, so the unit is read again.
    tenure.units.delete(region);
    const begun = readBothClocks(this.#world.clock);
    const half = unit.sequence % 2 === 0 ? 0 : 1;
    if (this.#slot.tenure !== tenure) throw this.#slot.error;
    await this.#medium.writeEnvelope(unitPosition(layout, region, tenure.slot, half), envelope);
    if (!quiet) {
      const hint = encodeHint(layout.id, globalThis.crypto.randomUUID());
      await this.#medium.writeEnvelope(hintPosition(layout, region), hint);
    }
    if (elapsedSince(begun, this.#world) >= layout.delayMs || this.#slot.tenure !== tenure) {
      this.#slot.distrust();
      throw new LeaseholdError(
        "STORE_UNAVAILABLE",
        `a write took longer than the bound of ${layout.delayMs} ms`,
      );
    }
    tenure.units.set(region, unit);
    return { kind: "written", id: layout.id };
  }

  /**
   * The slot's unit in the region, including records of the slot's previous owner: those that are not
   * replaced are kept.
   */
  async #ownUnit(region: number, tenure: SlotTenure): Promise<Unit> {
    const known = tenure.units.get(region);
    if (known !== undefined) return known;
    const position = unitPosition(this.#layout, region, tenure.slot, 0);
    const halves = await this.#medium.readUnits(position, 2);
    const unit = this.#current(halves, 0, region, tenure.slot);
    return unit ?? { id: this.#layout.id, sequence: 0, records: {} };
  }
}

function cellOf({ records }: Unit, register: string): Uint8Array[] {
  return Object.hasOwn(records, register) ? [encoder.encode(records[register])] : [];
}
