import { performance } from "node:perf_hooks";
import type { StoreAnswer, StoreRequest, StoreTraits } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { OpenedStore, ProbeFinding } from "../contract.js";
import { ioError } from "../io-error.js";
import {
  decodeUnit,
  encodeUnit,
  type Layout,
  regionOf,
  type Unit,
  unitBytes,
  unitPosition,
} from "./layout.js";
import type { BlockMedium } from "./medium.js";
import { SlotLease } from "./slot-lease.js";

/** The longest content. A unit holds several records of usual length, and one of this with its register's name. */
export const bytesMax = 2_048;

/** A look reads one region: little, but from the disk itself. */
const pollMs = 250;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A device, or a file, that processes write unit by unit; see `layout.ts` for what is where. */
export class BlockStore implements OpenedStore {
  readonly traits: StoreTraits;
  findings: readonly ProbeFinding[] = [];
  readonly #medium: BlockMedium;
  readonly #writer: string;
  #layout: Layout;
  #slot: SlotLease;
  /** What this process's slot has in the regions that it has written to: nobody else writes there. */
  readonly #own = new Map<number, Unit>();
  #ownSlot: number | undefined;
  #closing: Promise<void> | undefined;

  constructor(medium: BlockMedium, layout: Layout, writer: string) {
    this.#medium = medium;
    this.#layout = layout;
    this.#writer = writer;
    this.#slot = new SlotLease(medium, layout, writer);
    this.traits = {
      name: medium.name,
      kind: "slotted",
      durable: true,
      bytesMax,
      pollMs,
      delayMs: layout.delayMs,
      // Whether a device was put in the place of another while the machine was running is not known.
    };
  }

  /** Takes a slot; its number. */
  takeSlot(signal: AbortSignal | undefined): Promise<number> {
    return this.#slot.open(signal);
  }

  async perform(request: StoreRequest, signal?: AbortSignal): Promise<StoreAnswer> {
    try {
      if (signal?.aborted) throw new LeaseholdError("STORE_UNAVAILABLE", "its caller has given up");
      if (this.#closing !== undefined) {
        throw new LeaseholdError("STORE_UNAVAILABLE", "this store has been closed");
      }
      return await this.#answer(request);
    } catch (error) {
      return { kind: "failed", error: ioError(this.traits.name, error) };
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#slot.close().then(() => this.#medium.alone(() => this.#medium.close()));
    return this.#closing;
  }

  async #answer(request: StoreRequest): Promise<StoreAnswer> {
    switch (request.op) {
      case "replace":
        throw new LeaseholdError("UNSUPPORTED", "a block device cannot compare and set");
      case "put":
        return this.#medium.alone(() => this.#put(request.register, request.next));
      case "read":
        return this.#medium.alone(async () => {
          const units = await this.#readRegion(regionOf(this.#layout, request.register));
          const cells = units.flatMap((unit) => cellOf(unit, request.register));
          return { kind: "cells", id: this.#layout.id, cells };
        });
      case "list":
        return this.#list(request.prefix, request.registersMax);
    }
  }

  async #list(prefix: string, registersMax: number): Promise<StoreAnswer> {
    const registers = new Map<string, Uint8Array[]>();
    for (let region = 0; region < this.#layout.regions && registers.size < registersMax; region++) {
      const units = await this.#medium.alone(() => this.#readRegion(region));
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
   * What all slots have in a region. Each unit names the medium that it was written for: one of ours proves that this is
   * still that one. Where there is none, the first unit is read too.
   */
  async #readRegion(region: number): Promise<readonly Unit[]> {
    const { slots } = this.#layout;
    const units = await this.#medium.readUnits(unitPosition(this.#layout, region, 0), slots);
    const found = units.flatMap((bytes, slot) => this.#decode(bytes, region, slot) ?? []);
    const own = found.filter(({ id }) => id === this.#layout.id);
    if (own.length === 0 && (await this.#isAnother())) return this.#readRegion(region % this.#layout.regions);
    return own;
  }

  #decode(bytes: Uint8Array, region: number, slot: number): Unit | undefined {
    try {
      return decodeUnit(bytes);
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      const position = unitPosition(this.#layout, region, slot);
      throw new LeaseholdError(error.code, `the unit at byte ${position}: ${error.message}`, {
        cause: error,
      });
    }
  }

  /** The medium was laid out anew, or is another: from now on this store is that one, with a slot that it has yet to take. */
  async #isAnother(): Promise<boolean> {
    const layout = await this.#medium.readLayout();
    if (layout === undefined) {
      throw new LeaseholdError("STORE_FOREIGN", "the medium was laid out, and is empty now");
    }
    if (layout.id === this.#layout.id) return false;
    this.#layout = layout;
    const former = this.#slot;
    this.#slot = new SlotLease(this.#medium, layout, this.#writer);
    void former.close();
    void this.#slot.open(undefined).catch(() => undefined);
    return true;
  }

  async #put(register: string, next: Uint8Array): Promise<StoreAnswer> {
    if (next.length > bytesMax) {
      throw new LeaseholdError("STORE_FULL", `it takes ${bytesMax} bytes, and these are ${next.length}`);
    }
    const { slot } = this.#slot;
    if (slot === undefined) throw this.#slot.error;
    const layout = this.#layout;
    const region = regionOf(layout, register);
    const { records } = await this.#ownUnit(region, slot);
    const unit: Unit = { id: layout.id, records: { ...records, [register]: decoder.decode(next) } };
    const line = encodeUnit(unit);
    if (line.length > unitBytes) {
      const count = Object.keys(records).length;
      throw new LeaseholdError("STORE_FULL", `this region has ${count} records and no room for another`);
    }
    this.#own.delete(region);
    const begunMs = performance.now();
    if (this.#slot.slot !== slot) throw this.#slot.error;
    await this.#medium.writeLine(unitPosition(layout, region, slot), line);
    if (performance.now() - begunMs >= layout.delayMs || this.#slot.slot !== slot) {
      this.#slot.distrust();
      throw new LeaseholdError(
        "STORE_UNAVAILABLE",
        `a write took longer than the bound of ${layout.delayMs} ms`,
      );
    }
    this.#own.set(region, unit);
    return { kind: "written", id: layout.id };
  }

  /** What the slot has in the region, also from whoever had the slot before: what is not replaced stays. */
  async #ownUnit(region: number, slot: number): Promise<Unit> {
    if (this.#ownSlot !== slot) this.#own.clear();
    this.#ownSlot = slot;
    const known = this.#own.get(region);
    if (known?.id === this.#layout.id) return known;
    const [bytes] = await this.#medium.readUnits(unitPosition(this.#layout, region, slot), 1);
    const unit = this.#decode(bytes!, region, slot);
    return unit?.id === this.#layout.id ? unit : { id: this.#layout.id, records: {} };
  }
}

function cellOf({ records }: Unit, register: string): Uint8Array[] {
  return Object.hasOwn(records, register) ? [encoder.encode(records[register])] : [];
}
